//! What people and clusters do in a scenario, as data that can be printed.

use std::fmt;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, marks};
use ferrvault_core::content::{Content, SecretBytes};
use ferrvault_testkit::{ApiServer, build::Built};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cast;

/// The namespace of everything that is not about namespaces.
pub(crate) const NS: &str = "default";

/// A workload with this label refuses every change of its pod template, as an admission policy lets it.
pub const SEALED: &str = "e2e.example/sealed";

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `FerrVaultSecret`.
    Resource,
    /// `FerrVaultConnection`.
    Connection,
    /// Secret.
    Secret,
    /// Deployment.
    Deployment,
    /// `StatefulSet`.
    StatefulSet,
    /// `DaemonSet`.
    DaemonSet,
    /// Namespace.
    Namespace,
}

/// One thing that happens.
#[derive(Clone)]
pub enum Act {
    /// A process starts, and leads whatever happens.
    Start(&'static str),
    /// A process starts and stands for election.
    Stand(&'static str),
    /// A process is asked to end.
    Stop(&'static str),
    /// A process is killed.
    Kill(&'static str),
    /// So many seconds pass.
    Wait(u64),
    /// An object is put there as it is.
    Put(Built),
    /// An object is edited: a merge patch.
    Change(Kind, &'static str, Value),
    /// An object is deleted.
    Delete(Kind, &'static str),
    /// Every value of a vault becomes one of this letter.
    Upstream(&'static str, char),
    /// A vault loses a key.
    Unset(&'static str, &'static str),
    /// A new token is made and stored, the old one is good no longer.
    Token(u32),
    /// The target of a resource as the Go operator left it, with this content.
    GoTarget(&'static str, char),
    /// The status of a resource as the Go operator left it, with `lastRolloutHash` of this content if any.
    GoStatus(&'static str, Option<char>),
    /// The mark of the Go operator on a workload, of this content.
    GoMark(Kind, &'static str, &'static str, char),
    /// Somebody removes all marks from the template of a workload.
    Strip(Kind, &'static str),
    /// From now on somebody removes all marks of a workload in the moment they are made, so many times.
    StripOnSight(Kind, &'static str, u32),
    /// The first object is given to the second one, which owns it from then on.
    Give(Kind, &'static str, Kind, &'static str),
    /// The operator key is deleted.
    LoseKey,
    /// Somebody puts something in the place of the operator key that is none.
    SpoilKey,
    /// The operator key that was spoilt is put back.
    MendKey,
    /// From now on FerrVault never answers about this vault.
    Stall(&'static str),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(who) => write!(f, "{who} starts"),
            Self::Stand(who) => write!(f, "{who} starts and stands for election"),
            Self::Stop(who) => write!(f, "{who} is asked to stop"),
            Self::Kill(who) => write!(f, "{who} is killed"),
            Self::Wait(seconds) => write!(f, "{seconds} s pass"),
            Self::Put(object) => {
                let object = object.clone().json();
                write!(f, "somebody puts {} {}", cast::text(&object, "/kind"), cast::text(&object, "/metadata/name"))
            }
            Self::Change(Kind::Secret, name, _) => write!(f, "somebody edits Secret {name} by hand"),
            Self::Change(kind, name, patch) => write!(f, "somebody edits {kind:?} {name}: {patch}"),
            Self::Delete(kind, name) => write!(f, "somebody deletes {kind:?} {name}"),
            Self::Upstream(vault, letter) => write!(f, "vault {vault} gets content {letter}"),
            Self::Unset(vault, key) => write!(f, "vault {vault} loses key {key}"),
            Self::Token(number) => write!(f, "token {number} takes the place of the one before"),
            Self::GoTarget(resource, letter) => {
                write!(f, "the Go operator left the target of {resource} with {letter}")
            }
            Self::GoStatus(resource, letter) => write!(f, "the Go operator left the status of {resource}: {letter:?}"),
            Self::GoMark(kind, name, _, letter) => write!(f, "the Go operator restarted {kind:?} {name} for {letter}"),
            Self::Strip(kind, name) => write!(f, "somebody strips the marks of {kind:?} {name}"),
            Self::StripOnSight(kind, name, times) => {
                write!(f, "somebody will strip the marks of {kind:?} {name} at once, {times}x")
            }
            Self::Give(kind, name, to, owner) => write!(f, "somebody gives {kind:?} {name} to {to:?} {owner}"),
            Self::LoseKey => write!(f, "somebody deletes the operator key"),
            Self::SpoilKey => write!(f, "somebody spoils the operator key"),
            Self::MendKey => write!(f, "somebody puts the operator key back"),
            Self::Stall(vault) => write!(f, "FerrVault falls silent about vault {vault}"),
        }
    }
}

/// What a vault holds under a letter. Two keys, so that a mixture of two contents is seen.
pub(crate) fn content(letter: char) -> Content {
    let value = |key: &str| SecretBytes::new(format!("{}-{key}-{letter}", crate::check::CANARY).into_bytes());
    ["USER", "PASSWORD"].into_iter().map(|key| (key.to_owned(), value(key))).collect()
}

/// The text of a token.
pub(crate) fn token(number: u32) -> String {
    format!("fft_{}-token-{number}", crate::check::CANARY)
}

/// As the Go operator hashed: SHA-256 over `key 0x00 value 0x00`, sorted by key, unsalted.
pub(crate) fn go_hash(content: &Content) -> String {
    use fmt::Write as _;
    let mut hash = Sha256::new();
    for (key, value) in &content.0 {
        for part in [key.as_bytes(), &[0], value.expose(), &[0]] {
            hash.update(part);
        }
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Edits an object as somebody else would.
pub(crate) fn edit(api: &ApiServer, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
    match kind {
        Kind::Resource => api.edit::<FerrVaultSecret>(NS, name, change),
        Kind::Connection => api.edit::<FerrVaultConnection>(NS, name, change),
        Kind::Secret => api.edit::<Secret>(NS, name, change),
        Kind::Deployment => api.edit::<Deployment>(NS, name, change),
        Kind::StatefulSet => api.edit::<StatefulSet>(NS, name, change),
        Kind::DaemonSet => api.edit::<DaemonSet>(NS, name, change),
        Kind::Namespace => api.edit::<Namespace>("", name, change),
    };
}

/// Whether an object is there.
pub(crate) fn exists(api: &ApiServer, kind: Kind, name: &str) -> bool {
    read(api, kind, name).is_some()
}

/// An object as it is stored.
pub(crate) fn read(api: &ApiServer, kind: Kind, name: &str) -> Option<Value> {
    let (group, plural, namespace) = match kind {
        Kind::Resource => ("ferrvault.com", "ferrvaultsecrets", NS),
        Kind::Connection => ("ferrvault.com", "ferrvaultconnections", NS),
        Kind::Secret => ("", "secrets", NS),
        Kind::Deployment => ("apps", "deployments", NS),
        Kind::StatefulSet => ("apps", "statefulsets", NS),
        Kind::DaemonSet => ("apps", "daemonsets", NS),
        Kind::Namespace => ("", "namespaces", ""),
    };
    api.get_json(group, plural, namespace, name)
}

/// Deletes an object as somebody else would.
pub(crate) fn delete(api: &ApiServer, kind: Kind, name: &str) {
    match kind {
        Kind::Resource => api.delete::<FerrVaultSecret>(NS, name),
        Kind::Connection => api.delete::<FerrVaultConnection>(NS, name),
        Kind::Secret => api.delete::<Secret>(NS, name),
        Kind::Deployment => api.delete::<Deployment>(NS, name),
        Kind::StatefulSet => api.delete::<StatefulSet>(NS, name),
        Kind::DaemonSet => api.delete::<DaemonSet>(NS, name),
        Kind::Namespace => api.delete::<Namespace>("", name),
    }
}

/// Whether a workload is under the admission policy that refuses changes of its template.
pub(crate) fn is_sealed(workload: &Value) -> bool {
    workload.pointer("/metadata/labels").and_then(Value::as_object).is_some_and(|labels| labels.contains_key(SEALED))
}

/// The answer of the API server to a change that its policy refuses.
pub(crate) fn refused_by_policy(plural: &str, kind: &str, name: &str) -> Value {
    let policy = "sealed-workloads";
    let says =
        format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: this object is sealed");
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid", "code": 422,
        "message": format!("{plural}.apps \"{name}\" is forbidden: {says}"),
        "details": { "name": name, "group": "apps", "kind": kind, "causes": [{ "message": says }] },
    })
}

/// Removes every mark of ours from a pod template.
pub(crate) fn strip(template_owner: &mut Value) {
    if let Some(annotations) =
        template_owner.pointer_mut("/spec/template/metadata/annotations").and_then(Value::as_object_mut)
    {
        annotations.retain(|name, _| !name.starts_with("ferrvault.com/"));
    }
}

/// The target that the Go operator would have left.
pub(crate) fn go_target(owner: &Value, resource: &str, letter: char) -> Built {
    let content = content(letter);
    let mut secret = ferrvault_testkit::build::secret(NS, resource)
        .annotated(marks::MANAGED_BY, marks::MANAGER)
        .annotated(marks::CONTENT_HASH, &go_hash(&content))
        .owned_by(owner);
    for (key, value) in &content.0 {
        secret = secret.key(key, value.expose());
    }
    secret
}

/// The status that it would have left, and its finalizer, as a merge patch.
pub(crate) fn go_status(letter: Option<char>) -> Value {
    let mut status = json!({
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Synced", "message": "2 key(s) synced",
            "lastTransitionTime": "2025-12-01T00:00:00Z",
        }],
        "observedGeneration": 1,
        "syncedKeys": ["PASSWORD", "USER"],
        "lastSyncedAt": "2025-12-31T23:00:00Z",
    });
    if let Some(letter) = letter {
        json_patch::merge(&mut status, &json!({ "lastRolloutHash": go_hash(&content(letter)) }));
    }
    json!({ "metadata": { "finalizers": [marks::LEGACY_SECRET_FINALIZER] }, "status": status })
}

/// That `owner` owns an object, as a merge patch.
pub(crate) fn owned_by(owner: &Value) -> Value {
    let of = |pointer| cast::text(owner, pointer);
    json!({ "metadata": { "ownerReferences": [{
        "apiVersion": of("/apiVersion"), "kind": of("/kind"), "name": of("/metadata/name"), "uid": of("/metadata/uid"),
        "controller": true,
    }] } })
}

/// Its mark on a workload, as a merge patch.
pub(crate) fn go_mark(owner: &Value, letter: char) -> Value {
    let annotation = marks::workload_mark(cast::text(owner, "/metadata/uid"));
    let marks = json!({ annotation: go_hash(&content(letter)), marks::RESTARTED_AT: "2025-12-31T22:00:00Z" });
    json!({ "spec": { "template": { "metadata": { "annotations": marks } } } })
}
