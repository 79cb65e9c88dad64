//! What `kubectl get fvs` prints, asked for the way kubectl does it: as a table that the API server fills in.

use std::collections::BTreeMap;

use kube::Client;
use serde::Deserialize;

/// What kubectl asks with.
const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// One line, by column.
#[derive(Clone, Debug, Default)]
pub struct Line(BTreeMap<String, String>);

impl Line {
    /// What stands in a column, as in `Reason`; empty where nothing does.
    pub fn cell(&self, column: &str) -> &str {
        self.0.get(column).map(String::as_str).unwrap_or_default()
    }

    /// The seconds in a column of ages, as in `LastAttempt`.
    pub fn age(&self, column: &str) -> Option<u64> {
        seconds(self.cell(column))
    }
}

/// Lines by the name of their object.
pub type Listing = BTreeMap<String, Line>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<serde_json::Value>,
}

/// Asks for the listing of a namespace; the error is what kubectl would print instead.
pub async fn list(client: &Client, namespace: &str) -> Result<Listing, String> {
    let uri = format!("/apis/ferrvault.com/v1alpha1/namespaces/{namespace}/ferrvaultsecrets");
    let request = http::Request::get(uri).header(http::header::ACCEPT, AS_TABLE).body(Vec::new()).unwrap();
    let table: Table = client.request(request).await.map_err(|error| error.to_string())?;
    Ok(lines(&table))
}

fn lines(table: &Table) -> Listing {
    let named = table.rows.iter().map(|row| {
        let cells =
            table.column_definitions.iter().zip(&row.cells).map(|(column, cell)| {
                (column.name.clone(), cell.as_str().map_or_else(|| cell.to_string(), str::to_owned))
            });
        Line(cells.collect())
    });
    named.map(|line| (line.cell("Name").to_owned(), line)).collect()
}

/// `90s`, `2m5s`, `3h20m`, `1d`.
fn seconds(age: &str) -> Option<u64> {
    let (mut total, mut number) = (0, String::new());
    for c in age.chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        };
        total += std::mem::take(&mut number).parse::<u64>().ok()? * unit;
    }
    (number.is_empty() && !age.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_as_they_are_printed() {
        for (age, wanted) in
            [("0s", Some(0)), ("90s", Some(90)), ("2m5s", Some(125)), ("3h20m", Some(12_000)), ("1d", Some(86_400))]
        {
            assert_eq!(seconds(age), wanted, "{age}");
        }
        for odd in ["", "<invalid>", "5", "<unknown>"] {
            assert_eq!(seconds(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_line_is_known_by_the_name_of_its_object() {
        let table: Table = serde_json::from_value(serde_json::json!({
            "columnDefinitions": [{"name": "Name"}, {"name": "Ready"}, {"name": "Count"}],
            "rows": [{"cells": ["shop", "True", 3]}],
        }))
        .unwrap();
        let lines = lines(&table);
        assert_eq!((lines["shop"].cell("Ready"), lines["shop"].cell("Count")), ("True", "3"));
        assert_eq!(lines["shop"].cell("Fresh"), "");
    }
}
