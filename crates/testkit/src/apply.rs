//! Server-side apply: a manager says which fields it wants to be what, and owns them from then on.
//!
//! A field that another manager owns with another value is a conflict unless forced; a field that this manager applied
//! before and no longer names goes, unless somebody else owns it too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::kind::Kind;
use crate::object;
use crate::ownership::{self, Entry, Fields, Node, Path};
use crate::refusal::Refusal;
use crate::shape::{ListMerge, Shape, item_key};

/// `live` (or nothing) after `writer` has applied `wanted`, managed fields included.
pub(crate) fn applied(
    kind: &Kind,
    live: Option<&Value>,
    wanted: &Value,
    mut writer: Entry,
    force: bool,
) -> Result<Value, Refusal> {
    let shape = Shape::of(kind);
    let claimed = ownership::claimable(shape, wanted);
    let present = live.map(|live| ownership::nodes(shape, live)).unwrap_or_default();
    let mut entries = live.map(ownership::entries).unwrap_or_default();

    if force {
        for entry in entries.iter_mut().filter(|entry| !entry.is_same_writer(&writer)) {
            entry.fields.retain(|path| !is_contested(path, &claimed, &present));
        }
    } else {
        refuse_conflicts(&entries, &writer, &claimed, &present)?;
    }

    let mut result = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    merge(shape, &mut result, wanted);
    let claims: Fields = claimed.into_keys().collect();
    let mine = entries.iter().position(|entry| entry.is_same_writer(&writer));
    let before = mine.and_then(|at| entries.get(at)).map(|entry| entry.fields.clone()).unwrap_or_default();
    let others: Vec<&Path> =
        entries.iter().filter(|entry| !entry.is_same_writer(&writer)).flat_map(|entry| &entry.fields).collect();
    // Items of lists come before what is in them: where the item goes as a whole, its fields are not looked for.
    for path in before.difference(&claims) {
        let held = others.iter().any(|other| other.starts_with(path)) || claims.iter().any(|own| own.starts_with(path));
        if !held {
            remove(shape, &mut result, path);
        }
    }
    // The time of an entry is when its manager last changed the object, not when it last agreed with it.
    let is_changed = live != Some(&result);
    if let Some(mine) = mine.and_then(|at| entries.get_mut(at)) {
        mine.fields = claims;
        if is_changed {
            mine.time = writer.time;
        }
    } else {
        writer.fields = claims;
        if !is_changed {
            writer.time.clear();
        }
        entries.push(writer);
    }
    ownership::store(&mut result, &entries);
    Ok(result)
}

/// Whether the field is claimed with another value than it has. An empty map or list is one that may have parts: the
/// claim asks for nothing that would change them.
fn is_contested(path: &Path, claimed: &BTreeMap<Path, Node>, present: &BTreeMap<Path, Node>) -> bool {
    claimed.get(path).is_some_and(|node| match present.get(path) {
        Some(Node::Container) => false,
        found => found != Some(node),
    })
}

/// Refuses if any other manager owns a contested field.
fn refuse_conflicts(
    entries: &[Entry],
    writer: &Entry,
    claimed: &BTreeMap<Path, Node>,
    present: &BTreeMap<Path, Node>,
) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    let mut text = String::new();
    for entry in entries.iter().filter(|entry| !entry.is_same_writer(writer)) {
        let paths: Vec<String> =
            entry.fields.iter().filter(|path| is_contested(path, claimed, present)).map(shown).collect();
        if paths.is_empty() {
            continue;
        }
        let who = describe(entry);
        let _ = write!(text, "\nconflicts with {who}:\n- {}", paths.join("\n- "));
        causes.extend(paths.into_iter().map(|path| (path, format!("conflict with {who}"))));
    }
    let message = match causes.as_slice() {
        [] => return Ok(()),
        [(path, who)] => format!("Apply failed with 1 conflict: {who}: {path}"),
        many => format!("Apply failed with {} conflicts: {}", many.len(), text.trim_start()),
    };
    Err(Refusal::apply_conflict(message, causes))
}

fn describe(entry: &Entry) -> String {
    let mut text = format!("\"{}\"", entry.manager);
    if !entry.subresource.is_empty() {
        let _ = write!(text, " with subresource \"{}\"", entry.subresource);
    }
    if entry.operation == "Update" {
        let _ = write!(text, " using {}", entry.api_version);
    }
    text
}

/// A path as messages show it: `.spec.replicas`, `.status.conditions[type="Ready"].status`.
fn shown(path: &Path) -> String {
    path.iter().fold(String::new(), |mut text, step| {
        if let Some(field) = step.strip_prefix("f:") {
            text.push('.');
            text.push_str(field);
        } else if let Some(key) = step.strip_prefix("k:") {
            let fields = serde_json::from_str::<Map<String, Value>>(key).unwrap_or_default();
            let list = fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
            let _ = write!(text, "[{}]", list.join(","));
        } else if let Some(value) = step.strip_prefix("v:") {
            let _ = write!(text, "[={value}]");
        }
        text
    })
}

/// Puts `wanted` over `target`, keeping what it does not name.
fn merge(shape: Shape<'_>, target: &mut Value, wanted: &Value) {
    match wanted {
        Value::Object(fields) if !shape.is_atomic_map() => {
            let target = object::fields_mut(target);
            for (name, value) in fields {
                merge(shape.field(name), target.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        Value::Array(items) => merge_list(shape, target, items),
        other => *target = other.clone(),
    }
}

fn merge_list(shape: Shape<'_>, target: &mut Value, wanted: &[Value]) {
    let mut items = match (shape.list_merge(), target.take()) {
        (ListMerge::Set | ListMerge::Map(_), Value::Array(items)) => items,
        _ => Vec::new(),
    };
    match shape.list_merge() {
        ListMerge::Atomic => items.extend(wanted.iter().cloned()),
        ListMerge::Set => {
            for value in wanted {
                if !items.contains(value) {
                    items.push(value.clone());
                }
            }
        }
        ListMerge::Map(keys) => {
            for item in wanted {
                let key = item_key(item, &keys);
                match items.iter_mut().find(|present| item_key(present, &keys) == key) {
                    Some(present) => merge(shape.item(), present, item),
                    None => items.push(item.clone()),
                }
            }
        }
    }
    *target = Value::Array(items);
}

/// Removes the leaf at `path`, and the maps that are left empty by it.
fn remove(shape: Shape<'_>, target: &mut Value, path: &[String]) {
    let Some((step, rest)) = path.split_first() else { return };
    if let Some(name) = step.strip_prefix("f:") {
        let Some(fields) = target.as_object_mut() else { return };
        let Some(below) = fields.get_mut(name) else { return };
        if !rest.is_empty() {
            remove(shape.field(name), below, rest);
        }
        let emptied = below.as_object().is_some_and(Map::is_empty) || below.as_array().is_some_and(Vec::is_empty);
        if rest.is_empty() || emptied {
            fields.remove(name);
        }
    } else if let Some(items) = target.as_array_mut() {
        let is_meant = |item: &Value| match shape.list_merge() {
            ListMerge::Map(keys) => step == &format!("k:{}", item_key(item, &keys)),
            _ => step == &format!("v:{item}"),
        };
        if rest.is_empty() {
            items.retain(|item| !is_meant(item));
        } else if let Some(item) = items.iter_mut().find(|item| is_meant(item)) {
            remove(shape.item(), item, rest);
        }
    }
}
