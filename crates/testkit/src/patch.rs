//! The three kinds of patch that are instructions (JSON merge patch, strategic merge patch, JSON patch): what an object
//! looks like after them. Server-side apply, which is a claim and not an instruction, is in `apply`.

use serde_json::{Map, Value};

use crate::kind::Kind;
use crate::refusal::Refusal;
use crate::shape::{ListMerge, Shape, item_key};

/// How a patch body is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7386: maps merge, null removes, lists are replaced.
    Merge,
    /// Kubernetes' own: like merge, but lists with a merge key merge item by item.
    Strategic,
    /// RFC 6902: a list of operations, all or nothing.
    Json,
    /// Server-side apply.
    Apply,
}

impl PatchKind {
    /// The kind that a content type stands for.
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/json-patch+json" => Some(Self::Json),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// `live` as it is after `patch`.
pub(crate) fn patched(kind: &Kind, how: PatchKind, live: &Value, patch: &Value) -> Result<Value, Refusal> {
    let mut object = live.clone();
    match how {
        PatchKind::Merge | PatchKind::Apply => {
            if !patch.is_object() {
                return Err(Refusal::bad_request(not_a_map(patch)));
            }
            json_patch::merge(&mut object, patch);
        }
        PatchKind::Strategic => {
            if kind.is_custom() {
                return Err(Refusal::unsupported_media(
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ));
            }
            let Some(fields) = patch.as_object() else {
                return Err(Refusal::bad_request(not_a_map(patch)));
            };
            merge_map(Shape::of(kind), &mut object, fields);
        }
        PatchKind::Json => {
            let operations = serde_json::from_value::<json_patch::Patch>(patch.clone())
                .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))?;
            json_patch::patch(&mut object, &operations).map_err(|_| Refusal::unprocessable())?;
        }
    }
    Ok(object)
}

fn not_a_map(patch: &Value) -> String {
    let found = crate::object::go_word(patch);
    format!("error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
}

/// Directives of a strategic merge patch; none of them is stored.
fn is_directive(key: &str) -> bool {
    key.starts_with('$')
}

fn merge_map(shape: Shape<'_>, target: &mut Value, patch: &Map<String, Value>) {
    let fields = crate::object::fields_mut(target);
    if patch.get("$patch").and_then(Value::as_str) == Some("replace") {
        fields.clear();
    }
    for (key, list) in
        patch.iter().filter_map(|(key, list)| Some((key.strip_prefix("$deleteFromPrimitiveList/")?, list)))
    {
        let gone = list.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(Value::Array(items)) = fields.get_mut(key) {
            items.retain(|item| !gone.contains(item));
        }
    }
    for (key, value) in patch.iter().filter(|(key, _)| !is_directive(key)) {
        let shape = shape.field(key);
        match value {
            Value::Null => {
                fields.remove(key);
            }
            Value::Object(patch) => {
                if patch.get("$patch").and_then(Value::as_str) == Some("delete") {
                    fields.remove(key);
                } else {
                    merge_map(shape, fields.entry(key.clone()).or_insert(Value::Null), patch);
                }
            }
            Value::Array(patch) => {
                merge_list(shape, fields.entry(key.clone()).or_insert(Value::Null), patch);
            }
            scalar => {
                fields.insert(key.clone(), scalar.clone());
            }
        }
    }
}

fn merge_list(shape: Shape<'_>, target: &mut Value, patch: &[Value]) {
    let mut items = match (shape.list_merge(), target.take()) {
        (ListMerge::Atomic, _) => Vec::new(),
        (_, Value::Array(items)) => items,
        _ => Vec::new(),
    };
    match shape.list_merge() {
        ListMerge::Atomic => items.extend(patch.iter().cloned()),
        ListMerge::Set => {
            for value in patch {
                if !items.contains(value) {
                    items.push(value.clone());
                }
            }
        }
        ListMerge::Map(keys) => merge_items(shape.item(), &keys, &mut items, patch),
    }
    *target = Value::Array(items);
}

fn merge_items(shape: Shape<'_>, keys: &[String], items: &mut Vec<Value>, patch: &[Value]) {
    // `{"$patch": "replace"}` as an item of its own says that the list given is the whole list.
    if patch.iter().any(|item| item == &serde_json::json!({"$patch": "replace"})) {
        items.clear();
    }
    for item in patch {
        let Some(fields) = item.as_object() else { continue };
        let key = item_key(item, keys);
        let directive = fields.get("$patch").and_then(Value::as_str);
        if directive == Some("delete") {
            items.retain(|present| item_key(present, keys) != key);
            continue;
        }
        if fields.keys().all(|key| is_directive(key)) {
            continue;
        }
        if let Some(present) = items.iter_mut().find(|present| item_key(present, keys) == key) {
            merge_map(shape, present, fields);
        } else {
            let mut made = Value::Null;
            merge_map(shape, &mut made, fields);
            items.push(made);
        }
    }
}
