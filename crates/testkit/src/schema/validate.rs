//! Validation by schema: types, enums, lengths, patterns, bounds, lists that are sets or maps.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Map, Value};

use super::{child, flag};
use crate::object;
use crate::refusal::FieldError;

/// Every `pattern` of a schema, compiled once.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns(BTreeMap<String, Regex>);

impl Patterns {
    pub(super) fn of(root: &Value) -> Self {
        let mut patterns = Self::default();
        patterns.collect(root);
        patterns
    }

    fn collect(&mut self, node: &Value) {
        match node {
            Value::Object(fields) => {
                // A pattern that does not compile here is not checked; the API server's engine is the same family.
                if let Some(pattern) = fields.get("pattern").and_then(Value::as_str)
                    && let Ok(compiled) = Regex::new(pattern)
                {
                    self.0.insert(pattern.to_owned(), compiled);
                }
                fields.values().for_each(|node| self.collect(node));
            }
            Value::Array(items) => items.iter().for_each(|node| self.collect(node)),
            _ => {}
        }
    }
}

/// The schema's word for the type of `value`.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn has_type(node: &Value, value: &Value) -> bool {
    let found = type_of(value);
    if flag(node, "x-kubernetes-int-or-string") {
        return matches!(found, "integer" | "string");
    }
    match node.get("type").and_then(Value::as_str) {
        None => true,
        Some("number") => matches!(found, "number" | "integer"),
        Some(wanted) => wanted == found,
    }
}

/// Adds everything that is wrong with `value` at `path` to `errors`.
pub(super) fn check(patterns: &Patterns, node: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() && flag(node, "nullable") {
        return;
    }
    if !has_type(node, value) {
        let wanted = node.get("type").and_then(Value::as_str).unwrap_or("integer or string");
        errors.push(FieldError::type_invalid(path, type_of(value), wanted));
        return;
    }
    let supported = object::list(node, "/enum");
    if !supported.is_empty() && !supported.contains(value) {
        errors.push(FieldError::unsupported(path, value, supported));
    }
    match value {
        Value::String(text) => check_text(patterns, node, text, value, path, errors),
        Value::Number(_) => check_number(node, value, path, errors),
        Value::Object(fields) => {
            for required in object::strings(node.get("required")) {
                if !fields.contains_key(&required) {
                    errors.push(FieldError::required(format!("{path}.{required}"), ""));
                }
            }
            for (key, value) in fields {
                if let Some(node) = child(node, key) {
                    check(patterns, node, value, &format!("{path}.{key}"), errors);
                }
            }
        }
        Value::Array(items) => check_list(patterns, node, items, value, path, errors),
        Value::Null | Value::Bool(_) => {}
    }
}

fn bound(node: &Value, name: &str) -> Option<usize> {
    node.get(name).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())
}

fn check_text(patterns: &Patterns, node: &Value, text: &str, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let length = text.chars().count();
    if let Some(least) = bound(node, "minLength").filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        errors.push(FieldError::invalid(path, value, &detail));
    }
    if let Some(most) = bound(node, "maxLength").filter(|most| length > *most) {
        errors.push(FieldError::too_long(path, most));
    }
    if let Some(pattern) = node.get("pattern").and_then(Value::as_str)
        && patterns.0.get(pattern).is_some_and(|compiled| !compiled.is_match(text))
    {
        let detail = format!("{path} in body should match '{pattern}'");
        errors.push(FieldError::invalid(path, value, &detail));
    }
    if node.get("format").and_then(Value::as_str) == Some("date-time") && text.parse::<jiff::Timestamp>().is_err() {
        errors.push(FieldError::not_a_time(path, value));
    }
}

fn check_number(node: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let number = value.as_f64().unwrap_or_default();
    if let Some(least) = node.get("minimum").and_then(Value::as_f64).filter(|least| number < *least) {
        let detail = format!("{path} in body should be greater than or equal to {least}");
        errors.push(FieldError::invalid(path, value, &detail));
    }
    if let Some(most) = node.get("maximum").and_then(Value::as_f64).filter(|most| number > *most) {
        let detail = format!("{path} in body should be less than or equal to {most}");
        errors.push(FieldError::invalid(path, value, &detail));
    }
}

fn check_list(
    patterns: &Patterns,
    node: &Value,
    items: &[Value],
    value: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if let Some(least) = bound(node, "minItems").filter(|least| items.len() < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        errors.push(FieldError::invalid(path, value, &detail));
    }
    if let Some(most) = bound(node, "maxItems").filter(|most| items.len() > *most) {
        let detail = format!("{path} in body should have at most {most} items");
        errors.push(FieldError::invalid(path, value, &detail));
    }
    if let Some(node) = node.get("items") {
        for (index, item) in items.iter().enumerate() {
            check(patterns, node, item, &format!("{path}[{index}]"), errors);
        }
    }
    let list_type = node.get("x-kubernetes-list-type").and_then(Value::as_str).unwrap_or("atomic");
    let keys = object::strings(node.get("x-kubernetes-list-map-keys"));
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let identity = match list_type {
            "set" => item.clone(),
            "map" => {
                keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect::<Map<_, _>>().into()
            }
            _ => return,
        };
        if !seen.insert(identity.to_string()) {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), &identity));
        }
    }
}
