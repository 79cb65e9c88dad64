//! What etcd is to the real server: every object at every revision, and the order in which things changed.
//!
//! One counter numbers all changes of all kinds. Reads of the past (consistent pages, stale reads, watches that start in
//! the past) come from here and are refused once the past has been compacted.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::object;

/// First revision of a new server: not 0 and not 1, which mean something to clients.
const FIRST_REVISION: u64 = 100;

/// Where an object lives. Sorts as lists are sorted: by namespace, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// `Kind::id`.
    pub(crate) kind: String,
    /// Empty for kinds without a namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// One change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) old: Option<Arc<Value>>,
    /// Nothing when it was deleted.
    pub(crate) new: Option<Arc<Value>>,
}

/// An object from some revision on; nothing stands for "not there".
type Version = (u64, Option<Arc<Value>>);

/// All objects, now and before.
#[derive(Debug)]
pub(crate) struct Store {
    /// Per key the revisions at which it changed.
    objects: BTreeMap<Key, Vec<Version>>,
    changes: Vec<Change>,
    revision: u64,
    compacted: u64,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self { objects: BTreeMap::new(), changes: Vec::new(), revision: FIRST_REVISION, compacted: 0 }
    }

    /// The revision of the last change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The oldest revision that can still be read or watched from.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Forgets what was before `revision`. Returns the revision that is now the oldest.
    pub(crate) fn compact(&mut self, revision: u64) -> u64 {
        self.compacted = revision.min(self.revision).max(self.compacted);
        let oldest = self.compacted;
        self.changes.retain(|change| change.revision > oldest);
        for versions in self.objects.values_mut() {
            let keep = versions.iter().rposition(|(at, _)| *at <= oldest).unwrap_or_default();
            versions.drain(..keep);
        }
        self.objects.retain(|_, versions| versions.iter().any(|(_, object)| object.is_some()));
        oldest
    }

    /// The object as it is now.
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key).and_then(|versions| versions.last()).and_then(|(_, object)| object.as_ref())
    }

    /// The object as it was at `revision`.
    pub(crate) fn get_at(&self, key: &Key, revision: u64) -> Option<&Arc<Value>> {
        at(self.objects.get(key)?, revision)
    }

    /// The objects of a kind as they were at `revision`, of one namespace or of all (empty).
    pub(crate) fn list_at(&self, kind: &str, namespace: &str, revision: u64) -> Vec<&Arc<Value>> {
        self.objects
            .range(Key::new(kind, namespace, "")..)
            .take_while(|(key, _)| key.kind == kind && (namespace.is_empty() || key.namespace == namespace))
            .filter_map(|(_, versions)| at(versions, revision))
            .collect()
    }

    /// Every object that is there now.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter().filter_map(|(key, versions)| Some((key, versions.last()?.1.as_ref()?)))
    }

    /// Changes of a kind after `revision`, oldest first.
    pub(crate) fn changes_after<'a>(&'a self, kind: &'a str, revision: u64) -> impl Iterator<Item = &'a Change> {
        self.changes.iter().filter(move |change| change.revision > revision && change.key.kind == kind)
    }

    /// Stores `object` under the next revision and gives it that resourceVersion.
    pub(crate) fn put(&mut self, key: Key, mut object: Value) -> Change {
        self.revision += 1;
        object::set_metadata(&mut object, "resourceVersion", self.revision.to_string());
        self.record(key, Some(Arc::new(object)))
    }

    /// Removes the object.
    pub(crate) fn delete(&mut self, key: Key) -> Change {
        self.revision += 1;
        self.record(key, None)
    }

    fn record(&mut self, key: Key, new: Option<Arc<Value>>) -> Change {
        let versions = self.objects.entry(key.clone()).or_default();
        let old = versions.last().and_then(|(_, object)| object.clone());
        versions.push((self.revision, new.clone()));
        let change = Change { revision: self.revision, key, old, new };
        self.changes.push(change.clone());
        change
    }
}

fn at(versions: &[Version], revision: u64) -> Option<&Arc<Value>> {
    let (_, object) = versions.iter().rev().find(|(at, _)| *at <= revision)?;
    object.as_ref()
}
