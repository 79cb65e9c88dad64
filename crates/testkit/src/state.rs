//! The server's memory: objects, kinds, counters, and what has changed since somebody was last told.
//!
//! Everything here is synchronous and knows neither clients nor faults. A request is one call under one lock, as the
//! real server's writes are one transaction each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::access::Access;
use crate::clock::Clock;
use crate::kind::Kind;
use crate::object;
use crate::refusal::Refusal;
use crate::store::{Change, Key, Store};

/// Who writes, through which request.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// Number of the call, 0 for the server itself and for direct access by a test.
    pub(crate) call: usize,
    pub(crate) who: String,
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
    /// Unknown fields are an error instead of being forgotten.
    pub(crate) strict: bool,
}

impl Writer {
    /// The server's own controllers, or a test that writes directly.
    pub(crate) fn internal(who: &str) -> Self {
        Self { call: 0, who: who.to_owned(), manager: who.to_owned(), dry_run: false, strict: false }
    }
}

/// A change with its author.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) change: Change,
    pub(crate) writer: Writer,
    pub(crate) subresource: String,
    pub(crate) at: Duration,
}

/// The memory.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) access: Access,
    kinds: BTreeMap<String, Arc<Kind>>,
    uids: u64,
    generated_names: u64,
    /// Changes that watchers and hooks have not been told of yet.
    pub(crate) fresh: Vec<Written>,
}

impl State {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            store: Store::new(),
            access: Access::default(),
            kinds: Kind::built_in().map(|kind| (kind.id.clone(), kind)).collect(),
            uids: 0,
            generated_names: 0,
            fresh: Vec::new(),
        }
    }

    /// Makes a kind known, or known anew.
    pub(crate) fn install(&mut self, kind: Arc<Kind>) {
        self.kinds.insert(kind.id.clone(), kind);
    }

    /// Forgets a kind and all of its objects.
    pub(crate) fn uninstall(&mut self, id: &str) {
        if self.kinds.remove(id).is_some() {
            let keys: Vec<Key> = self.store.all().map(|(key, _)| key.clone()).filter(|key| key.kind == id).collect();
            for key in keys {
                let change = self.store.delete(key);
                self.tell(change, &Writer::internal("api-server"), "");
            }
        }
    }

    /// All kinds, sorted by name.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }

    /// The kind that a path names.
    pub(crate) fn kind(&self, group: &str, version: &str, plural: &str) -> Result<Arc<Kind>, Refusal> {
        self.kinds
            .values()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
            .cloned()
            .ok_or_else(Refusal::no_such_path)
    }

    /// The kind with this id.
    pub(crate) fn kind_by_id(&self, id: &str) -> Option<Arc<Kind>> {
        self.kinds.get(id).cloned()
    }

    /// The kind that an object, or a reference with `apiVersion` and `kind`, says it is of.
    pub(crate) fn kind_of(&self, object: &Value) -> Option<Arc<Kind>> {
        self.kinds.values().find(|kind| kind.claims(object)).cloned()
    }

    /// The next UID: unique, shaped like one, and the same in every run.
    pub(crate) fn next_uid(&mut self) -> String {
        self.uids += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.uids)
    }

    /// A name for `generateName`: five characters, as the server adds.
    pub(crate) fn next_name(&mut self, prefix: &str) -> String {
        self.generated_names += 1;
        format!("{prefix}{:05}", self.generated_names)
    }

    /// The namespace must be there, and must not be going away if something new shall be made in it.
    pub(crate) fn check_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Refusal> {
        if !kind.namespaced {
            return Ok(());
        }
        let Some(namespaces) = self.kind_by_id("namespaces") else { return Ok(()) };
        match self.store.get(&Key::new("namespaces", "", namespace)) {
            None => Err(Refusal::not_found(&namespaces, namespace)),
            Some(found) if object::is_terminating(found) => Err(Refusal::namespace_terminating(kind, name, namespace)),
            Some(_) => Ok(()),
        }
    }

    /// Remembers a change for those who have to be told.
    pub(crate) fn tell(&mut self, change: Change, writer: &Writer, subresource: &str) {
        self.fresh.push(Written {
            change,
            writer: writer.clone(),
            subresource: subresource.to_owned(),
            at: self.clock.elapsed(),
        });
    }
}
