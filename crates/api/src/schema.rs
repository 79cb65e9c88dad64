//! How the generated schemas and the decoding of stored objects treat `null`.
//!
//! The derive declares every `Option` as `nullable`, and a nullable field that holds `null` is *there* for a CEL rule:
//! `tokenSecretRef: null` beside an `oidc` block would count as both. Where a field is not nullable the API server
//! drops the `null` before it validates, so `null` and absence are one thing. That is what people mean and what the Go
//! operator's schema said, hence this module takes the word away again. It must never change anything else of a schema.

use schemars::Schema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Declares every property of an object schema as not nullable. For `#[schemars(transform = …)]` on a struct.
pub(crate) fn null_is_absent(schema: &mut Schema) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        without_null_type(property);
        without_null_branch(property);
    }
}

/// `type: [string, "null"]` becomes `type: string`.
fn without_null_type(property: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = property.get_mut("type") else {
        return;
    };
    types.retain(|name| name != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        property.insert("type".to_owned(), only);
    }
}

/// `anyOf: [X, {type: "null"}]` becomes X, with the description of the field where it has one.
fn without_null_branch(property: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = property.get("anyOf") else {
        return;
    };
    let is_null = |branch: &Value| branch.get("type").is_some_and(|name| name == "null");
    let mut others = branches.iter().filter(|branch| !is_null(branch));
    let (Some(Value::Object(only)), None) = (others.next(), others.next()) else {
        return;
    };
    let only = only.clone();
    property.remove("anyOf");
    for (keyword, value) in only {
        property.entry(keyword).or_insert(value);
    }
}

/// Decodes `null` as the empty value: an object written past a schema, or under none, is still readable.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
