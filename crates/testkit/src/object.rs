//! Reading and writing parts of an object that is kept as JSON.
//!
//! The server never knows the Rust types of what it stores: it would then forget what they do not name, and forgetting
//! is a decision that belongs to the schema of a kind alone.

use serde_json::{Map, Value};

/// The text at `pointer`, empty when there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// `metadata.resourceVersion`.
pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// Whether a delete was asked for and something still holds the object.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    strings(object.pointer("/metadata/finalizers"))
}

/// The strings of a JSON array.
pub(crate) fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The map at `pointer`, or nothing.
pub(crate) fn map<'a>(object: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

/// The items of the list at `pointer`.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The map `object.<field>`, made when it is not there (or is not a map).
pub(crate) fn map_mut<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    let slot = fields_mut(object).entry(field).or_insert(Value::Null);
    fields_mut(slot)
}

/// The fields of `value`, which becomes a map if it was none.
pub(crate) fn fields_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        // The line above made it a map.
        _ => unreachable!("a value that was just made a map"),
    }
}

/// What Go's JSON decoder calls a value that it did not expect.
pub(crate) fn go_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Sets `metadata.<field>`.
pub(crate) fn set_metadata(object: &mut Value, field: &str, value: impl Into<Value>) {
    map_mut(object, "metadata").insert(field.to_owned(), value.into());
}

/// Makes `object.<field>` what `from.<field>` is, absence included.
pub(crate) fn copy_field(object: &mut Value, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => fields_mut(object).insert(field.to_owned(), value.clone()),
        None => fields_mut(object).remove(field),
    };
}

/// Makes `metadata.<field>` what it is in `from`, absence included.
pub(crate) fn copy_metadata(object: &mut Value, from: &Value, field: &str) {
    let metadata = map_mut(object, "metadata");
    match from.get("metadata").and_then(|metadata| metadata.get(field)) {
        Some(value) => metadata.insert(field.to_owned(), value.clone()),
        None => metadata.remove(field),
    };
}
