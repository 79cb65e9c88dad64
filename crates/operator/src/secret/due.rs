//! What a pass over a resource has to do, and what is remembered between its passes.
//!
//! Nothing in here matters to the protocol: what matters is on the objects. Losing all of it costs one pass per resource.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ferrvault_core::schedule;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::key::ObjectKey;
use crate::queue::Work;

/// Only the newest states of a Secret matter: a burst of foreign edits must not grow the queue.
const SEEN_KEPT: usize = 4;

/// What somebody edits is put back at once so many times in a row. Beyond that it is not a person at work but another
/// controller that wants the target otherwise, and answering each of its writes at once would be an endless loop.
const REPAIRS_AT_ONCE: u32 = 3;

/// Longest wait before the next answer to such a writer: the target is wrong for so long at most.
pub(super) const REPAIR_CAP: Duration = Duration::from_mins(1);

/// After so long without a repair the next one is the first again: ten times the longest wait.
const REPAIRS_FORGOTTEN: Duration = Duration::from_mins(10);

/// What put a key into the queue, merged while it waits there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The sync stage is due: spec, connection, token or the target's absence.
    pub sync: bool,
    /// A wake: whatever stage's time has come is due.
    pub timer: bool,
    /// Secrets were seen to change, by their resourceVersions: due unless all of them are our own writes.
    pub seen: Vec<String>,
    /// Since when somebody waits for the pass; `None` for one that is merely scheduled. Says nothing about what is due.
    pub awaited_since: Option<Instant>,
}

impl Due {
    /// The sync stage, whatever the clock says.
    pub fn sync() -> Self {
        Self { sync: true, ..Self::default() }
    }

    /// Whatever stage's time has come. `awaited_since`: the time at which a retry falls due, or since when a pass that
    /// left no record is waited for.
    pub fn timer(awaited_since: Option<Instant>) -> Self {
        Self { timer: true, awaited_since, ..Self::default() }
    }

    /// The target is gone. No resourceVersion is empty, so none of our own writes is meant.
    pub fn gone() -> Self {
        Self::seen(String::new())
    }

    /// A Secret was seen at this resourceVersion.
    pub fn seen(resource_version: String) -> Self {
        Self { seen: vec![resource_version], ..Self::default() }
    }

    /// The same, and somebody waits for it from now on.
    #[must_use]
    pub fn awaited(self) -> Self {
        Self { awaited_since: Some(Instant::now()), ..self }
    }
}

impl Work for Due {
    fn merge(&mut self, newer: Self) {
        self.sync |= newer.sync;
        self.timer |= newer.timer;
        self.seen.extend(newer.seen);
        let surplus = self.seen.len().saturating_sub(SEEN_KEPT);
        self.seen.drain(..surplus);
        self.awaited_since = earlier(self.awaited_since, newer.awaited_since);
    }

    fn awaited_since(&self) -> Option<Instant> {
        self.awaited_since
    }
}

/// The earlier of two times, where there is one at all.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
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
    /// Since when somebody waits for a pass that has not come to its record yet, whatever became of those since.
    pub awaited_since: Option<Instant>,
    /// Whether people were told that the status cannot be written: once, and not again at each try.
    pub told_of_status: bool,
    /// When FerrVault's answer was seen to have changed, until the last workload was restarted for it.
    pub change_seen: Option<Instant>,
    /// When a pass last ended with nothing wrong.
    pub succeeded_at: Option<Timestamp>,
    /// Passes in a row that put back what somebody else had changed, and when the last of them was.
    pub repairs: (u32, Option<Instant>),
    /// What is seen of Secrets starts no pass before this: somebody else writes as often as we do.
    pub quiet_until: Option<Instant>,
}

impl Memory {
    /// The stages that `due` asks for at `now`; `None` when it was only an echo of our own write.
    pub fn stages(&self, due: &Due, now: Instant) -> Option<Stages> {
        // An empty one stands for a pass that ended without an answer: look at everything.
        let unknown = !due.sync && !due.timer && due.seen.is_empty();
        let reached = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let news = self.is_news(due) && self.quiet_until.is_none_or(|until| until <= now);
        let sync = due.sync || unknown || news || !self.known || (due.timer && reached(self.sync_at));
        let restart = !self.known || (due.timer && reached(self.restart_at));
        (sync || restart).then_some(Stages { sync, restart, fresh: self.conflicts > 0 })
    }

    fn is_news(&self, due: &Due) -> bool {
        due.seen.iter().any(|version| self.target_version.as_ref() != Some(version))
    }

    /// No pass was begun for `due`. Where it was no echo, the pass comes when the quiet ends.
    pub fn put_off(&mut self, due: &Due) {
        if self.is_news(due) {
            self.sync_at = earlier(self.sync_at, self.quiet_until);
            self.begin(due);
        }
    }

    /// A pass found the target right, or made it right; `repaired`: it had to put it back. Says whether that has become a
    /// fight that people should know of.
    pub fn held(&mut self, repaired: bool, now: Instant, jitter: f64) -> bool {
        if !repaired {
            return false;
        }
        let (before, last) = self.repairs;
        let in_a_row = last.is_some_and(|last| now.saturating_duration_since(last) < REPAIRS_FORGOTTEN);
        let count = if in_a_row { before.saturating_add(1) } else { 1 };
        self.repairs = (count, Some(now));
        let surplus = count.saturating_sub(REPAIRS_AT_ONCE);
        if surplus == 0 {
            return false;
        }
        self.quiet_until = Some(now + schedule::backoff(surplus, REPAIR_CAP, jitter));
        surplus == 1
    }

    /// When the next pass is due, if any stage has a time.
    pub fn next(&self) -> Option<Instant> {
        earlier(self.sync_at, self.restart_at)
    }

    /// A pass begins that does what `due` asks for.
    pub fn begin(&mut self, due: &Due) {
        self.awaited_since = earlier(self.awaited_since, due.awaited_since);
    }

    /// The work of the next pass. A pass without a record is waited for all along; a retry from when it falls due.
    pub fn wake(&self) -> Due {
        let retries = [(self.sync_at, self.sync_attempts), (self.restart_at, self.restart_attempts)];
        let next = self.next();
        let is_retry = self.conflicts > 0 || retries.iter().any(|(at, attempts)| *attempts > 0 && *at == next);
        Due::timer(earlier(self.awaited_since, next.filter(|_| is_retry)))
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_for_twice_is_waited_for_since_the_first_time() {
        let first = Due::sync().awaited();
        tokio::time::advance(SECOND).await;
        for (mut one, other) in [(first.clone(), Due::sync().awaited()), (Due::sync().awaited(), first.clone())] {
            one.merge(other);
            assert_eq!(one.awaited_since, first.awaited_since);
        }
        let mut scheduled = Due::timer(None);
        scheduled.merge(first.clone());
        assert_eq!((scheduled.timer, scheduled.awaited_since), (true, first.awaited_since));
    }

    #[test]
    fn a_retry_is_waited_for_from_when_it_falls_due_and_a_scheduled_look_is_not() {
        let now = Instant::now();
        let at = |seconds: u32| Some(now + SECOND * seconds);
        for (case, memory, expected) in [
            ("all is well", Memory { sync_at: at(60), ..Memory::default() }, None),
            ("the sync stage was refused", Memory { sync_at: at(60), sync_attempts: 1, ..Memory::default() }, at(60)),
            (
                "a restart is owed before the next look",
                Memory { sync_at: at(60), restart_at: at(5), restart_attempts: 3, ..Memory::default() },
                at(5),
            ),
            (
                "a look comes before the restart is tried again",
                Memory { sync_at: at(60), restart_at: at(90), restart_attempts: 3, ..Memory::default() },
                None,
            ),
            (
                "the pass left no record",
                Memory { sync_at: at(1), restart_at: at(1), conflicts: 1, ..Memory::default() },
                at(1),
            ),
            (
                "the pass left no record, and somebody waits for it",
                Memory { sync_at: at(9), restart_at: at(9), conflicts: 4, awaited_since: at(0), ..Memory::default() },
                at(0),
            ),
            ("nothing is to come", Memory::default(), None),
        ] {
            assert_eq!(memory.wake(), Due::timer(expected), "{case}");
        }
    }

    #[test]
    fn who_waits_does_not_change_what_is_due() {
        let memory = Memory { known: true, target_version: Some("7".to_owned()), ..Memory::default() };
        let now = Instant::now();
        assert_eq!(memory.stages(&Due::seen("7".to_owned()).awaited(), now), None, "an echo stays one");
        let everything = Stages { sync: true, restart: false, fresh: false };
        let nothing_known = Due { awaited_since: Some(now), ..Due::default() };
        assert_eq!(memory.stages(&nothing_known, now), Some(everything));
    }
}
