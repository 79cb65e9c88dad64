//! What stands behind the lock of a store: the objects, who refers to whom, and the changes still to be told.
//!
//! Calls nobody: whoever changes something here tells of it after the lock is released.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Change, Keep, Relation};
use crate::key::ObjectKey;

/// Uids of deleted objects that are remembered against an event that comes twice. A watch that repeats itself repeats
/// what is recent; a uid takes about 50 bytes, so this is 13 kB.
const GRAVES: usize = 256;

/// What a store holds.
pub(super) struct Contents<K> {
    pub(super) objects: BTreeMap<ObjectKey, Arc<K>>,
    /// Who refers to whom, sorted by whom, so that one range holds all who refer to one object.
    pub(super) references: BTreeSet<(Relation, ObjectKey, Arc<str>)>,
    /// Objects that exist and cannot be read, with why.
    pub(super) unreadable: BTreeMap<ObjectKey, String>,
    graves: VecDeque<String>,
    /// Changes that the handler has not been told yet.
    pub(super) untold: VecDeque<Change<K>>,
    /// Whether some thread is telling.
    pub(super) telling: bool,
}

impl<K> Default for Contents<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            references: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            graves: VecDeque::new(),
            untold: VecDeque::new(),
            telling: false,
        }
    }
}

impl<K> Contents<K> {
    /// The keys of all that refer to `to`, by name.
    pub(super) fn referring<'a>(
        &'a self,
        relation: Relation,
        to: &'a ObjectKey,
    ) -> impl Iterator<Item = ObjectKey> + 'a {
        let first = (relation, to.clone(), Arc::from(""));
        let from = self.references.range((Bound::Included(first), Bound::Unbounded));
        from.take_while(move |(is, key, _)| *is == relation && key == to)
            .map(|(_, key, name)| key.beside(Arc::clone(name)))
    }
}

impl<K: Keep> Contents<K> {
    pub(super) fn put_if_newer(&mut self, key: ObjectKey, object: K) {
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

    pub(super) fn put(&mut self, key: ObjectKey, object: K) {
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

    pub(super) fn take(&mut self, key: &ObjectKey) {
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

    pub(super) fn bury(&mut self, uid: Option<&str>) {
        let Some(uid) = uid else { return };
        if !self.graves.iter().any(|grave| grave == uid) {
            if self.graves.len() >= GRAVES {
                self.graves.pop_front();
            }
            self.graves.push_back(uid.to_owned());
        }
    }
}

/// Whether `new` is a later state than `old` of one object. Versions that are no numbers cannot be ordered; then the
/// state that came last counts.
pub(super) fn is_newer(new: &ObjectMeta, old: &ObjectMeta) -> bool {
    let number = |metadata: &ObjectMeta| metadata.resource_version.as_deref()?.parse::<u64>().ok();
    match (number(new), number(old)) {
        (Some(new), Some(old)) => new > old,
        _ => new.resource_version != old.resource_version,
    }
}
