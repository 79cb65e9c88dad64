//! The structural schema of a custom resource: what it forgets (pruning), fills in (defaults) and refuses (validation).
//!
//! CEL rules (`x-kubernetes-validations`) are not evaluated: an object that only such a rule forbids is stored here and
//! refused by a real server. Tests of those rules belong on a real control plane.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::{Map, Value};

use crate::object;
use crate::refusal::FieldError;

/// An `openAPIV3Schema`.
#[derive(Clone, Debug)]
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn new(schema: Value) -> Self {
        Self(schema)
    }

    /// The root node.
    pub(crate) fn root(&self) -> &Value {
        &self.0
    }

    /// Removes what the schema does not name and returns the paths of what was removed. Metadata is not its business.
    pub(crate) fn prune(&self, target: &mut Value) -> Vec<String> {
        let mut removed = Vec::new();
        if let Some(fields) = target.as_object_mut() {
            let unknown: Vec<String> =
                fields.keys().filter(|key| !is_envelope(key) && child(&self.0, key).is_none()).cloned().collect();
            for key in unknown {
                fields.remove(&key);
                removed.push(key);
            }
            for (key, value) in fields.iter_mut().filter(|(key, _)| !is_envelope(key)) {
                if let Some(node) = child(&self.0, key) {
                    prune(node, value, key, &mut removed);
                }
            }
        }
        removed
    }

    /// Fills in defaults, and removes nulls where a default stands ready.
    pub(crate) fn fill_defaults(&self, target: &mut Value) {
        fill_defaults(&self.0, target);
    }

    /// Everything wrong with `target`.
    pub(crate) fn validate(&self, target: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(fields) = target.as_object() {
            for required in object::strings(self.0.get("required")) {
                if !fields.contains_key(&required) {
                    errors.push(FieldError::required(required, ""));
                }
            }
            for (key, value) in fields.iter().filter(|(key, _)| !is_envelope(key)) {
                if let Some(node) = child(&self.0, key) {
                    validate(node, value, key, &mut errors);
                }
            }
        }
        if has_rules(&self.0) && errors.iter().any(FieldError::hides_rules) {
            errors.push(FieldError::rules_unchecked());
        }
        errors
    }
}

fn is_envelope(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

/// The schema of a field, named or not.
fn child<'a>(node: &'a Value, key: &str) -> Option<&'a Value> {
    node.get("properties")
        .and_then(|properties| properties.get(key))
        .or_else(|| node.get("additionalProperties").filter(|schema| schema.is_object()))
}

/// Whether CEL rules stand anywhere in the schema.
fn has_rules(node: &Value) -> bool {
    match node {
        Value::Object(fields) => fields.contains_key("x-kubernetes-validations") || fields.values().any(has_rules),
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

fn flag(node: &Value, name: &str) -> bool {
    node.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn keeps_unknown(node: &Value) -> bool {
    flag(node, "x-kubernetes-preserve-unknown-fields") || flag(node, "additionalProperties")
}

fn prune(node: &Value, value: &mut Value, path: &str, removed: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if !keeps_unknown(node) {
                let unknown: Vec<String> = fields.keys().filter(|key| child(node, key).is_none()).cloned().collect();
                for key in unknown {
                    fields.remove(&key);
                    removed.push(format!("{path}.{key}"));
                }
            }
            for (key, value) in fields.iter_mut() {
                if let Some(node) = child(node, key) {
                    prune(node, value, &format!("{path}.{key}"), removed);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = node.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    prune(node, item, &format!("{path}[{index}]"), removed);
                }
            }
        }
        _ => {}
    }
}

fn fill_defaults(node: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let empty = Map::new();
            let properties = node.get("properties").and_then(Value::as_object).unwrap_or(&empty);
            for (key, node) in properties {
                let Some(default) = node.get("default") else { continue };
                let nulled = fields.get(key).is_some_and(Value::is_null) && !flag(node, "nullable");
                if nulled || !fields.contains_key(key) {
                    fields.insert(key.clone(), default.clone());
                }
            }
            for (key, value) in fields.iter_mut() {
                if let Some(node) = child(node, key) {
                    fill_defaults(node, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = node.get("items") {
                for item in items {
                    fill_defaults(node, item);
                }
            }
        }
        _ => {}
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

fn validate(node: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
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
        Value::String(text) => validate_text(node, text, value, path, errors),
        Value::Number(_) => validate_number(node, value, path, errors),
        Value::Object(fields) => {
            for required in object::strings(node.get("required")) {
                if !fields.contains_key(&required) {
                    errors.push(FieldError::required(format!("{path}.{required}"), ""));
                }
            }
            for (key, value) in fields {
                if let Some(node) = child(node, key) {
                    validate(node, value, &format!("{path}.{key}"), errors);
                }
            }
        }
        Value::Array(items) => validate_list(node, items, value, path, errors),
        Value::Null | Value::Bool(_) => {}
    }
}

fn bound(node: &Value, name: &str) -> Option<usize> {
    node.get(name).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())
}

fn validate_text(node: &Value, text: &str, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let length = text.chars().count();
    if let Some(least) = bound(node, "minLength").filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        errors.push(FieldError::invalid(path, value, &detail));
    }
    if let Some(most) = bound(node, "maxLength").filter(|most| length > *most) {
        errors.push(FieldError::too_long(path, most));
    }
    if let Some(pattern) = node.get("pattern").and_then(Value::as_str)
        && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
    {
        let detail = format!("{path} in body should match '{pattern}'");
        errors.push(FieldError::invalid(path, value, &detail));
    }
    if node.get("format").and_then(Value::as_str) == Some("date-time") && text.parse::<jiff::Timestamp>().is_err() {
        errors.push(FieldError::not_a_time(path, value));
    }
}

fn validate_number(node: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
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

fn validate_list(node: &Value, items: &[Value], value: &Value, path: &str, errors: &mut Vec<FieldError>) {
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
            validate(node, item, &format!("{path}[{index}]"), errors);
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
