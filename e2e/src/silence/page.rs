//! A page of metrics in the text format, as far as it takes to look a series up. Pure.

use std::collections::BTreeMap;

/// One scrape.
#[derive(Clone, Debug, Default)]
pub struct Page(Vec<Series>);

/// One series of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name of the metric.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

impl Page {
    /// Reads a page. A line that is not understood is left out.
    pub fn read(text: &str) -> Self {
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(series).collect())
    }

    /// Every series.
    pub fn all(&self) -> &[Series] {
        &self.0
    }

    /// The largest value of the series called `name` that have these labels; nothing when there is none.
    pub fn most(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |series: &&Series| {
            series.name == name
                && labels.iter().all(|(label, value)| series.labels.get(*label).is_some_and(|found| found == value))
        };
        self.0.iter().filter(has).map(|series| series.value).reduce(f64::max)
    }

    /// Whether there is such a series, and its value is above `limit`.
    pub fn above(&self, name: &str, labels: &[(&str, &str)], limit: f64) -> bool {
        self.most(name, labels).is_some_and(|value| value > limit)
    }
}

/// `name{a="b",c="d"} 1.5`. Label values here are names and reasons: none has a quote in it.
fn series(line: &str) -> Option<Series> {
    let (head, value) = line.rsplit_once(' ')?;
    let (name, labels) = head.split_once('{').unwrap_or((head, "}"));
    let pairs = labels.strip_suffix('}')?.split("\",").filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (label, value) = pair.split_once("=\"")?;
        Some((label.to_owned(), value.trim_end_matches('"').to_owned()))
    };
    Some(Series { name: name.to_owned(), labels: pairs.map(pair).collect::<Option<_>>()?, value: value.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP a_total Something.
a_total{reason=\"X\",namespace=\"n, m\"} 2.0
a_total{reason=\"Y\",namespace=\"n, m\"} 5
b 1e-3
";

    #[test]
    fn series_are_found_by_name_and_labels() {
        let page = Page::read(PAGE);
        assert_eq!(page.all().len(), 3);
        assert_eq!(page.most("a_total", &[]), Some(5.0));
        assert_eq!(page.most("a_total", &[("reason", "X"), ("namespace", "n, m")]), Some(2.0));
        assert_eq!(page.most("a_total", &[("reason", "Z")]), None);
        assert!(page.above("b", &[], 0.0) && !page.above("b", &[], 0.001) && !page.above("c", &[], 0.0));
    }
}
