//! What the queue knows, and each step it can take, with the time handed in.
//!
//! Nothing here waits or reads a clock, so every rule of the queue can be tested as a sequence of calls. Holds: a key is
//! in a lane if and only if it is ready, in `wakes` if and only if it has a wake, and counted in the loads if and only if
//! it runs.

mod passes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::lane::{Group, Lane, Place, Ticket};
use super::limits::{Admission, Limits, Load};
use super::{Running, Snapshot, Urgency, Work};
use crate::key::ObjectKey;

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
    groups: BTreeMap<Group, Load>,
    namespaces: BTreeMap<Arc<str>, Load>,
    next_ticket: Ticket,
    /// Whether the last pass that began had to wait for an urgent one to begin first.
    routine_is_owed: bool,
    last_started: Option<Instant>,
    last_finished: Option<Instant>,
}

/// One per resource that has a wake, nearly all of which are idle: what only a few have at a time is boxed.
struct Entry<W> {
    group: Arc<str>,
    /// Work that no pass has been given yet.
    pending: Option<Box<(W, Urgency)>>,
    wake: Option<Wake<W>>,
    /// Whether the last pass ran long. Forgotten with the entry, so that a key is quick until it shows otherwise.
    slow: bool,
    phase: Phase,
}

struct Wake<W> {
    at: Instant,
    ticket: Ticket,
    work: W,
}

enum Phase {
    Idle,
    Ready(Box<Standing>),
    Running(Box<Pass>),
}

/// A pass that runs.
struct Pass {
    since: Instant,
    ticket: Ticket,
    /// The group it was counted in, whatever the key belongs to by now.
    group: Group,
    /// Whether it was counted as a pass of a slow key.
    slow: bool,
    overtime: bool,
    meanwhile: Meanwhile,
    /// Since when somebody waits for what it does.
    awaited_since: Option<Instant>,
}

/// What happened to a key while its pass runs, of which the pass knows nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// A wake was set from outside.
    Woken,
    /// The object is gone or made anew: whatever the pass answers is about something else.
    Forgotten,
}

/// In which lane a key waits, and where in it.
struct Standing {
    urgency: Urgency,
    group: Group,
    place: Place,
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
            namespaces: BTreeMap::new(),
            next_ticket: 0,
            routine_is_owed: false,
            last_started: None,
            last_finished: None,
        }
    }

    /// Merges `work` into what `key` has to do, and makes it ready unless it runs.
    pub(super) fn add(&mut self, key: ObjectKey, group: Arc<str>, work: W, urgency: Urgency, now: Instant) {
        let (key, mut entry) = self.take_out(key, group);
        entry.pending = Some(match entry.pending.take() {
            None => Box::new((work, urgency)),
            Some(mut pending) => {
                let (older, before) = &mut *pending;
                older.merge(work);
                *before = urgency.max(*before);
                pending
            }
        });
        self.put_back(key, entry, now);
    }

    /// Gives `key` the wake `at`, in the place of the one it had.
    pub(super) fn set_wake(&mut self, key: ObjectKey, group: Arc<str>, work: W, at: Instant) {
        let (key, mut entry) = self.take_out(key, group);
        if let Phase::Running(pass) = &mut entry.phase
            && pass.meanwhile == Meanwhile::Nothing
        {
            pass.meanwhile = Meanwhile::Woken;
        }
        self.replace_wake(&key, &mut entry, Some((at, work)));
        // No time is needed: a wake makes nothing ready, and what is ready already keeps its place.
        self.put_back(key, entry, at);
    }

    /// Drops what `key` has to do.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        let Some(mut entry) = self.entries.remove(key) else { return };
        self.replace_wake(key, &mut entry, None);
        match &mut entry.phase {
            Phase::Idle => {}
            Phase::Ready(standing) => self.lane(standing.urgency).remove(&standing.group, &standing.place),
            Phase::Running(pass) => {
                pass.meanwhile = Meanwhile::Forgotten;
                entry.pending = None;
                self.entries.insert(key.clone(), entry);
            }
        }
    }

    /// When `tick` has to be called next, if nothing else happens before.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        let wake = self.wakes.keys().next().map(|(at, _)| *at);
        let permit = self.permits.keys().next().map(|(until, _)| *until);
        // While nobody waits, it does not matter when a permit is given back.
        let permit = permit.filter(|_| self.urgent.len() + self.routine.len() > 0);
        wake.into_iter().chain(permit).min()
    }

    fn oldest_waiting(&self, now: Instant) -> Option<Duration> {
        let wake = self.wakes.keys().next().map(|(at, _)| *at).filter(|at| *at <= now);
        let since = self.urgent.oldest().into_iter().chain(self.routine.oldest()).chain(wake).min()?;
        Some(now.saturating_duration_since(since))
    }

    pub(super) fn awaited(&self, now: Instant) -> BTreeMap<ObjectKey, Instant> {
        let since = |entry: &Entry<W>| {
            let pending = entry.pending.as_ref().and_then(|pending| pending.0.awaited_since());
            let wake = entry.wake.as_ref().and_then(|wake| wake.work.awaited_since());
            let running = match &entry.phase {
                Phase::Running(pass) if pass.meanwhile != Meanwhile::Forgotten => pass.awaited_since,
                _ => None,
            };
            [pending, wake, running].into_iter().flatten().min().filter(|since| *since <= now)
        };
        self.entries.iter().filter_map(|(key, entry)| Some((key.clone(), since(entry)?))).collect()
    }

    pub(super) fn snapshot(&self, now: Instant) -> Snapshot {
        let waits = |since: Instant| now.saturating_duration_since(since);
        let running = self.entries.iter().filter_map(|(key, entry)| match &entry.phase {
            Phase::Running(pass) => Some(Running { key: key.clone(), since: pass.since, overtime: pass.overtime }),
            Phase::Idle | Phase::Ready(_) => None,
        });
        // All that keeps anybody else waiting is what the others hold, and they give it back.
        let admission = |group: &Group| self.admission(group);
        let startable = [&self.urgent, &self.routine].into_iter().filter_map(|lane| lane.oldest_startable(admission));
        Snapshot {
            depth: self.entries.values().filter(|entry| entry.pending.is_some()).count(),
            ready: self.urgent.len() + self.routine.len(),
            scheduled: self.wakes.len(),
            running: running.collect(),
            oldest_ready: startable.map(waits).max(),
            oldest_waiting: self.oldest_waiting(now),
            last_started: self.last_started,
            last_finished: self.last_finished,
        }
    }

    /// Which keys of `group` may start.
    fn admission(&self, group: &Group) -> Admission {
        let own = self.groups.get(group).copied().unwrap_or_default();
        let namespace = self.namespaces.get(&group.namespace).copied().unwrap_or_default();
        self.limits.admission(own, namespace, self.all)
    }

    /// The entry of `key`, out of the map, moved to `group`. Texts that are here already are used again: each event brings
    /// its own, and what is remembered elsewhere under this key shares them.
    fn take_out(&mut self, key: ObjectKey, group: Arc<str>) -> (ObjectKey, Entry<W>) {
        match self.entries.remove_entry(&key) {
            Some((key, mut entry)) => {
                if entry.group != group {
                    entry.group = group;
                }
                (key, entry)
            }
            None => (key, Entry { group, pending: None, wake: None, slow: false, phase: Phase::Idle }),
        }
    }

    /// Puts an entry where it belongs by now: a lane if it has work and does not run, nowhere if it has nothing at all.
    fn put_back(&mut self, key: ObjectKey, mut entry: Entry<W>, now: Instant) {
        if let Some(urgency) = entry.pending.as_ref().map(|pending| pending.1) {
            let group = Group { namespace: Arc::clone(&key.namespace), name: Arc::clone(&entry.group) };
            entry.phase = self.stand(&key, entry.phase, urgency, group, entry.slow, now);
        }
        let empty = matches!(entry.phase, Phase::Idle) && entry.wake.is_none();
        if !empty {
            self.entries.insert(key, entry);
        }
    }

    /// Lets a key with work wait in the lane of `urgency` and `group`. One that waits there already stays as it stands,
    /// or its group would lose its turn with every new event; one that moves keeps its age.
    fn stand(
        &mut self,
        key: &ObjectKey,
        phase: Phase,
        urgency: Urgency,
        group: Group,
        slow: bool,
        now: Instant,
    ) -> Phase {
        let place = match phase {
            Phase::Running(_) => return phase,
            Phase::Ready(standing) if standing.urgency == urgency && standing.group == group => {
                return Phase::Ready(standing);
            }
            Phase::Ready(standing) => {
                self.lane(standing.urgency).remove(&standing.group, &standing.place);
                standing.place
            }
            Phase::Idle => Place { ticket: self.ticket(), since: now, slow },
        };
        self.lane(urgency).insert(key.clone(), &group, &place);
        Phase::Ready(Box::new(Standing { urgency, group, place }))
    }

    fn lane(&mut self, urgency: Urgency) -> &mut Lane {
        match urgency {
            Urgency::Now => &mut self.urgent,
            Urgency::Routine => &mut self.routine,
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
