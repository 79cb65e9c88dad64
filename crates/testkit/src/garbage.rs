//! What controllers do in a real cluster: collecting objects whose owners are gone, emptying namespaces.
//!
//! It runs in rounds until nothing is left to do, at points that a test chooses or some virtual time after a delete;
//! never in between, so that a test can look at the state before it.

use serde_json::{Value, json};

use crate::delete::{FOREGROUND, ORPHAN};
use crate::object;
use crate::state::{State, Writer};
use crate::store::Key;

/// How the server's own controllers are named in records of writes.
pub(crate) const COLLECTOR: &str = "garbage-collector";
const NAMESPACES: &str = "namespace-controller";

/// What is to be done with one object.
enum Step {
    /// Remove it, or mark it if finalizers hold it.
    Delete(&'static str),
    /// Store it as it should be.
    Rewrite(Value),
    /// Remove it although its kind is never removed at once.
    Finish,
}

impl State {
    /// Collects until nothing changes. Returns how many objects were touched.
    pub(crate) fn collect_garbage(&mut self) -> usize {
        let mut touched = 0;
        loop {
            let steps: Vec<(Key, Step)> =
                self.store.all().filter_map(|(key, object)| Some((key.clone(), self.step_for(key, object)?))).collect();
            let before = self.store.revision();
            for (key, step) in steps {
                self.take(&key, step);
                touched += 1;
            }
            if self.store.revision() == before {
                return touched;
            }
        }
    }

    fn take(&mut self, key: &Key, step: Step) {
        let Some(kind) = self.kind_by_id(&key.kind) else { return };
        match step {
            Step::Delete(who) => {
                // Nothing to do about a refusal: a real controller tries again in its next round, and so does this one.
                let _ = self.delete(&kind, key, &Writer::internal(who), &json!({}));
            }
            Step::Rewrite(object) => {
                let writer = Writer::internal(COLLECTOR);
                let free = object::is_terminating(&object) && object::finalizers(&object).is_empty();
                let change = if free { self.store.delete(key.clone()) } else { self.store.put(key.clone(), object) };
                self.tell(change, &writer, "");
            }
            Step::Finish => {
                let change = self.store.delete(key.clone());
                self.tell(change, &Writer::internal(NAMESPACES), "");
            }
        }
    }

    fn step_for(&self, key: &Key, object: &Value) -> Option<Step> {
        if key.kind == "namespaces" {
            let empty = !self.store.all().any(|(other, _)| other.namespace == key.name);
            return (object::is_terminating(object) && empty).then_some(Step::Finish);
        }
        let leaving = self.store.get(&Key::new("namespaces", "", &key.namespace));
        if leaving.is_some_and(|namespace| object::is_terminating(namespace)) && !object::is_terminating(object) {
            return Some(Step::Delete(NAMESPACES));
        }
        self.step_for_owned(key, object).or_else(|| self.step_for_held(object))
    }

    /// An object with owners: is any of them left?
    fn step_for_owned(&self, key: &Key, object: &Value) -> Option<Step> {
        let owners = object::list(object, "/metadata/ownerReferences");
        if owners.is_empty() || object::is_terminating(object) {
            return None;
        }
        // Solid: there, and not waiting for its dependents to go or to forget it.
        let is_solid = |owner: &&Value| {
            self.is_there(key, owner)
                && !self.is_leaving(key, owner, FOREGROUND)
                && !self.is_leaving(key, owner, ORPHAN)
        };
        let (solid, rest): (Vec<&Value>, Vec<&Value>) = owners.iter().partition(is_solid);
        if rest.is_empty() {
            return None;
        }
        let is_let_go = rest.iter().any(|owner| self.is_leaving(key, owner, ORPHAN));
        Some(if solid.is_empty() && !is_let_go {
            Step::Delete(COLLECTOR)
        } else {
            Step::Rewrite(with_owners(object, &solid))
        })
    }

    /// An object that waits for its dependents to go (foreground) or to forget it (orphan): are there any left?
    fn step_for_held(&self, object: &Value) -> Option<Step> {
        if !object::is_terminating(object) {
            return None;
        }
        let finalizers = object::finalizers(object);
        let hold = finalizers.iter().find(|one| *one == FOREGROUND || *one == ORPHAN)?;
        let waits_for = |other: &Value| {
            // In the foreground only those dependents count that say they do.
            let mut references = object::list(other, "/metadata/ownerReferences").iter();
            references.any(|owner| {
                object::text(owner, "/uid") == object::uid(object)
                    && (hold == ORPHAN || owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)))
            })
        };
        if self.store.all().any(|(_, other)| waits_for(other)) {
            return None;
        }
        let mut freed = object.clone();
        let left: Vec<String> = finalizers.iter().filter(|one| *one != hold).cloned().collect();
        object::set_metadata(&mut freed, "finalizers", left);
        Some(Step::Rewrite(freed))
    }

    fn owner(&self, key: &Key, owner: &Value) -> Option<&Value> {
        let kind = self.kind_of(owner)?;
        let namespace = if kind.namespaced { key.namespace.as_str() } else { "" };
        let found = self.store.get(&Key::new(&kind.id, namespace, object::text(owner, "/name")))?;
        (object::uid(found) == object::text(owner, "/uid")).then_some(&**found)
    }

    /// An owner of a kind that nobody knows counts as being there, as the real collector cannot tell either.
    fn is_there(&self, key: &Key, owner: &Value) -> bool {
        self.kind_of(owner).is_none() || self.owner(key, owner).is_some()
    }

    /// Whether the owner is being deleted and held by `hold`.
    fn is_leaving(&self, key: &Key, owner: &Value, hold: &str) -> bool {
        self.owner(key, owner).is_some_and(|owner| {
            object::is_terminating(owner) && object::finalizers(owner).iter().any(|one| one == hold)
        })
    }
}

fn with_owners(object: &Value, owners: &[&Value]) -> Value {
    let mut kept = object.clone();
    if owners.is_empty() {
        object::map_mut(&mut kept, "metadata").remove("ownerReferences");
    } else {
        object::set_metadata(&mut kept, "ownerReferences", owners.iter().map(|one| (*one).clone()).collect::<Vec<_>>());
    }
    kept
}
