//! Label and field selectors of lists and watches.

use serde_json::Value;

use crate::kind::Kind;
use crate::object;
use crate::refusal::Refusal;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

/// Which objects somebody wants to see. The default sees all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<(String, Test)>,
    fields: Vec<(String, bool, String)>,
}

impl Selector {
    /// Reads the two query parameters.
    pub(crate) fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, Refusal> {
        let mut selector = Self::default();
        for part in split_outside_parentheses(labels) {
            let test =
                label(part).ok_or_else(|| Refusal::bad_request("found '=', expected: ',' or 'end of string'"))?;
            selector.labels.push(test);
        }
        for part in fields.split(',').filter(|part| !part.is_empty()) {
            let (field, wanted, value) = split_operator(part).ok_or_else(|| {
                Refusal::bad_request(format!("invalid selector: {part:?}; can't understand {part:?}"))
            })?;
            let known =
                matches!(field, "metadata.name" | "metadata.namespace") || (field == "type" && kind.id == "secrets");
            if !known {
                return Err(Refusal::bad_request(format!("field label not supported: {field}")));
            }
            selector.fields.push((field.to_owned(), wanted, value.to_owned()));
        }
        Ok(selector)
    }

    /// Whether everything is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether `object` is selected.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        let label = |key: &str| object::map(object, "/metadata/labels").and_then(|labels| labels.get(key)?.as_str());
        self.labels.iter().all(|(key, test)| match test {
            Test::In(values) => label(key).is_some_and(|found| values.iter().any(|value| value == found)),
            Test::NotIn(values) => label(key).is_none_or(|found| values.iter().all(|value| value != found)),
            Test::Exists => label(key).is_some(),
            Test::Absent => label(key).is_none(),
        }) && self.fields.iter().all(|(field, wanted, value)| {
            let found = object::text(object, &format!("/{}", field.replace('.', "/")));
            (found == value) == *wanted
        })
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

/// `key=value`, `key==value` or `key!=value`: key, whether equal is wanted, value.
fn split_operator(part: &str) -> Option<(&str, bool, &str)> {
    let (key, wanted, value) = if let Some((key, value)) = part.split_once("!=") {
        (key, false, value)
    } else if let Some((key, value)) = part.split_once("==") {
        (key, true, value)
    } else {
        let (key, value) = part.split_once('=')?;
        (key, true, value)
    };
    Some((key.trim(), wanted, value.trim()))
}

fn label(part: &str) -> Option<(String, Test)> {
    if let Some((head, list)) = part.split_once('(') {
        let values = list.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        let key = words.next()?.to_owned();
        return match words.next()? {
            "in" => Some((key, Test::In(values))),
            "notin" => Some((key, Test::NotIn(values))),
            _ => None,
        };
    }
    if let Some((key, wanted, value)) = split_operator(part) {
        if value.contains('=') {
            return None;
        }
        let values = vec![value.to_owned()];
        return Some((key.to_owned(), if wanted { Test::In(values) } else { Test::NotIn(values) }));
    }
    match part.strip_prefix('!') {
        Some(key) => Some((key.trim().to_owned(), Test::Absent)),
        None => Some((part.to_owned(), Test::Exists)),
    }
}
