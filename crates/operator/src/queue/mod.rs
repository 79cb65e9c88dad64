//! Which key gets its pass when: at most one pass per key at a time, and nobody waits for a stranger.
//!
//! ```text
//!            add                 a permit is free            the pass returns, nothing came meanwhile
//!   idle ---------> ready ---------------------> running ------------------------------------------> idle
//!    ^  its wake is due ^                          | | add, or its wake is due
//!    |                  |  the pass returns        | v
//!    |                  +------------------------ running, work pending
//! ```
//!
//! - Work that comes while a key waits or runs is merged, never dropped, and handed to one pass.
//! - A key has at most one *wake*, the time of its next pass. Idle keys cost an entry in a map and no task.
//! - Urgent work (a new or edited object) goes before routine, groups take turns, and a pass that runs long gives its
//!   permit back: see [`limits`].
//! - A pass that panics is contained: the other keys do not notice and its own key gets another pass.
//!
//! Must never: run two passes of one key at once, lose work, or depend on the order of a hash map.

mod dispatch;
mod lane;
pub mod limits;
mod state;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::limits::Limits;
use self::state::State;
use crate::key::ObjectKey;

/// What a pass has to do, and why.
///
/// `default()` stands for "nothing is known, look at everything": it is used where a pass ended without an answer.
pub trait Work: Default + Send + 'static {
    /// Takes over what `newer` asks for as well. Runs under the queue's lock: quick, and without a panic.
    fn merge(&mut self, newer: Self);

    /// Since when somebody waits for this to be done; `None` where nobody does, as for a look that is merely scheduled.
    /// A time to come counts from then on.
    fn awaited_since(&self) -> Option<Instant> {
        None
    }
}

/// How soon a key is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// In its turn: a refresh that has come due, a retry.
    Routine,
    /// Before all routine: somebody made or changed something and waits for it.
    Now,
}

/// What a pass leaves behind for its key.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<W> {
    /// The wake stays as it was; a wake that started this very pass is used up.
    Keep,
    /// The next pass is due after `after`, with `work`; an older wake goes.
    Wake {
        /// From the end of the pass.
        after: Duration,
        /// What that pass has to do.
        work: W,
    },
    /// No wake: the next pass needs an event.
    Done,
}

/// Keys that wait for their pass, and the one place that starts passes. Clones are handles to the same queue.
pub struct Queue<W> {
    shared: Arc<Shared<W>>,
}

struct Shared<W> {
    controller: &'static str,
    state: Mutex<State<W>>,
    /// Something changed that may let a pass start or moves the next timer.
    changed: Notify,
}

/// A pass that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Whose.
    pub key: ObjectKey,
    /// When it began.
    pub since: Instant,
    /// Whether it has given its permit back.
    pub overtime: bool,
}

/// The queue at one moment, for watchdog and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Keys with work that no pass has been given yet: those that are ready, and those that run and run again after.
    pub depth: usize,
    /// Keys that wait for a permit.
    pub ready: usize,
    /// Keys that have a wake.
    pub scheduled: usize,
    /// The passes that run, by key.
    pub running: Vec<Running>,
    /// How long the oldest key waits among the groups that may start a pass. Old means that the queue itself stands
    /// still; keys of a group that has used up its share do not count, because they wait for their own group only.
    pub oldest_ready: Option<Duration>,
    /// How long the oldest key waits, whatever it waits for. A wake whose time has come counts from then, although only
    /// the loop that starts passes makes it ready: should that loop stand still, its wakes must not look idle.
    pub oldest_waiting: Option<Duration>,
    /// When a pass last began.
    pub last_started: Option<Instant>,
    /// When a pass last ended.
    pub last_finished: Option<Instant>,
}

impl Snapshot {
    /// How long the pass that runs longest has been running.
    pub fn longest_running(&self, now: Instant) -> Option<Duration> {
        self.running.iter().map(|pass| now.saturating_duration_since(pass.since)).max()
    }
}

impl<W: Work> Queue<W> {
    /// An empty queue of the passes that `controller` names in logs and metrics.
    pub fn new(controller: &'static str, limits: Limits) -> Self {
        let shared = Shared { controller, state: Mutex::new(State::new(limits)), changed: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// The name it was made with.
    pub fn controller(&self) -> &'static str {
        self.shared.controller
    }

    /// Asks for a pass of `key` as soon as it is its turn. The wake of the key stays.
    ///
    /// `group` is whom the key shares its fate with, as its connection: groups take turns.
    pub fn add(&self, key: ObjectKey, group: Arc<str>, work: W, urgency: Urgency) {
        self.state().add(key, group, work, urgency, Instant::now());
        self.shared.changed.notify_one();
    }

    /// Sets the wake of `key`. The wake it had goes, with its work.
    pub fn add_at(&self, key: ObjectKey, group: Arc<str>, work: W, when: Instant) {
        self.state().set_wake(key, group, work, when);
        self.shared.changed.notify_one();
    }

    /// Drops the work and the wake of `key`. A pass that runs goes on, but its answer no longer counts.
    pub fn forget(&self, key: &ObjectKey) {
        self.state().forget(key);
        self.shared.changed.notify_one();
    }

    /// The keys that somebody waits for, each with the time since when: work that no pass was given yet, work of passes
    /// that run, and wakes.
    pub fn awaited(&self) -> BTreeMap<ObjectKey, Instant> {
        self.state().awaited(Instant::now())
    }

    /// How things stand.
    pub fn snapshot(&self) -> Snapshot {
        self.state().snapshot(Instant::now())
    }

    fn state(&self) -> MutexGuard<'_, State<W>> {
        // Nothing of ours panics under this lock; should a `merge` do so, one key's work is the loss, not the queue.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// By hand: a derive would ask `W: Clone`, which a handle does not need.
impl<W> Clone for Queue<W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<W> fmt::Debug for Queue<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("controller", &self.shared.controller).finish_non_exhaustive()
    }
}
