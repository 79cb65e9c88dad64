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

mod contents;
mod keep;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use self::contents::{Contents, is_newer};
use super::watch::Sink;
use crate::key::ObjectKey;

pub use self::keep::{Keep, Relation};

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

/// Is told of each change, with the store that it happened in.
type Handler<K> = dyn Fn(&Kept<K>, Change<K>) + Send + Sync;

/// The objects of one kind. Clones share them.
pub struct Kept<K>(Arc<Shared<K>>);

struct Shared<K> {
    contents: Mutex<Contents<K>>,
    handler: Box<Handler<K>>,
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
    fn lock(&self) -> MutexGuard<'_, Contents<K>> {
        // Nothing under the lock calls foreign code, so a panic elsewhere leaves it whole.
        self.0.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Keep> Kept<K> {
    /// An empty store that tells `handler` of each change, and of itself.
    pub fn new(handler: impl Fn(&Self, Change<K>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { contents: Mutex::default(), handler: Box::new(handler) }))
    }

    /// The object, if it is there and can be read.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.lock().objects.get(key).cloned()
    }

    /// Every object of one namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let first = ObjectKey::new(namespace, "");
        let contents = self.lock();
        let from = contents.objects.range(first..);
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
        self.lock().referring(relation, to).collect()
    }

    /// The first `limit` of them.
    pub fn first_referring(&self, relation: Relation, to: &ObjectKey, limit: usize) -> Vec<ObjectKey> {
        self.lock().referring(relation, to).take(limit).collect()
    }

    /// Objects that exist but cannot be read by this version, with why.
    pub fn unreadable(&self) -> Vec<(ObjectKey, String)> {
        self.lock().unreadable.iter().map(|(key, why)| (key.clone(), why.clone())).collect()
    }

    /// Takes the answer to one of our own writes: kept if it is a newer state of the object that is there.
    pub fn insert_if_newer(&self, mut object: K) -> bool {
        object.slim();
        let Some(key) = key_of(object.meta()) else { return false };
        let mut contents = self.lock();
        let Some(old) = contents.objects.get(&key) else { return false };
        if old.meta().uid != object.meta().uid || !is_newer(object.meta(), old.meta()) {
            return false;
        }
        contents.put(key, object);
        drop(contents);
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
        let mut contents = self.lock();
        contents.unreadable.remove(&key);
        contents.put_if_newer(key.clone(), object);
        drop(contents);
        self.tell();
        Some(key)
    }

    fn remove(&self, key: &ObjectKey, uid: Option<&str>) {
        let mut contents = self.lock();
        contents.bury(uid);
        contents.unreadable.remove(key);
        // Another uid: the one that is gone was replaced already.
        let is_the_one = |kept: &Arc<K>| uid.is_none() || kept.meta().uid.as_deref() == uid;
        if contents.objects.get(key).is_some_and(is_the_one) {
            contents.take(key);
        }
        drop(contents);
        self.tell();
    }

    /// Tells the handler what it has not been told. Whoever finds another thread telling leaves it to that one, so the
    /// order of the changes is the order in which it hears of them.
    fn tell(&self) {
        let mut contents = self.lock();
        if contents.telling {
            return;
        }
        contents.telling = true;
        drop(contents);
        // A handler that panics takes its thread along, not the telling.
        let done = Telling(self);
        while let Some(change) = done.next() {
            (self.0.handler)(self, change);
        }
    }
}

struct Telling<'a, K>(&'a Kept<K>);

impl<K> Telling<'_, K> {
    fn next(&self) -> Option<Change<K>> {
        let mut contents = self.0.lock();
        let next = contents.untold.pop_front();
        // Under the same lock as the look that found nothing: a change put there later finds nobody telling.
        contents.telling = next.is_some();
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
        let contents = self.kept.lock();
        self.unseen = Some(contents.objects.keys().chain(contents.unreadable.keys()).cloned().collect());
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

#[cfg(test)]
mod tests;
