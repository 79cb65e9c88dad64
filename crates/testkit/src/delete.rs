//! DELETE: preconditions, finalizers, propagation.
//!
//! An object with finalizers is only marked; it goes when the last one is removed. What belongs to a deleted object goes
//! later, through `garbage`.

use serde_json::{Value, json};

use crate::kind::{Generation, Kind};
use crate::object;
use crate::refusal::Refusal;
use crate::state::{State, Writer};
use crate::store::Key;

/// Holds an object until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Holds an object until its dependents no longer name it.
pub(crate) const ORPHAN: &str = "orphan";

impl State {
    /// Deletes one object; answers with what is left of it, or with a success.
    pub(crate) fn delete(
        &mut self,
        kind: &Kind,
        key: &Key,
        writer: &Writer,
        options: &Value,
    ) -> Result<Value, Refusal> {
        let Some(live) = self.store.get(key).cloned() else {
            return Err(Refusal::not_found(kind, &key.name));
        };
        check_preconditions(kind, key, options, &live)?;
        let mut finalizers = object::finalizers(&live);
        let hold = match object::text(options, "/propagationPolicy") {
            "Foreground" => Some(FOREGROUND),
            "Orphan" => Some(ORPHAN),
            _ => None,
        };
        if let Some(hold) = hold.filter(|hold| !finalizers.iter().any(|one| one == hold)) {
            finalizers.push(hold.to_owned());
        }
        let stays = !finalizers.is_empty() || kind.id == "namespaces";
        if writer.dry_run {
            return Ok(if stays { (*live).clone() } else { success(kind, &live) });
        }
        if !stays {
            let change = self.store.delete(key.clone());
            self.tell(change, writer, "");
            return Ok(success(kind, &live));
        }
        let mut marked = (*live).clone();
        if !finalizers.is_empty() {
            object::set_metadata(&mut marked, "finalizers", finalizers);
        }
        if !object::is_terminating(&live) {
            object::set_metadata(&mut marked, "deletionTimestamp", self.clock.stamp());
            if kind.id != "namespaces" {
                object::set_metadata(&mut marked, "deletionGracePeriodSeconds", 0);
            }
            if kind.generation != Generation::Absent {
                let generation = live.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
                object::set_metadata(&mut marked, "generation", generation + 1);
            }
            if kind.id == "namespaces" {
                object::map_mut(&mut marked, "status").insert("phase".to_owned(), "Terminating".into());
            }
        }
        if marked == *live {
            return Ok(marked);
        }
        let change = self.store.put(key.clone(), marked);
        self.tell(change.clone(), writer, "");
        Ok(change.new.as_deref().cloned().unwrap_or_default())
    }
}

fn check_preconditions(kind: &Kind, key: &Key, options: &Value, live: &Value) -> Result<(), Refusal> {
    for (field, word, present) in
        [("uid", "UID", object::uid(live)), ("resourceVersion", "ResourceVersion", object::resource_version(live))]
    {
        let wanted = object::text(options, &format!("/preconditions/{field}"));
        if !wanted.is_empty() && wanted != present {
            let fate = if field == "uid" { "deleted and then recreated" } else { "modified" };
            let why = format!(
                "the {word} in the precondition ({wanted}) does not match the {word} in record ({present}). \
                 The object might have been {fate}"
            );
            return Err(Refusal::precondition(kind, &key.name, &why));
        }
    }
    Ok(())
}

/// The `Status` that answers a delete after which nothing is left.
fn success(kind: &Kind, live: &Value) -> Value {
    let mut details = json!({ "name": object::name(live), "kind": kind.plural, "uid": object::uid(live) });
    if !kind.group.is_empty() {
        object::fields_mut(&mut details).insert("group".to_owned(), kind.group.clone().into());
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}
