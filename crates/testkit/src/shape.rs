//! How lists and maps merge: the question that strategic merge, server-side apply and field ownership all ask.
//!
//! Custom resources answer from their schema. Built-in kinds answer by the name of the field, which is unambiguous for
//! the fields that an operator touches; a list that is not named here is replaced as a whole.

use serde_json::Value;

use crate::kind::Kind;

/// One owner reference, which is claimed as a whole. No field is called so.
const OWNER: &str = "OwnerReference";

/// How two versions of a list become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListMerge {
    /// The new one replaces the old one.
    Atomic,
    /// Union of values.
    Set,
    /// By the value of these fields.
    Map(Vec<String>),
}

/// A place in an object, as far as merging is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// A node of a custom resource's schema.
    Schema(&'a Value),
    /// A field of a built-in type, by its name.
    Named(&'a str),
    /// Nothing is known.
    Unknown,
}

impl<'a> Shape<'a> {
    /// The shape of a whole object.
    pub(crate) fn of(kind: &'a Kind) -> Self {
        kind.schema.as_ref().map_or(Self::Named(""), |schema| Self::Schema(schema.root()))
    }

    /// The shape of a field.
    pub(crate) fn field(self, name: &'a str) -> Self {
        match self {
            // Metadata is a built-in type wherever it stands.
            Self::Schema(_) if name == "metadata" => Self::Named(name),
            Self::Schema(node) => {
                let named = node.get("properties").and_then(|properties| properties.get(name));
                let any = || node.get("additionalProperties").filter(|schema| schema.is_object());
                named.or_else(any).map_or(Self::Unknown, Self::Schema)
            }
            Self::Named(_) => Self::Named(name),
            Self::Unknown => Self::Unknown,
        }
    }

    /// The shape of an item of a list.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Schema(node) => node.get("items").map_or(Self::Unknown, Self::Schema),
            Self::Named("ownerReferences") => Self::Named(OWNER),
            other => other,
        }
    }

    /// How the list at this place merges.
    pub(crate) fn list_merge(self) -> ListMerge {
        match self {
            Self::Schema(node) => match node.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("map") => ListMerge::Map(crate::object::strings(node.get("x-kubernetes-list-map-keys"))),
                Some("set") => ListMerge::Set,
                _ => ListMerge::Atomic,
            },
            Self::Named(name) => built_in_list(name),
            Self::Unknown => ListMerge::Atomic,
        }
    }

    /// Whether the map at this place is part of every object of a built-in type, so that nobody makes it.
    pub(crate) fn is_always_there(self) -> bool {
        matches!(self, Self::Named("metadata" | "spec" | "status" | "template" | "strategy" | "updateStrategy"))
    }

    /// Whether the map at this place is replaced as a whole.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Self::Schema(node) => node.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            Self::Named(name) => matches!(
                name,
                OWNER
                    | "selector"
                    | "nodeSelector"
                    | "secretKeyRef"
                    | "configMapKeyRef"
                    | "fieldRef"
                    | "nodeSelectorTerms"
            ),
            Self::Unknown => false,
        }
    }
}

fn built_in_list(field: &str) -> ListMerge {
    let keys: &[&str] = match field {
        "finalizers" => return ListMerge::Set,
        "ownerReferences" => &["uid"],
        "conditions" => &["type"],
        "containers" | "initContainers" | "ephemeralContainers" | "volumes" | "env" | "imagePullSecrets" => &["name"],
        "volumeMounts" => &["mountPath"],
        "ports" => &["containerPort", "protocol"],
        _ => return ListMerge::Atomic,
    };
    ListMerge::Map(keys.iter().map(|key| (*key).to_owned()).collect())
}

/// What tells an item of a list map from the others. A missing key field counts as null.
pub(crate) fn item_key(item: &Value, keys: &[String]) -> Value {
    keys.iter()
        .map(|key| {
            let value = match item.get(key) {
                Some(value) => value.clone(),
                // The one key with a default among the built-in types.
                None if key == "protocol" => "TCP".into(),
                None => Value::Null,
            };
            (key.clone(), value)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}
