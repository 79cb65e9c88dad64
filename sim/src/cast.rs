//! Reads what the checks look at out of stored objects. From the objects alone: nothing here asks an operator, and
//! nothing shares code with one.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ferrvault_core::content::{Content, SecretBytes};
use jiff::Timestamp;
use serde_json::Value;

/// The name of every process whose calls count begins like this.
pub(crate) const OPERATOR: &str = "operator";

/// Whether a process is one of ours.
pub(crate) fn is_operator(who: &str) -> bool {
    who.starts_with(OPERATOR)
}

/// The text at a JSON pointer, empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn texts(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let fields = object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn owned(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Whether a connection carries the finalizer that holds it for its users.
pub(crate) fn is_held(connection: &Value) -> bool {
    let finalizers = items(connection, "/metadata/finalizers");
    finalizers.filter_map(Value::as_str).any(|name| name == ferrvault_api::marks::CONNECTION_FINALIZER)
}

/// A workload by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Workload {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl Workload {
    /// From the kind and name of a list entry.
    fn listed(entry: &Value) -> Option<Self> {
        let kind = KINDS.iter().find(|(kind, _)| *kind == text(entry, "/kind"))?.0;
        Some(Self { kind, name: text(entry, "/name").to_owned() })
    }

    /// From `deployments.apps` and a name.
    pub(crate) fn stored(resource: &str, name: &str) -> Option<Self> {
        let kind = KINDS.iter().find(|(_, stored)| *stored == resource)?.0;
        Some(Self { kind, name: name.to_owned() })
    }
}

const KINDS: [(&str, &str); 3] =
    [("Deployment", "deployments.apps"), ("StatefulSet", "statefulsets.apps"), ("DaemonSet", "daemonsets.apps")];

/// A resource as it is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) generation: i64,
    pub(crate) target: String,
    pub(crate) vault: String,
    pub(crate) names: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) listed: BTreeSet<Workload>,
    pub(crate) status: Status,
}

/// Of a status, what the protocol and the truth are about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Status {
    pub(crate) last_rollout: Option<String>,
    pub(crate) content_hash: Option<String>,
    pub(crate) rollouts: BTreeMap<Workload, String>,
    pub(crate) last_synced: Option<Timestamp>,
    pub(crate) observed_generation: Option<i64>,
    /// Type, status, reason.
    pub(crate) conditions: BTreeMap<String, (String, String)>,
}

impl Status {
    pub(crate) fn says(&self, condition: &str, status: &str, reason: &str) -> bool {
        self.conditions.get(condition).is_some_and(|found| found.0 == status && found.1 == reason)
    }

    /// For messages: `Ready=False AuthFailed, ...`.
    pub(crate) fn spelled(&self) -> String {
        let spell = |(type_, (status, reason)): (&String, &(String, String))| format!("{type_}={status} {reason}");
        self.conditions.iter().map(spell).collect::<Vec<_>>().join(", ")
    }
}

impl Resource {
    pub(crate) fn of(object: &Value) -> Self {
        let name = text(object, "/metadata/name").to_owned();
        let prefixes = items(object, "/spec/transforms").filter(|one| text(one, "/type") == "prefix");
        Self {
            uid: text(object, "/metadata/uid").to_owned(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            generation: object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default(),
            target: owned(object, "/spec/target/name").unwrap_or_else(|| name.clone()),
            vault: text(object, "/spec/vault").to_owned(),
            names: items(object, "/spec/selector/names").filter_map(Value::as_str).map(str::to_owned).collect(),
            prefix: prefixes.map(|one| text(one, "/value")).collect(),
            listed: items(object, "/spec/rolloutRestart").filter_map(Workload::listed).collect(),
            status: status(object),
            name,
        }
    }

    /// What the target has to hold when the vault holds this; nothing where a wanted key is missing or none is left.
    pub(crate) fn wanted(&self, vault: &Content) -> Option<Content> {
        let is_complete = self.names.iter().all(|name| vault.0.contains_key(name));
        let is_wanted = |key: &String| self.names.is_empty() || self.names.contains(key);
        let kept = vault.0.iter().filter(|(key, _)| is_wanted(key));
        let content: Content = kept.map(|(key, value)| (format!("{}{key}", self.prefix), value.clone())).collect();
        (is_complete && !content.is_empty()).then_some(content)
    }
}

fn status(object: &Value) -> Status {
    let rollouts = items(object, "/status/rollouts")
        .filter_map(|entry| Some((Workload::listed(entry)?, text(entry, "/hash").to_owned())))
        .filter(|(_, hash)| !hash.is_empty());
    let conditions = items(object, "/status/conditions").map(|condition| {
        let field = |name: &str| text(condition, name).to_owned();
        (field("/type"), (field("/status"), field("/reason")))
    });
    Status {
        last_rollout: owned(object, "/status/lastRolloutHash"),
        content_hash: owned(object, "/status/contentHash"),
        rollouts: rollouts.collect(),
        last_synced: text(object, "/status/lastSyncedAt").parse().ok(),
        observed_generation: object.pointer("/status/observedGeneration").and_then(Value::as_i64),
        conditions: conditions.collect(),
    }
}

/// A Secret as it is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Secret {
    pub(crate) content: Content,
    pub(crate) version: Option<String>,
    pub(crate) is_managed: bool,
    /// UID of its controller.
    pub(crate) controller: Option<String>,
}

impl Secret {
    pub(crate) fn of(object: &Value) -> Self {
        let annotations = texts(object, "/metadata/annotations");
        let controller = items(object, "/metadata/ownerReferences")
            .find(|owner| owner.pointer("/controller").and_then(Value::as_bool) == Some(true));
        Self {
            content: content(object),
            version: annotations.get(ferrvault_api::marks::CONTENT_HASH).cloned(),
            is_managed: annotations.get(ferrvault_api::marks::MANAGED_BY).map(String::as_str)
                == Some(ferrvault_api::marks::MANAGER),
            controller: controller.map(|owner| text(owner, "/uid").to_owned()),
        }
    }
}

fn content(object: &Value) -> Content {
    let decoded = texts(object, "/data").into_iter();
    decoded.map(|(key, value)| (key, SecretBytes::new(STANDARD.decode(value).unwrap_or_default()))).collect()
}

/// Annotations of the pod template of a workload.
pub(crate) fn template_annotations(object: &Value) -> BTreeMap<String, String> {
    texts(object, "/spec/template/metadata/annotations")
}

/// Everything of a workload but its status and what the server keeps about it, without annotations of the template.
pub(crate) fn beside_annotations(object: &Value) -> Value {
    let mut rest = object.clone();
    for (parent, field) in [
        ("/spec/template/metadata", "annotations"),
        ("/metadata", "managedFields"),
        ("/metadata", "resourceVersion"),
        ("/metadata", "generation"),
        ("", "status"),
    ] {
        if let Some(fields) = rest.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.remove(field);
        }
    }
    // The server counts changes of a DaemonSet's template.
    if let Some(annotations) = rest.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove("deprecated.daemonset.template.generation");
    }
    // A template without metadata gets an empty one with its first annotation.
    if let Some(template) = rest.pointer_mut("/spec/template").and_then(Value::as_object_mut)
        && template.get("metadata").is_some_and(|metadata| metadata.as_object().is_some_and(serde_json::Map::is_empty))
    {
        template.remove("metadata");
    }
    rest
}
