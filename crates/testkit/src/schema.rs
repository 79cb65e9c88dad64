//! The structural schema of a custom resource: what it forgets (pruning), fills in (defaults) and refuses (validation).
//!
//! CEL rules (`x-kubernetes-validations`) are not evaluated: an object that only such a rule forbids is stored here and
//! refused by a real server. Tests of those rules belong on a real control plane.

mod validate;

use serde_json::{Map, Value};

use self::validate::Patterns;
use crate::object;
use crate::refusal::FieldError;

/// An `openAPIV3Schema`.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    root: Value,
    patterns: Patterns,
    /// Whether CEL rules stand anywhere in it.
    has_rules: bool,
}

impl Schema {
    pub(crate) fn new(root: Value) -> Self {
        Self { has_rules: has_rules(&root), patterns: Patterns::of(&root), root }
    }

    /// The root node.
    pub(crate) fn root(&self) -> &Value {
        &self.root
    }

    /// Removes what the schema does not name and returns the paths of what was removed. Metadata is not its business.
    pub(crate) fn prune(&self, target: &mut Value) -> Vec<String> {
        let mut removed = Vec::new();
        if let Some(fields) = target.as_object_mut() {
            let unknown: Vec<String> =
                fields.keys().filter(|key| !is_envelope(key) && child(&self.root, key).is_none()).cloned().collect();
            for key in unknown {
                fields.remove(&key);
                removed.push(key);
            }
            for (key, value) in fields.iter_mut().filter(|(key, _)| !is_envelope(key)) {
                if let Some(node) = child(&self.root, key) {
                    prune(node, value, key, &mut removed);
                }
            }
        }
        removed
    }

    /// Fills in defaults, and removes nulls where a default stands ready.
    pub(crate) fn fill_defaults(&self, target: &mut Value) {
        fill_defaults(&self.root, target);
    }

    /// Everything wrong with `target`.
    pub(crate) fn validate(&self, target: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(fields) = target.as_object() {
            for required in object::strings(self.root.get("required")) {
                if !fields.contains_key(&required) {
                    errors.push(FieldError::required(required, ""));
                }
            }
            for (key, value) in fields.iter().filter(|(key, _)| !is_envelope(key)) {
                if let Some(node) = child(&self.root, key) {
                    validate::check(&self.patterns, node, value, key, &mut errors);
                }
            }
        }
        if self.has_rules && errors.iter().any(FieldError::hides_rules) {
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
