//! What the queue knows, and each step it can take, with the time handed in.
//!
//! Nothing here waits or reads a clock, so every rule of the queue can be tested as a sequence of calls. Holds: a key is
//! in a lane if and only if it is ready, in `wakes` if and only if it has a wake, and counted in the loads if and only if
//! it runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::lane::{Lane, Place, Ticket};
use super::limits::{Limits, Load, OVERTIME};
use super::{Next, Running, Snapshot, Urgency, Work};
use crate::key::ObjectKey;

/// The furthest that a wake may lie ahead. Timers take no more than some two years, and an interval of a year is a
/// mistake already.
const FURTHEST: Duration = Duration::from_hours(365 * 24);

/// From here on a routine key that waits gets every other permit, however much urgent work there is. Urgent work comes
/// from people; a flood of it that lasts half a minute comes from a machine, and must not make everything else stale.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct State<W> {
    limits: Limits,
    entries: BTreeMap<ObjectKey, Entry<W>>,
    urgent: Lane,
    routine: Lane,
    /// By time, then by the order in which they were set.
    wakes: BTreeMap<(Instant, Ticket), ObjectKey>,
    /// The passes that hold a permit, by when they have to give it back.
    permits: BTreeMap<(Instant, Ticket), ObjectKey>,
    all: Load,
    groups: BTreeMap<Arc<str>, Load>,
    next_ticket: Ticket,
    /// Whether the last pass that began had to wait for an urgent one to begin first.
    routine_is_owed: bool,
    last_started: Option<Instant>,
    last_finished: Option<Instant>,
}

struct Entry<W> {
    group: Arc<str>,
    /// Work that no pass has been given yet.
    pending: Option<(W, Urgency)>,
    wake: Option<Wake<W>>,
    phase: Phase,
}

struct Wake<W> {
    at: Instant,
    ticket: Ticket,
    work: W,
}

enum Phase {
    Idle,
    Ready(Place),
    Running {
        since: Instant,
        ticket: Ticket,
        /// The group it was counted in, whatever the key belongs to by now.
        group: Arc<str>,
        overtime: bool,
        /// Its object is gone or made anew: what the pass answers is about something else.
        forgotten: bool,
        /// A wake was set from outside meanwhile, of which the pass knows nothing.
        woken: bool,
    },
}

impl<W: Work> State<W> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: BTreeMap::new(),
            urgent: Lane::default(),
            routine: Lane::default(),
            wakes: BTreeMap::new(),
            permits: BTreeMap::new(),
            all: Load::default(),
            groups: BTreeMap::new(),
            next_ticket: 0,
            routine_is_owed: false,
            last_started: None,
            last_finished: None,
        }
    }

    /// Merges `work` into what `key` has to do, and makes it ready unless it runs.
    pub(super) fn add(&mut self, key: ObjectKey, group: Arc<str>, work: W, urgency: Urgency, now: Instant) {
        let mut entry = self.take_out(&key, group);
        entry.pending = Some(match entry.pending.take() {
            None => (work, urgency),
            Some((mut older, before)) => {
                older.merge(work);
                (older, before.max(urgency))
            }
        });
        self.put_back(key, entry, now);
    }

    /// Gives `key` the wake `at`, in the place of the one it had.
    pub(super) fn set_wake(&mut self, key: ObjectKey, group: Arc<str>, work: W, at: Instant) {
        let mut entry = self.take_out(&key, group);
        if let Phase::Running { woken, .. } = &mut entry.phase {
            *woken = true;
        }
        self.replace_wake(&key, &mut entry, Some((at, work)));
        // No time is needed: a wake makes nothing ready, and what is ready already keeps its place.
        self.put_back(key, entry, at);
    }

    /// Drops what `key` has to do.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        let Some(mut entry) = self.entries.remove(key) else {
            return;
        };
        self.leave_lane(&entry);
        self.replace_wake(key, &mut entry, None);
        if let Phase::Running { forgotten, woken, .. } = &mut entry.phase {
            *forgotten = true;
            *woken = false;
            entry.pending = None;
            self.entries.insert(key.clone(), entry);
        }
    }

    /// Lets time pass: wakes that are due become work, passes that run long give their permits back.
    pub(super) fn tick(&mut self, now: Instant) {
        while let Some(((at, _), key)) = self.wakes.first_key_value() {
            if *at > now {
                break;
            }
            let key = key.clone();
            let Some(mut entry) = self.entries.remove(&key) else {
                self.wakes.pop_first();
                continue;
            };
            if let Some(wake) = self.replace_wake(&key, &mut entry, None) {
                let group = Arc::clone(&entry.group);
                self.entries.insert(key.clone(), entry);
                self.add(key, group, wake.work, Urgency::Routine, now);
            }
        }
        while let Some(((until, _), _)) = self.permits.first_key_value() {
            if *until > now {
                break;
            }
            let Some((_, key)) = self.permits.pop_first() else {
                break;
            };
            let Some(Entry { phase: Phase::Running { group, overtime, .. }, .. }) = self.entries.get_mut(&key) else {
                continue;
            };
            *overtime = true;
            self.all.permits -= 1;
            if let Some(load) = self.groups.get_mut(group) {
                load.permits -= 1;
            }
        }
    }

    /// Begins the next pass, if one may begin: whose, and with what to do.
    pub(super) fn start(&mut self, now: Instant) -> Option<(ObjectKey, W)> {
        if !self.limits.allow_any(self.all) {
            return None;
        }
        let (limits, all, groups) = (self.limits, self.all, &self.groups);
        let may_start = |group: &Arc<str>| limits.allow_group(groups.get(group).copied().unwrap_or_default(), all);
        let impatient = self.routine.oldest().is_some_and(|since| now.saturating_duration_since(since) > PATIENCE);
        let routine_first = impatient && self.routine_is_owed;
        let key = if routine_first {
            self.routine.take(may_start).or_else(|| self.urgent.take(may_start))
        } else {
            self.urgent.take(may_start).or_else(|| self.routine.take(may_start))
        }?;
        self.routine_is_owed = !routine_first;

        let ticket = self.ticket();
        let entry = self.entries.get_mut(&key)?;
        let (work, _) = entry.pending.take()?;
        let group = Arc::clone(&entry.group);
        entry.phase = Phase::Running {
            since: now,
            ticket,
            group: Arc::clone(&group),
            overtime: false,
            forgotten: false,
            woken: false,
        };
        self.permits.insert((now + OVERTIME, ticket), key.clone());
        for load in [&mut self.all, self.groups.entry(group).or_default()] {
            load.permits += 1;
            load.running += 1;
        }
        self.last_started = Some(now);
        Some((key, work))
    }

    /// Ends the pass of `key`, which answered `next`.
    pub(super) fn finish(&mut self, key: &ObjectKey, next: Next<W>, now: Instant) {
        let Some(mut entry) = self.entries.remove(key) else {
            return;
        };
        let Phase::Running { since, ticket, group, overtime, forgotten, woken } =
            std::mem::replace(&mut entry.phase, Phase::Idle)
        else {
            // Not running: nothing to end.
            self.entries.insert(key.clone(), entry);
            return;
        };
        self.last_finished = Some(now);
        self.permits.remove(&(since + OVERTIME, ticket));
        self.all.running -= 1;
        self.all.permits -= usize::from(!overtime);
        if let Some(load) = self.groups.get_mut(&group) {
            load.running -= 1;
            load.permits -= usize::from(!overtime);
            if load.running == 0 {
                self.groups.remove(&group);
            }
        }

        match next {
            Next::Wake { after, mut work } if !forgotten => {
                let mut at = now + after.min(FURTHEST);
                // The pass did not know of a wake that was set while it ran: both are kept, in one.
                if woken && let Some(other) = self.replace_wake(key, &mut entry, None) {
                    at = at.min(other.at);
                    work.merge(other.work);
                }
                self.replace_wake(key, &mut entry, Some((at, work)));
            }
            Next::Done if !forgotten && !woken => {
                self.replace_wake(key, &mut entry, None);
            }
            Next::Wake { .. } | Next::Done | Next::Keep => {}
        }
        self.put_back(key.clone(), entry, now);
    }

    /// When `tick` has to be called next, if nothing else happens before.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        let wake = self.wakes.keys().next().map(|(at, _)| *at);
        let permit = self.permits.keys().next().map(|(until, _)| *until);
        // Without an end of a wait in sight, giving back a permit interests nobody.
        let permit = permit.filter(|_| self.urgent.len() + self.routine.len() > 0);
        wake.into_iter().chain(permit).min()
    }

    pub(super) fn snapshot(&self, now: Instant) -> Snapshot {
        let waits = |since: Instant| now.saturating_duration_since(since);
        let running = self.entries.iter().filter_map(|(key, entry)| match entry.phase {
            Phase::Running { since, overtime, .. } => Some(Running { key: key.clone(), since, overtime }),
            Phase::Idle | Phase::Ready(_) => None,
        });
        let may_start = |group: &Arc<str>| {
            // All that keeps such a group waiting is what the others hold, and they give it back.
            self.limits.allow_group(self.groups.get(group).copied().unwrap_or_default(), self.all)
        };
        let oldest_ready = self.urgent.groups().chain(self.routine.groups()).filter(|(group, _)| may_start(group));
        Snapshot {
            depth: self.entries.values().filter(|entry| entry.pending.is_some()).count(),
            ready: self.urgent.len() + self.routine.len(),
            scheduled: self.wakes.len(),
            running: running.collect(),
            oldest_ready: oldest_ready.map(|(_, since)| waits(since)).max(),
            oldest_waiting: self.urgent.oldest().into_iter().chain(self.routine.oldest()).map(waits).max(),
            last_started: self.last_started,
            last_finished: self.last_finished,
        }
    }

    /// The entry of `key`, out of the map and out of its lane, moved to `group`.
    fn take_out(&mut self, key: &ObjectKey, group: Arc<str>) -> Entry<W> {
        match self.entries.remove(key) {
            Some(mut entry) => {
                self.leave_lane(&entry);
                entry.group = group;
                entry
            }
            None => Entry { group, pending: None, wake: None, phase: Phase::Idle },
        }
    }

    /// Puts an entry where it belongs by now: a lane if it has work and does not run, nowhere if it has nothing at all.
    fn put_back(&mut self, key: ObjectKey, mut entry: Entry<W>, now: Instant) {
        if let (Some((_, urgency)), false) = (&entry.pending, matches!(entry.phase, Phase::Running { .. })) {
            let place = match entry.phase {
                Phase::Ready(place) => place,
                _ => Place { ticket: self.ticket(), since: now },
            };
            let lane = match urgency {
                Urgency::Now => &mut self.urgent,
                Urgency::Routine => &mut self.routine,
            };
            lane.insert(key.clone(), &entry.group, &place);
            entry.phase = Phase::Ready(place);
        }
        let empty = matches!(entry.phase, Phase::Idle) && entry.wake.is_none();
        if !empty {
            self.entries.insert(key, entry);
        }
    }

    fn leave_lane(&mut self, entry: &Entry<W>) {
        if let (Phase::Ready(place), Some((_, urgency))) = (&entry.phase, &entry.pending) {
            match urgency {
                Urgency::Now => self.urgent.remove(&entry.group, place.ticket),
                Urgency::Routine => self.routine.remove(&entry.group, place.ticket),
            }
        }
    }

    /// Takes the wake of an entry away, and gives it `next` instead.
    fn replace_wake(&mut self, key: &ObjectKey, entry: &mut Entry<W>, next: Option<(Instant, W)>) -> Option<Wake<W>> {
        let before = entry.wake.take();
        if let Some(wake) = &before {
            self.wakes.remove(&(wake.at, wake.ticket));
        }
        if let Some((at, work)) = next {
            let ticket = self.ticket();
            self.wakes.insert((at, ticket), key.clone());
            entry.wake = Some(Wake { at, ticket, work });
        }
        before
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        self.next_ticket
    }
}
