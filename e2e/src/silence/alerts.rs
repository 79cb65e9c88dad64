//! Since when an alert's expression is true: the chart's own rules, judged by Prometheus's own tool over the scrapes of a
//! run, second by second.
//!
//! What a failed scrape does to a series in Prometheus it does here: it is stale from then on, not merely without a value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};
use xtask::promtool;

use super::page::Page;

/// An alert by name and by its label `cause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// `FerrVaultSecretStale`.
    pub name: &'static str,
    /// `sync`; `sync or pass` for either; empty for an alert without.
    pub cause: &'static str,
}

/// The grace in the expression of `FerrVaultSecretStale`, which no value of the chart sets.
const STALE_AFTER: u64 = 300;

/// The rules of a release.
pub struct Rules {
    all: Vec<Value>,
    promtool: Option<PathBuf>,
    folder: PathBuf,
    /// What a scrape adds to each series.
    target: BTreeMap<&'static str, String>,
    haste: u64,
}

/// A scrape, or what was left of it.
pub struct Scrape<'a> {
    /// Whole seconds since the first one.
    pub second: usize,
    /// The page; nothing when it did not come.
    pub page: Option<&'a Page>,
}

impl Rules {
    /// The groups of a rendered `PrometheusRule`, for a target in this namespace and of this job. `haste` divides the one
    /// threshold that cannot be set by a value, as the test hooks divide the operator's own.
    pub fn new(groups: &Value, namespace: &str, job: &str, folder: PathBuf, haste: u32) -> Self {
        let all = groups["groups"][0]["rules"].as_array().unwrap().clone();
        let target = [("namespace", namespace), ("job", job), ("pod", "a"), ("instance", "a:8080")];
        let target = target.map(|(label, value)| (label, value.to_owned())).into();
        Self { all, promtool: promtool::locate(), folder, target, haste: haste.into() }
    }

    /// Whether there is a promtool to ask.
    pub fn can_judge(&self) -> bool {
        self.promtool.is_some()
    }

    /// The expression of an alert; of several causes, what is true when one of them is.
    pub fn expression(&self, alert: Alert) -> String {
        let of = |cause: &str| {
            let matching = |rule: &&Value| {
                rule["alert"] == alert.name && rule["labels"]["cause"].as_str().unwrap_or_default() == cause
            };
            let rule = self.all.iter().find(matching).unwrap_or_else(|| panic!("the chart has no {alert:?}"));
            rule["expr"].as_str().unwrap().to_owned()
        };
        let all: Vec<String> = alert.cause.split(" or ").map(of).collect();
        let expression = if all.len() == 1 { all.concat() } else { format!("({})", all.join(") or (")) };
        if alert.name == "FerrVaultSecretStale" {
            return expression.replace(&format!("> {STALE_AFTER}"), &format!("> {}", STALE_AFTER / self.haste));
        }
        expression
    }

    /// The first second from `from` on at which the expression is true; nothing where it never is, or nobody can tell.
    /// `unix` is the time of second 0.
    pub fn first_true(&self, alert: Alert, scrapes: &[Scrape<'_>], unix: f64, from: usize) -> Option<usize> {
        let promtool = self.promtool.as_ref()?;
        let expression = self.expression(alert);
        let last = scrapes.last()?.second;
        let asked: Vec<Value> = (from..=last)
            .map(|second| json!({"expr": expression, "eval_time": format!("{second}s"), "exp_samples": []}))
            .collect();
        let series = self.series(&expression, scrapes, unix);
        let test = json!({"interval": "1s", "input_series": series, "promql_expr_test": asked});
        let file = self.folder.join("seen.json");
        let whole = json!({"rule_files": [], "evaluation_interval": "1s", "tests": [test]});
        std::fs::write(&file, whole.to_string()).unwrap();
        let output = std::process::Command::new(promtool).args(["test", "rules"]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let first = said.lines().filter_map(surprised_at).min();
        // It is content when the expression was never true; when it is not, and names no time, it did not understand us.
        assert!(first.is_some() || output.status.success(), "promtool: {said}");
        first
    }

    /// Series as promtool takes them, of those that the expression names.
    fn series(&self, expression: &str, scrapes: &[Scrape<'_>], unix: f64) -> Vec<Value> {
        let mut all: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
        let mut came = BTreeSet::new();
        for scrape in scrapes {
            let Some(page) = scrape.page else { continue };
            came.insert(scrape.second);
            for series in page.all().iter().filter(|series| expression.contains(series.name.as_str())) {
                let mut labels: BTreeMap<&str, &str> =
                    self.target.iter().map(|(label, value)| (*label, value.as_str())).collect();
                labels.extend(series.labels.iter().map(|(label, value)| (label.as_str(), value.as_str())));
                let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}={value:?}")).collect();
                // promtool's clock begins at 0.
                let shift = if series.name.ends_with("_timestamp_seconds") { unix } else { 0.0 };
                let values = all.entry(format!("{}{{{}}}", series.name, labels.join(","))).or_default();
                values.insert(scrape.second, series.value - shift);
            }
        }
        let looked: BTreeSet<usize> = scrapes.iter().map(|scrape| scrape.second).collect();
        let last = looked.last().copied().unwrap_or_default();
        let written = |values: &BTreeMap<usize, f64>| {
            let value = |second: usize| match values.get(&second) {
                Some(value) => value.to_string(),
                None if looked.contains(&second) => "stale".to_owned(),
                None => "_".to_owned(),
            };
            (0..=last).map(value).collect::<Vec<_>>().join(" ")
        };
        all.iter().map(|(series, values)| json!({"series": series, "values": written(values)})).collect()
    }
}

/// The second of a line in which promtool says that it saw something where nothing was expected.
fn surprised_at(line: &str) -> Option<usize> {
    let time = line.rsplit_once(", time: ")?.1.trim_end_matches(',');
    let (mut total, mut number) = (0, String::new());
    for c in time.chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            _ => return None,
        };
        total += std::mem::take(&mut number).parse::<usize>().ok()? * unit;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALERT: Alert = Alert { name: "Above", cause: "" };
    const GONE: Alert = Alert { name: "Gone", cause: "absence" };

    fn rules(folder: &std::path::Path) -> Rules {
        let groups = json!({"groups": [{"rules": [
            {"alert": "Above", "expr": "max by (pod) (depth) > 4"},
            {"alert": "Gone", "labels": {"cause": "absence"}, "expr": "absent(depth{job=\"j\"})"},
        ]}]});
        Rules::new(&groups, "n", "j", folder.to_owned(), 1)
    }

    fn first(alert: Alert, pages: &[(usize, Option<f64>)], from: usize) -> Option<usize> {
        let folder = tempfile::tempdir().unwrap();
        let pages: Vec<_> = pages
            .iter()
            .map(|(second, depth)| (*second, depth.map(|depth| Page::read(&format!("depth{{a=\"b\"}} {depth}")))))
            .collect();
        let scrapes: Vec<_> =
            pages.iter().map(|(second, page)| Scrape { second: *second, page: page.as_ref() }).collect();
        rules(folder.path()).first_true(alert, &scrapes, 0.0, from)
    }

    #[test]
    fn the_second_is_told_at_which_an_expression_becomes_true() {
        if promtool::locate().is_none() {
            return xtask::test_run::skip("the_second_is_told_at_which_an_expression_becomes_true", "no promtool");
        }
        let pages = [(0, Some(1.0)), (1, Some(9.0)), (2, Some(1.0)), (4, Some(5.0)), (5, Some(5.0))];
        assert_eq!(first(ALERT, &pages, 0), Some(1));
        assert_eq!(first(ALERT, &pages, 2), Some(4));
        assert_eq!(first(ALERT, &pages[..1], 0), None);
    }

    #[test]
    fn a_scrape_that_fails_makes_its_series_stale_at_once() {
        if promtool::locate().is_none() {
            return xtask::test_run::skip("a_scrape_that_fails_makes_its_series_stale_at_once", "no promtool");
        }
        assert_eq!(first(GONE, &[(0, Some(1.0)), (2, Some(1.0)), (3, None), (4, None)], 0), Some(3));
        assert_eq!(first(GONE, &[(0, Some(1.0)), (1, None), (2, Some(1.0))], 2), None);
    }
}
