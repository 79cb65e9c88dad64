//! The resources and connections as last seen, kept by us.
//!
//! Fed from two sides: by a watch, and by the answers to our own writes, so that the pass after a status write never
//! decides on the object from before it. Of two states of one object the one with the higher resource version wins,
//! whichever side it came from. Only the watch adds and removes objects; the answer to a write can at most renew one
//! that is there, so a late answer never brings a deleted object back.
//!
//! Each difference is told to one handler, in order, with nothing locked: the handler may ask this store or any other.
//! The answer to our own write is told as well, because it may carry an edit by somebody else that the watch will never
//! show separately; a handler that compares old and new sees that a mere status write needs no pass (invariant I10).

mod keep;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::watch::Sink;
use crate::key::ObjectKey;

pub use self::keep::{Keep, Relation};

/// Uids of deleted objects that are remembered against an event that comes twice. A watch that repeats itself repeats
/// what is recent; a uid takes about 50 bytes, so this is 13 kB.
const GRAVES: usize = 256;

/// What changed in the store.
#[derive(Debug)]
pub enum Change<K> {
    /// An object that was not there.
    Added(Arc<K>),
    /// A newer state of an object.
    Changed {
        /// As it was kept.
        old: Arc<K>,
        /// As it is kept now.
        new: Arc<K>,
    },
    /// An object that is gone, as it was last kept.
    Removed(Arc<K>),
}

/// The objects of one kind. Clones share them.
pub struct Kept<K>(Arc<Shared<K>>);

struct Shared<K> {
    inner: Mutex<Inner<K>>,
    handler: Box<dyn Fn(Change<K>) + Send + Sync>,
}

struct Inner<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    /// Who refers to whom, sorted by whom, so that one range holds all who refer to one object.
    references: BTreeSet<(Relation, ObjectKey, Arc<str>)>,
    /// Objects that exist and cannot be read, with why.
    unreadable: BTreeMap<ObjectKey, String>,
    graves: VecDeque<String>,
    /// Changes that the handler has not been told yet.
    untold: VecDeque<Change<K>>,
    /// Whether some thread is telling.
    telling: bool,
}

impl<K> Clone for Kept<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> std::fmt::Debug for Kept<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("objects", &self.lock().objects.len()).finish_non_exhaustive()
    }
}

impl<K> Kept<K> {
    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        // Nothing under the lock calls foreign code, so a panic elsewhere leaves it whole.
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Keep> Kept<K> {
    /// An empty store that tells `handler` of each change.
    pub fn new(handler: impl Fn(Change<K>) + Send + Sync + 'static) -> Self {
        let inner = Inner {
            objects: BTreeMap::new(),
            references: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            graves: VecDeque::new(),
            untold: VecDeque::new(),
            telling: false,
        };
        Self(Arc::new(Shared { inner: Mutex::new(inner), handler: Box::new(handler) }))
    }

    /// The object, if it is there and can be read.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.lock().objects.get(key).cloned()
    }

    /// Every object of one namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let first = ObjectKey::new(namespace, "");
        let inner = self.lock();
        let from = inner.objects.range(first..);
        from.take_while(|(key, _)| *key.namespace == *namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Every object.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.lock().objects.values().cloned().collect()
    }

    /// How many objects there are, the unreadable ones left out.
    pub fn len(&self) -> usize {
        self.lock().objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lock().objects.is_empty()
    }

    /// The keys of all that refer to `to`, by name.
    pub fn referring(&self, relation: Relation, to: &ObjectKey) -> Vec<ObjectKey> {
        let first = (relation, to.clone(), Arc::from(""));
        let inner = self.lock();
        let from = inner.references.range((Bound::Included(first), Bound::Unbounded));
        from.take_while(|(is, key, _)| *is == relation && key == to)
            .map(|(_, key, name)| key.beside(Arc::clone(name)))
            .collect()
    }

    /// Objects that exist but cannot be read by this version, with why.
    pub fn unreadable(&self) -> Vec<(ObjectKey, String)> {
        self.lock().unreadable.iter().map(|(key, why)| (key.clone(), why.clone())).collect()
    }

    /// Takes the answer to one of our own writes: kept if it is a newer state of the object that is there.
    pub fn insert_if_newer(&self, mut object: K) -> bool {
        object.slim();
        let Some(key) = key_of(object.meta()) else { return false };
        let mut inner = self.lock();
        let Some(old) = inner.objects.get(&key) else { return false };
        if old.meta().uid != object.meta().uid || !is_newer(object.meta(), old.meta()) {
            return false;
        }
        inner.put(key, object);
        drop(inner);
        self.tell();
        true
    }

    /// The end of a watch that feeds this store.
    pub fn sink(&self) -> KeptSink<K> {
        KeptSink { kept: self.clone(), unseen: None }
    }

    fn apply(&self, mut object: K) -> Option<ObjectKey> {
        object.slim();
        let key = key_of(object.meta())?;
        let mut inner = self.lock();
        inner.unreadable.remove(&key);
        inner.put_if_newer(key.clone(), object);
        drop(inner);
        self.tell();
        Some(key)
    }

    fn remove(&self, key: &ObjectKey, uid: Option<&str>) {
        let mut inner = self.lock();
        inner.bury(uid);
        inner.unreadable.remove(key);
        // Another uid: the one that is gone was replaced already.
        let is_the_one = |kept: &Arc<K>| uid.is_none() || kept.meta().uid.as_deref() == uid;
        if inner.objects.get(key).is_some_and(is_the_one) {
            inner.take(key);
        }
        drop(inner);
        self.tell();
    }

    /// Tells the handler what it has not been told. Whoever finds another thread telling leaves it to that one, so the
    /// order of the changes is the order in which it hears of them.
    fn tell(&self) {
        let mut inner = self.lock();
        if inner.telling {
            return;
        }
        inner.telling = true;
        drop(inner);
        // A handler that panics takes its thread along, not the telling.
        let done = Telling(self);
        while let Some(change) = done.next() {
            (self.0.handler)(change);
        }
    }
}

struct Telling<'a, K>(&'a Kept<K>);

impl<K> Telling<'_, K> {
    fn next(&self) -> Option<Change<K>> {
        let mut inner = self.0.lock();
        let next = inner.untold.pop_front();
        // Under the same lock as the look that found nothing: a change put there later finds nobody telling.
        inner.telling = next.is_some();
        next
    }
}

impl<K> Drop for Telling<'_, K> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().telling = false;
        }
    }
}

impl<K: Keep> Inner<K> {
    fn put_if_newer(&mut self, key: ObjectKey, object: K) {
        if object.meta().uid.as_ref().is_some_and(|uid| self.graves.contains(uid)) {
            return;
        }
        if let Some(old) = self.objects.get(&key) {
            if old.meta().uid == object.meta().uid {
                if !is_newer(object.meta(), old.meta()) {
                    return;
                }
            } else {
                // Deleted and made anew while nobody looked: two changes, so that nothing of the first one lives on.
                self.take(&key);
            }
        }
        self.put(key, object);
    }

    fn put(&mut self, key: ObjectKey, object: K) {
        let key = self.with_shared_texts(key);
        let new = Arc::new(object);
        for (relation, name) in new.references().into_iter().filter(|(_, name)| !name.is_empty()) {
            let to = self.reference_to(relation, &key, name);
            self.references.insert((relation, to, Arc::clone(&key.name)));
        }
        match self.objects.insert(key.clone(), Arc::clone(&new)) {
            None => self.untold.push_back(Change::Added(new)),
            Some(old) => {
                self.forget_references(&key, &old, Some(&new));
                self.untold.push_back(Change::Changed { old, new });
            }
        }
    }

    /// `key` with the texts of keys that are there: one allocation per namespace, not one per object.
    fn with_shared_texts(&self, key: ObjectKey) -> ObjectKey {
        match self.objects.range(..=&key).next_back() {
            Some((same, _)) if *same == key => same.clone(),
            Some((near, _)) if near.namespace == key.namespace => near.beside(key.name),
            _ => key,
        }
    }

    /// The key of what `from` refers to by `name`, again with texts that are there: a thousand resources name one connection.
    fn reference_to(&self, relation: Relation, from: &ObjectKey, name: &str) -> ObjectKey {
        if *name == *from.name {
            return from.clone();
        }
        let wanted = (relation, from.beside(name), Arc::from(""));
        match self.references.range(&wanted..).next() {
            Some((is, to, _)) if *is == relation && *to == wanted.1 => to.clone(),
            _ => wanted.1,
        }
    }

    fn take(&mut self, key: &ObjectKey) {
        if let Some(old) = self.objects.remove(key) {
            self.forget_references(key, &old, None);
            self.bury(old.meta().uid.as_deref());
            self.untold.push_back(Change::Removed(old));
        }
    }

    fn forget_references(&mut self, key: &ObjectKey, old: &K, new: Option<&Arc<K>>) {
        let still = new.map(|new| new.references()).unwrap_or_default();
        for reference in old.references() {
            if !still.contains(&reference) {
                let (relation, name) = reference;
                self.references.remove(&(relation, key.beside(name), Arc::clone(&key.name)));
            }
        }
    }

    fn bury(&mut self, uid: Option<&str>) {
        let Some(uid) = uid else { return };
        if !self.graves.iter().any(|grave| grave == uid) {
            if self.graves.len() >= GRAVES {
                self.graves.pop_front();
            }
            self.graves.push_back(uid.to_owned());
        }
    }
}

/// Feeds a [`Kept`] from a watch, and finds at the end of a list what is gone.
#[derive(Debug)]
pub struct KeptSink<K> {
    kept: Kept<K>,
    /// During a list: what was kept when it began and has not come yet.
    unseen: Option<BTreeSet<ObjectKey>>,
}

impl<K> KeptSink<K> {
    fn seen(&mut self, key: &ObjectKey) {
        if let Some(unseen) = &mut self.unseen {
            unseen.remove(key);
        }
    }
}

impl<K: Keep> Sink<K> for KeptSink<K> {
    fn relist_started(&mut self) {
        let inner = self.kept.lock();
        self.unseen = Some(inner.objects.keys().chain(inner.unreadable.keys()).cloned().collect());
    }

    fn applied(&mut self, object: K) {
        if let Some(key) = self.kept.apply(object) {
            self.seen(&key);
        }
    }

    fn deleted(&mut self, gone: &ObjectMeta) {
        if let Some(key) = key_of(gone) {
            self.kept.remove(&key, gone.uid.as_deref());
        }
    }

    fn relist_done(&mut self) {
        for key in self.unseen.take().unwrap_or_default() {
            self.kept.remove(&key, None);
        }
    }

    /// The last readable state stays: the object is there, and whoever refers to it must not think it gone.
    fn undecodable(&mut self, namespace: &str, name: &str, why: &str) {
        let key = ObjectKey::new(namespace, name);
        self.seen(&key);
        self.kept.lock().unreadable.insert(key, why.to_owned());
    }
}

fn key_of(metadata: &ObjectMeta) -> Option<ObjectKey> {
    Some(ObjectKey::new(metadata.namespace.as_deref()?, metadata.name.as_deref()?))
}

/// Whether `new` is a later state than `old` of one object. Versions that are no numbers cannot be ordered; then the
/// state that came last counts.
fn is_newer(new: &ObjectMeta, old: &ObjectMeta) -> bool {
    let number = |metadata: &ObjectMeta| metadata.resource_version.as_deref()?.parse::<u64>().ok();
    match (number(new), number(old)) {
        (Some(new), Some(old)) => new > old,
        _ => new.resource_version != old.resource_version,
    }
}

#[cfg(test)]
mod tests;
