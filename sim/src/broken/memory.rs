//! Lies that need a memory: of what was last seen, of which content had which version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferrvault_api::marks;
use serde_json::{Value, json};

use super::Variant;
use super::between::{After, Lie, Sent, WORKLOADS};
use super::requests::metadata_of;
use crate::cast;

pub(super) const ALL: &[Variant] = &[
    Variant::api(
        "second-look-from-the-first",
        "the second look at the target is answered from the first",
        &["two-leaders-in-debt", "two-leaders-a-b-c"],
        || Arc::new(FirstLook::default()),
    ),
    Variant::api(
        "trusts-old-status",
        "a pass goes by the status as it was when the process started",
        &["mark-stripped"],
        || Arc::new(OldStatus::default()),
    ),
    Variant::api("no-nonce", "the same content gets the same version again", &["a-b-a-at-once", "a-b-a"], || {
        Arc::new(NoNonce::default())
    }),
    Variant::api("new-version-for-a-repair", "a repaired target gets a new version", &["secret-edited"], || {
        Arc::new(NewForRepair::default())
    }),
    Variant::api(
        "comes-back-under-the-last-paid",
        "a deleted target comes back under lastRolloutHash whatever else is seen",
        &["secret-deleted-and-back"],
        || Arc::new(UnderLastPaid::default()),
    ),
    Variant::api(
        "heartbeat-carries-the-protocol",
        "a heartbeat repeats the versions as they were when the pass began",
        &["missing-workload", "two-leaders-a-b-a"],
        || Arc::new(FullHeartbeat::default()),
    ),
    Variant::api("mark-by-name", "the mark is named by the resource's name", &["recreation", "rotation"], || {
        Arc::new(MarkBy { uids: Mutex::default(), called: |name| name.to_owned() })
    }),
    Variant::api("one-mark-for-all", "all resources share one mark on a workload", &["two-on-one"], || {
        Arc::new(MarkBy { uids: Mutex::default(), called: |_| "shared".to_owned() })
    }),
    Variant::api(
        "any-restart-counts",
        "times are compared instead of versions: a restart by anybody counts as one's own",
        &["two-on-one"],
        || Arc::new(AnyRestart::default()),
    ),
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn version_of(object: &Value) -> Option<String> {
    object.pointer("/metadata/annotations")?.get(marks::CONTENT_HASH)?.as_str().map(str::to_owned)
}

fn is_target(sent: &Sent) -> bool {
    sent.writes("secrets") && sent.namespace != crate::check::SYSTEM
}

/// Resources as last seen, by name.
type Resources = Mutex<BTreeMap<String, Value>>;

fn remember(resources: &Resources, resource: &str, object: &Value) {
    if resource == "ferrvaultsecrets" {
        lock(resources).insert(cast::text(object, "/metadata/name").to_owned(), object.clone());
    }
}

/// The debt is answered as if it had been written.
#[derive(Default)]
pub(super) struct NoDebt(Resources);

impl Lie for NoDebt {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        if !sent.is_debt() {
            return None;
        }
        let mut object = lock(&self.0).get(&sent.name).cloned()?;
        json_patch::merge(&mut object, &json!({ "status": sent.body.get("status") }));
        Some(object)
    }

    fn seen(&self, resource: &str, object: &mut Value, _: bool) -> bool {
        remember(&self.0, resource, object);
        true
    }
}

/// Of each rotation one restart is sent, the others are answered as if they had been.
#[derive(Default)]
pub(super) struct OnlyOne(Mutex<BTreeMap<String, String>>);

impl Lie for OnlyOne {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        if !sent.restarts() {
            return None;
        }
        let annotations = sent.body.pointer("/spec/template/metadata/annotations")?.as_object()?;
        let version =
            annotations.iter().find(|(name, _)| name.starts_with(marks::CONTENT_HASH))?.1.as_str()?.to_owned();
        let workload = format!("{}/{}", sent.resource, sent.name);
        let first = lock(&self.0).entry(version).or_insert_with(|| workload.clone()).clone();
        (first != workload).then(|| metadata_of(sent))
    }
}

#[derive(Default)]
struct FirstLook(Mutex<BTreeMap<String, Value>>);

impl Lie for FirstLook {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        if sent.method != http::Method::GET || sent.resource != "secrets" || !sent.wants_metadata() {
            return None;
        }
        let seen = lock(&self.0).get(&sent.name).cloned()?;
        Some(json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": seen.get("metadata"),
        }))
    }

    fn seen(&self, resource: &str, object: &mut Value, of_watch: bool) -> bool {
        if resource == "secrets" && !of_watch && object.get("data").is_some() {
            lock(&self.0).insert(cast::text(object, "/metadata/name").to_owned(), object.clone());
        }
        true
    }
}

/// The status of each resource as it was first seen, by UID.
#[derive(Default)]
struct OldStatus(Mutex<BTreeMap<String, Value>>);

impl Lie for OldStatus {
    fn seen(&self, resource: &str, object: &mut Value, _: bool) -> bool {
        let is_settled = object.pointer("/status/lastRolloutHash").is_some();
        if resource == "ferrvaultsecrets" && is_settled {
            let uid = cast::text(object, "/metadata/uid").to_owned();
            let status = object.get("status").cloned().unwrap_or_default();
            let first = lock(&self.0).entry(uid).or_insert(status).clone();
            if let Some(fields) = object.as_object_mut() {
                fields.insert("status".to_owned(), first);
            }
        }
        true
    }
}

/// Puts the first version of a content in the place of every later one.
#[derive(Default)]
struct NoNonce(Mutex<Names>);

#[derive(Default)]
struct Names {
    /// By content.
    first: BTreeMap<String, String>,
    /// By version.
    instead: BTreeMap<String, String>,
}

impl Names {
    fn rewrite(&self, body: &mut Value) {
        let mut text = body.to_string();
        for (version, first) in &self.instead {
            text = text.replace(version, first);
        }
        if let Ok(rewritten) = serde_json::from_str(&text) {
            *body = rewritten;
        }
    }
}

impl Lie for NoNonce {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        let mut names = lock(&self.0);
        if is_target(sent)
            && let (Some(version), Some(data)) = (version_of(&sent.body), sent.body.pointer("/data/PASSWORD"))
        {
            let content = data.to_string();
            let first = names.first.entry(content).or_insert_with(|| version.clone()).clone();
            if first != version {
                names.instead.insert(version, first);
            }
        }
        names.rewrite(&mut sent.body);
        None
    }
}

/// Gives a repaired target a version of its own making.
#[derive(Default)]
struct NewForRepair(Mutex<(BTreeMap<String, String>, Names)>);

impl Lie for NewForRepair {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        let mut memory = lock(&self.0);
        if is_target(sent)
            && sent.method == http::Method::PATCH
            && let Some(version) = version_of(&sent.body)
        {
            if memory.0.get(&sent.name) == Some(&version) {
                // As long as a real one, and of no content.
                let new = format!("{}{}", version.get(..29).unwrap_or_default(), "0".repeat(32));
                memory.1.instead.insert(version, new);
            } else {
                memory.0.insert(sent.name.clone(), version);
            }
        }
        memory.1.rewrite(&mut sent.body);
        None
    }

    fn seen(&self, resource: &str, object: &mut Value, _: bool) -> bool {
        if resource == "secrets"
            && let Some(version) = version_of(object)
        {
            lock(&self.0).0.insert(cast::text(object, "/metadata/name").to_owned(), version);
        }
        true
    }
}

/// A target that is made anew gets `lastRolloutHash` as its version, if it has that version's content.
#[derive(Default)]
struct UnderLastPaid {
    resources: Resources,
    /// Contents by version.
    contents: Mutex<BTreeMap<String, Value>>,
    names: Mutex<Names>,
}

impl Lie for UnderLastPaid {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        if is_target(sent)
            && let Some(version) = version_of(&sent.body)
        {
            let data = sent.body.get("data").cloned().unwrap_or_default();
            let resource = lock(&self.resources).get(&sent.body_name()).cloned().unwrap_or_default();
            let paid = cast::text(&resource, "/status/lastRolloutHash").to_owned();
            let same = lock(&self.contents).get(&paid) == Some(&data);
            if sent.method == http::Method::POST && same && paid != version {
                lock(&self.names).instead.insert(version, paid);
            } else if sent.method == http::Method::POST || data.as_object().is_some_and(|data| data.len() > 1) {
                lock(&self.contents).insert(version, data);
            }
        }
        lock(&self.names).rewrite(&mut sent.body);
        None
    }

    fn seen(&self, resource: &str, object: &mut Value, _: bool) -> bool {
        remember(&self.resources, resource, object);
        if resource == "secrets"
            && let (Some(version), Some(data)) = (version_of(object), object.get("data"))
        {
            lock(&self.contents).insert(version, data.clone());
        }
        true
    }
}

impl Sent {
    /// The name of the object that is written: in the address, or of a new one in its body.
    fn body_name(&self) -> String {
        if self.name.is_empty() { cast::text(&self.body, "/metadata/name").to_owned() } else { self.name.clone() }
    }
}

/// What a pass read of its resource when it began, put into the heartbeat at its end.
#[derive(Default)]
struct FullHeartbeat {
    resources: Resources,
    /// As they were when the target was last read.
    at_read: Resources,
}

impl Lie for FullHeartbeat {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        if sent.method == http::Method::GET && sent.resource == "secrets" {
            let seen = lock(&self.resources).clone();
            *lock(&self.at_read) = seen;
        }
        if sent.is_heartbeat()
            && let Some(resource) = lock(&self.at_read).get(&sent.name)
        {
            let mut status = resource.get("status").cloned().unwrap_or_default();
            let times = sent.body.get("status").cloned().unwrap_or_default();
            json_patch::merge(&mut status, &times);
            sent.body = json!({ "status": status });
        }
        None
    }

    fn seen(&self, resource: &str, object: &mut Value, _: bool) -> bool {
        remember(&self.resources, resource, object);
        true
    }
}

/// Marks under another name than the UID.
struct MarkBy {
    /// UIDs by the name of the resource.
    uids: Mutex<BTreeMap<String, String>>,
    called: fn(&str) -> String,
}

impl Lie for MarkBy {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        if sent.restarts() {
            for (name, uid) in lock(&self.uids).iter() {
                renamed(&mut sent.body, uid, &(self.called)(name));
            }
        }
        None
    }

    fn seen(&self, resource: &str, object: &mut Value, _: bool) -> bool {
        if resource == "ferrvaultsecrets" {
            let text = |pointer| cast::text(object, pointer).to_owned();
            lock(&self.uids).insert(text("/metadata/name"), text("/metadata/uid"));
        }
        if WORKLOADS.contains(&resource) {
            for (name, uid) in lock(&self.uids).iter() {
                renamed(object, &(self.called)(name), uid);
            }
        }
        true
    }
}

fn renamed(object: &mut Value, from: &str, to: &str) {
    if let Some(annotations) = object.pointer_mut("/spec/template/metadata/annotations").and_then(Value::as_object_mut)
        && let Some(version) = annotations.get(&marks::workload_mark(from)).cloned()
    {
        annotations.remove(&marks::workload_mark(from));
        annotations.insert(marks::workload_mark(to), version);
    }
}

/// A workload that somebody restarted since the target was written counts as restarted.
#[derive(Default)]
struct AnyRestart {
    /// Version by UID of the resource that wrote it.
    versions: Mutex<BTreeMap<String, String>>,
    /// When each workload was restarted, as last seen before that.
    restarted: Mutex<BTreeMap<String, Value>>,
}

impl Lie for AnyRestart {
    fn after(&self, sent: &Sent, status: Option<u16>) -> After {
        if is_target(sent) && matches!(status, Some(200 | 201)) {
            let uid = cast::text(&sent.body, "/metadata/ownerReferences/0/uid").to_owned();
            if let Some(version) = version_of(&sent.body) {
                lock(&self.versions).insert(uid, version);
            }
        }
        After::Keep
    }

    fn seen(&self, resource: &str, object: &mut Value, _: bool) -> bool {
        let name = cast::text(object, "/metadata/name").to_owned();
        let annotations = object.pointer_mut("/spec/template/metadata/annotations").and_then(Value::as_object_mut);
        let Some(annotations) = annotations.filter(|_| WORKLOADS.contains(&resource)) else { return true };
        let restarted = annotations.get(marks::RESTARTED_AT).cloned().unwrap_or_default();
        let before = lock(&self.restarted).insert(name, restarted.clone());
        if before.unwrap_or_default() != restarted {
            for (uid, version) in lock(&self.versions).iter() {
                annotations.insert(marks::workload_mark(uid), version.clone().into());
            }
        }
        true
    }
}
