//! What a pass over a resource has to do, and what is remembered between its passes.
//!
//! Nothing in here matters to the protocol: what matters is on the objects. Losing all of it costs one pass per resource.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::key::ObjectKey;
use crate::queue::Work;

/// Only the newest states of a Secret matter: a burst of foreign edits must not grow the queue.
const SEEN_KEPT: usize = 4;

/// What put a key into the queue, merged while it waits there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The sync stage is due: spec, connection, token or the target's absence.
    pub sync: bool,
    /// A wake: whatever stage's time has come is due.
    pub timer: bool,
    /// Secrets were seen to change, by their resourceVersions: due unless all of them are our own writes.
    pub seen: Vec<String>,
}

impl Due {
    /// The sync stage, whatever the clock says.
    pub fn sync() -> Self {
        Self { sync: true, ..Self::default() }
    }

    /// Whatever stage's time has come.
    pub fn timer() -> Self {
        Self { timer: true, ..Self::default() }
    }

    /// A Secret was seen at this resourceVersion.
    pub fn seen(resource_version: String) -> Self {
        Self { seen: vec![resource_version], ..Self::default() }
    }
}

impl Work for Due {
    fn merge(&mut self, newer: Self) {
        self.sync |= newer.sync;
        self.timer |= newer.timer;
        self.seen.extend(newer.seen);
        let surplus = self.seen.len().saturating_sub(SEEN_KEPT);
        self.seen.drain(..surplus);
    }
}

/// The stages that a pass does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Ask FerrVault and write the target.
    pub sync: bool,
    /// Look for a debt even if the sync stage does not get that far.
    pub restart: bool,
    /// Read the resource past the store: the last pass found it changed.
    pub fresh: bool,
}

/// What is remembered about one resource.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The target's resourceVersion after our last read or write: seeing it in a watch is an echo.
    pub target_version: Option<String>,
    /// When the sync stage is due; `None` before the first pass and without a schedule.
    pub sync_at: Option<Instant>,
    /// When an owed restart is tried again.
    pub restart_at: Option<Instant>,
    /// Sync stages refused in a row.
    pub sync_attempts: u32,
    /// Restart stages in a row that left a debt.
    pub restart_attempts: u32,
    /// Passes in a row that found an object changed under them.
    pub conflicts: u32,
    /// Whether a pass was completed since the process started.
    pub known: bool,
}

impl Memory {
    /// The stages that `due` asks for at `now`; `None` when it was only an echo of our own write.
    pub fn stages(&self, due: &Due, now: Instant) -> Option<Stages> {
        // An empty one stands for a pass that ended without an answer: look at everything.
        let unknown = *due == Due::default();
        let reached = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let news = due.seen.iter().any(|version| self.target_version.as_ref() != Some(version));
        let sync = due.sync || unknown || news || !self.known || (due.timer && reached(self.sync_at));
        let restart = !self.known || (due.timer && reached(self.restart_at));
        (sync || restart).then_some(Stages { sync, restart, fresh: self.conflicts > 0 })
    }

    /// When the next pass is due, if any stage has a time.
    pub fn next(&self) -> Option<Instant> {
        [self.sync_at, self.restart_at].into_iter().flatten().min()
    }
}

/// The memories of all resources.
#[derive(Debug, Default)]
pub struct Memories(Mutex<BTreeMap<ObjectKey, Memory>>);

impl Memories {
    /// What is remembered of `key`; nothing for an unknown one.
    pub fn of(&self, key: &ObjectKey) -> Memory {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    /// Remembers `memory`.
    pub fn keep(&self, key: &ObjectKey, memory: Memory) {
        self.lock().insert(key.clone(), memory);
    }

    /// Forgets a resource that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    /// Forgets everything: another replica led in between.
    pub fn forget_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
