//! Who owns which field: `metadata.managedFields`, read, kept up to date and written back.
//!
//! A set of fields is a set of paths to leaves. A leaf is a scalar, an empty map, a list that is replaced as a whole,
//! a value of a set, or the bare existence of an item of a list map. Ownership of system fields is never recorded.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::object;
use crate::shape::{ListMerge, Shape, item_key};

/// One step of a path, spelled as `fieldsV1` spells it: `f:name`, `k:{"key":"value"}`, `v:"value"`.
pub(crate) type Step = String;
/// A path to a leaf.
pub(crate) type Path = Vec<Step>;
/// Fields somebody owns.
pub(crate) type Fields = BTreeSet<Path>;

/// One entry of `metadata.managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) manager: String,
    /// `Apply` or `Update`.
    pub(crate) operation: &'static str,
    pub(crate) subresource: String,
    pub(crate) api_version: String,
    pub(crate) time: String,
    pub(crate) fields: Fields,
}

impl Entry {
    /// Whether a write by the same manager, in the same way, through the same door, goes into this entry.
    pub(crate) fn is_same_writer(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && self.api_version == other.api_version
    }
}

/// The entries of `object`.
pub(crate) fn entries(object: &Value) -> Vec<Entry> {
    let entries = object::list(object, "/metadata/managedFields").iter().map(|entry| {
        let mut fields = Fields::new();
        if let Some(tree) = entry.get("fieldsV1").and_then(Value::as_object) {
            read_tree(tree, &mut Vec::new(), &mut fields);
        }
        Entry {
            manager: object::text(entry, "/manager").to_owned(),
            operation: if object::text(entry, "/operation") == "Apply" { "Apply" } else { "Update" },
            subresource: object::text(entry, "/subresource").to_owned(),
            api_version: object::text(entry, "/apiVersion").to_owned(),
            time: object::text(entry, "/time").to_owned(),
            fields,
        }
    });
    entries.collect()
}

/// Writes `entries` into `object`, those that own nothing left out.
pub(crate) fn store(object: &mut Value, entries: &[Entry]) {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| (entry.operation, &entry.time, &entry.manager, &entry.api_version, &entry.subresource));
    let list: Vec<Value> = sorted
        .into_iter()
        .filter(|entry| !entry.fields.is_empty())
        .map(|entry| {
            let mut tree = Map::new();
            for path in &entry.fields {
                write_tree(&mut tree, path);
            }
            let mut shown = json!({
                "manager": entry.manager,
                "operation": entry.operation,
                "apiVersion": entry.api_version,
                "fieldsType": "FieldsV1",
                "fieldsV1": tree,
            });
            if !entry.time.is_empty() {
                object::fields_mut(&mut shown).insert("time".to_owned(), entry.time.clone().into());
            }
            if !entry.subresource.is_empty() {
                object::fields_mut(&mut shown).insert("subresource".to_owned(), entry.subresource.clone().into());
            }
            shown
        })
        .collect();
    let metadata = object::map_mut(object, "metadata");
    if list.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), list.into());
    }
}

fn read_tree(tree: &Map<String, Value>, path: &mut Path, fields: &mut Fields) {
    if tree.is_empty() && !path.is_empty() {
        fields.insert(path.clone());
    }
    for (step, below) in tree {
        if step == "." {
            fields.insert(path.clone());
        } else if let Some(below) = below.as_object() {
            path.push(step.clone());
            read_tree(below, path, fields);
            path.pop();
        }
    }
}

fn write_tree(tree: &mut Map<String, Value>, path: &[Step]) {
    let Some((step, rest)) = path.split_first() else {
        tree.insert(".".to_owned(), json!({}));
        return;
    };
    let known = tree.contains_key(step);
    let below = object::fields_mut(tree.entry(step.clone()).or_insert_with(|| json!({})));
    if rest.is_empty() {
        // A leaf that has others below it, as the existence of a list item does, is marked with a dot.
        if known {
            below.insert(".".to_owned(), json!({}));
        }
        return;
    }
    // Paths come sorted, so a leaf that is also a prefix was written just before.
    if known && below.is_empty() {
        below.insert(".".to_owned(), json!({}));
    }
    write_tree(below, rest);
}

/// A field as far as ownership is concerned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// The bare existence of a map or list that is merged part by part. Only updates own it: they make it.
    Container,
    /// The existence of a value in a set, or of an item in a list map. May have many owners.
    Member,
    /// A value.
    Leaf(Value),
}

/// The fields of `object` that can be claimed, system fields left out.
pub(crate) fn claimable(shape: Shape<'_>, object: &Value) -> BTreeMap<Path, Node> {
    let mut found = nodes(shape, object);
    found.retain(|_, node| *node != Node::Container);
    found
}

/// All fields of `object`, system fields left out.
pub(crate) fn nodes(shape: Shape<'_>, object: &Value) -> BTreeMap<Path, Node> {
    let mut found = BTreeMap::new();
    let Some(fields) = object.as_object() else { return found };
    for (name, value) in fields {
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for (field, value) in value.as_object().into_iter().flatten() {
                    if is_owned_metadata(field) {
                        let mut path = vec!["f:metadata".to_owned(), format!("f:{field}")];
                        collect(shape.field("metadata").field(field), value, &mut path, &mut found);
                    }
                }
            }
            _ => collect(shape.field(name), value, &mut vec![format!("f:{name}")], &mut found),
        }
    }
    found
}

fn is_owned_metadata(field: &str) -> bool {
    matches!(field, "labels" | "annotations" | "finalizers" | "ownerReferences" | "generateName")
}

fn collect(shape: Shape<'_>, value: &Value, path: &mut Path, found: &mut BTreeMap<Path, Node>) {
    match value {
        Value::Object(fields) if !fields.is_empty() && !shape.is_atomic_map() => {
            if !shape.is_always_there() {
                found.entry(path.clone()).or_insert(Node::Container);
            }
            for (name, value) in fields {
                path.push(format!("f:{name}"));
                collect(shape.field(name), value, path, found);
                path.pop();
            }
        }
        Value::Array(items) if !items.is_empty() && shape.list_merge() != ListMerge::Atomic => {
            found.insert(path.clone(), Node::Container);
            for item in items {
                let keys = match shape.list_merge() {
                    ListMerge::Map(keys) => Some(keys),
                    _ => None,
                };
                path.push(match &keys {
                    Some(keys) => format!("k:{}", item_key(item, keys)),
                    None => format!("v:{item}"),
                });
                found.insert(path.clone(), Node::Member);
                if keys.is_some() {
                    collect(shape.item(), item, path, found);
                }
                path.pop();
            }
        }
        other => {
            found.insert(path.clone(), Node::Leaf(other.clone()));
        }
    }
}

/// Records an update: what `writer` changed is its own from now on, and nobody else's.
///
/// `door` says which leaves this way of writing can own at all (status or everything else).
pub(crate) fn record_update(
    shape: Shape<'_>,
    live: Option<&Value>,
    object: &mut Value,
    mut writer: Entry,
    door: impl Fn(&Path) -> bool,
) {
    let before = live.map(|live| nodes(shape, live)).unwrap_or_default();
    let after = nodes(shape, object);
    let gained: Fields = after
        .iter()
        .filter(|(path, value)| door(path) && before.get(*path) != Some(value))
        .map(|(path, _)| path.clone())
        .collect();
    let lost: Fields = before.keys().filter(|path| !after.contains_key(*path)).cloned().collect();

    let mut entries = live.map(entries).unwrap_or_default();
    for entry in &mut entries {
        let mine = entry.is_same_writer(&writer);
        // The existence of a list item may belong to several; only values have one owner after an update.
        entry.fields.retain(|path| {
            let taken = gained.contains(path) && !mine && matches!(after.get(path), Some(Node::Leaf(_)));
            !lost.contains(path) && !taken
        });
    }
    if let Some(mine) = entries.iter_mut().find(|entry| entry.is_same_writer(&writer)) {
        if !gained.is_empty() {
            mine.fields.extend(gained);
            mine.time = writer.time;
        }
    } else {
        writer.fields = gained;
        entries.push(writer);
    }
    store(object, &entries);
}
