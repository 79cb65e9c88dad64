//! The queue's state against a second one that is too simple to be wrong: every list searched from end to end, every
//! number counted afresh. Both are given the same calls at random and must start the same passes with the same work.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use super::*;
use crate::queue::lane::Group;
use crate::queue::limits::{Admission, Load, OVERTIME};
use crate::queue::state::State;

/// Work as a list of numbers, so that the order of merging shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Listed(Vec<u32>);

impl Work for Listed {
    fn merge(&mut self, newer: Self) {
        self.0.extend(newer.0);
    }
}

struct Model {
    limits: Limits,
    keys: BTreeMap<ObjectKey, Known>,
    /// Groups with somebody waiting, by turn: of the urgent, of the routine.
    turns: [Vec<Group>; 2],
    /// Numbers arrivals.
    order: u64,
    routine_is_owed: bool,
    last_started: Option<Instant>,
    last_finished: Option<Instant>,
}

struct Known {
    group: Group,
    pending: Option<(Vec<u32>, Urgency)>,
    wake: Option<(Instant, u64, Vec<u32>)>,
    /// Number and time of arrival, while it waits.
    waits: Option<(u64, Instant)>,
    /// Whether its last pass ran long.
    slow: bool,
    runs: Option<Runs>,
}

#[expect(clippy::struct_excessive_bools, reason = "a model says plainly what is the case; states would be cleverer")]
struct Runs {
    since: Instant,
    group: Group,
    slow: bool,
    overtime: bool,
    forgotten: bool,
    woken: bool,
}

const LANES: [Urgency; 2] = [Urgency::Now, Urgency::Routine];

impl Model {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            keys: BTreeMap::new(),
            turns: [Vec::new(), Vec::new()],
            order: 0,
            routine_is_owed: false,
            last_started: None,
            last_finished: None,
        }
    }

    fn known(&mut self, key: &ObjectKey, group: &Arc<str>) -> &mut Known {
        let group = Group { namespace: Arc::clone(&key.namespace), name: Arc::clone(group) };
        let new = Known { group: group.clone(), pending: None, wake: None, waits: None, slow: false, runs: None };
        let known = self.keys.entry(key.clone()).or_insert(new);
        known.group = group;
        known
    }

    /// Everything that follows from what was just changed.
    fn settle(&mut self, now: Instant) {
        for known in self.keys.values_mut() {
            if known.runs.is_some() || known.pending.is_none() {
                known.waits = None;
            } else if known.waits.is_none() {
                self.order += 1;
                known.waits = Some((self.order, now));
            }
        }
        self.keys.retain(|_, known| known.runs.is_some() || known.pending.is_some() || known.wake.is_some());
        for (lane, urgency) in LANES.into_iter().enumerate() {
            let waiting: Vec<Group> = self.waiting(urgency).map(|(_, known)| known.group.clone()).collect();
            self.turns[lane].retain(|group| waiting.contains(group));
            for group in waiting {
                if !self.turns[lane].contains(&group) {
                    self.turns[lane].push(group);
                }
            }
        }
    }

    fn waiting(&self, urgency: Urgency) -> impl Iterator<Item = (&ObjectKey, &Known)> {
        self.keys.iter().filter(move |(_, known)| {
            known.waits.is_some() && known.pending.as_ref().is_some_and(|(_, wanted)| *wanted == urgency)
        })
    }

    fn load(&self, counts: impl Fn(&Group) -> bool) -> Load {
        let running = || self.keys.values().filter_map(|known| known.runs.as_ref()).filter(|runs| counts(&runs.group));
        Load {
            permits: running().filter(|runs| !runs.overtime).count(),
            running: running().count(),
            slow: running().filter(|runs| runs.slow).count(),
        }
    }

    fn admission(&self, group: &Group) -> Admission {
        let own = self.load(|other| other == group);
        let namespace = self.load(|other| other.namespace == group.namespace);
        self.limits.admission(own, namespace, self.load(|_| true))
    }

    /// Whether a key that waits may start.
    fn may_start(&self, known: &Known) -> bool {
        match self.admission(&known.group) {
            Admission::None => false,
            Admission::Quick => !known.slow,
            Admission::Any => true,
        }
    }

    fn add(&mut self, key: &ObjectKey, group: &Arc<str>, work: Vec<u32>, urgency: Urgency, now: Instant) {
        let known = self.known(key, group);
        let (mut all, before) = known.pending.take().unwrap_or((Vec::new(), urgency));
        all.extend(work);
        known.pending = Some((all, before.max(urgency)));
        self.settle(now);
    }

    fn set_wake(&mut self, key: &ObjectKey, group: &Arc<str>, work: Vec<u32>, at: Instant, now: Instant) {
        self.order += 1;
        let order = self.order;
        let known = self.known(key, group);
        known.wake = Some((at, order, work));
        if let Some(runs) = &mut known.runs {
            runs.woken = true;
        }
        self.settle(now);
    }

    fn forget(&mut self, key: &ObjectKey, now: Instant) {
        if let Some(known) = self.keys.get_mut(key) {
            (known.pending, known.wake) = (None, None);
            if let Some(runs) = &mut known.runs {
                (runs.forgotten, runs.woken) = (true, false);
            }
        }
        self.settle(now);
    }

    fn tick(&mut self, now: Instant) {
        loop {
            let due = self.keys.iter().filter_map(|(key, known)| {
                let (at, order, _) = known.wake.as_ref()?;
                (*at <= now).then(|| ((*at, *order), key.clone()))
            });
            let Some((_, key)) = due.min() else { break };
            let known = self.keys.get_mut(&key).unwrap();
            let (_, _, work) = known.wake.take().unwrap();
            let group = Arc::clone(&known.group.name);
            self.add(&key, &group, work, Urgency::Routine, now);
        }
        for runs in self.keys.values_mut().filter_map(|known| known.runs.as_mut()) {
            runs.overtime |= runs.since + OVERTIME <= now;
        }
    }

    fn start(&mut self, now: Instant) -> Option<(ObjectKey, Listed)> {
        if !self.limits.allow_any(self.load(|_| true)) {
            return None;
        }
        let oldest = self
            .waiting(Urgency::Routine)
            .filter(|(_, known)| self.may_start(known))
            .filter_map(|(_, known)| known.waits)
            .min();
        let impatient = oldest.is_some_and(|(_, since)| now.duration_since(since) > secs(30));
        let routine_first = impatient && self.routine_is_owed;
        let lanes = if routine_first { [1, 0] } else { [0, 1] };
        let startable = |lane: usize, group: &Group| {
            let waiting = self.waiting(LANES[lane]);
            let waiting = waiting.filter(|(_, known)| known.group == *group && self.may_start(known));
            waiting.min_by_key(|(_, known)| known.waits.unwrap().0).map(|(key, _)| key.clone())
        };
        let (lane, turn, key) = lanes.into_iter().find_map(|lane| {
            let mut turns = self.turns[lane].iter().enumerate();
            turns.find_map(|(turn, group)| Some((lane, turn, startable(lane, group)?)))
        })?;
        let group = self.turns[lane].remove(turn);
        let known = self.keys.get_mut(&key).unwrap();
        let (work, _) = known.pending.take().unwrap();
        let slow = known.slow;
        known.runs = Some(Runs { since: now, group, slow, overtime: false, forgotten: false, woken: false });
        self.routine_is_owed = !routine_first;
        self.last_started = Some(now);
        self.settle(now);
        Some((key, Listed(work)))
    }

    fn finish(&mut self, key: &ObjectKey, next: &Next<Listed>, now: Instant) {
        let known = self.keys.get_mut(key).unwrap();
        let runs = known.runs.take().unwrap();
        known.slow = !runs.forgotten && runs.since + OVERTIME <= now;
        match next {
            _ if runs.forgotten => {}
            Next::Keep => {}
            Next::Done if runs.woken => {}
            Next::Done => known.wake = None,
            Next::Wake { after, work } => {
                let (mut at, mut work) = (now + *after, work.0.clone());
                if let (true, Some((other, _, more))) = (runs.woken, known.wake.take()) {
                    at = at.min(other);
                    work.extend(more);
                }
                self.order += 1;
                known.wake = Some((at, self.order, work));
            }
        }
        self.last_finished = Some(now);
        self.settle(now);
    }

    fn snapshot(&self, now: Instant) -> Snapshot {
        let waits = |known: &Known| Some(now.duration_since(known.waits?.1));
        let startable = |known: &&Known| self.may_start(known);
        let running = self.keys.iter().filter_map(|(key, known)| {
            let runs = known.runs.as_ref()?;
            Some(Running { key: key.clone(), since: runs.since, overtime: runs.overtime })
        });
        Snapshot {
            depth: self.keys.values().filter(|known| known.pending.is_some()).count(),
            ready: self.keys.values().filter(|known| known.waits.is_some()).count(),
            scheduled: self.keys.values().filter(|known| known.wake.is_some()).count(),
            running: running.collect(),
            oldest_ready: self.keys.values().filter(startable).filter_map(waits).max(),
            oldest_waiting: self.keys.values().filter_map(waits).max(),
            last_started: self.last_started,
            last_finished: self.last_finished,
        }
    }
}

/// Gives both the same calls, and compares after each.
fn compare(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let limits = Limits::new(NonZeroUsize::new(rng.usize(1..10)).unwrap());
    let (keys, groups, namespaces) = (rng.usize(1..30), rng.usize(1..8), rng.usize(1..4));
    let (mut state, mut model) = (State::<Listed>::new(limits), Model::new(limits));
    let mut now = Instant::now();
    let mut running: Vec<ObjectKey> = Vec::new();
    for n in 0..400 {
        let number = rng.usize(..keys);
        let any = ObjectKey::new(format!("n{}", number % namespaces), format!("k{number}"));
        let group: Arc<str> = format!("g{}", rng.usize(..groups)).into();
        match rng.u32(..16) {
            0..6 => {
                let urgency = if rng.bool() { Urgency::Now } else { Urgency::Routine };
                state.add(any.clone(), Arc::clone(&group), Listed(vec![n]), urgency, now);
                model.add(&any, &group, vec![n], urgency, now);
            }
            6 => {
                let at = now + Duration::from_millis(rng.u64(..20_000));
                state.set_wake(any.clone(), Arc::clone(&group), Listed(vec![n]), at);
                model.set_wake(&any, &group, vec![n], at, now);
            }
            7 => {
                state.forget(&any);
                model.forget(&any, now);
            }
            8..10 => now += Duration::from_millis(rng.u64(..3_000)),
            10 => now += Duration::from_millis(rng.u64(..40_000)),
            _ if !running.is_empty() => {
                let ended = running.swap_remove(rng.usize(..running.len()));
                let next = match rng.u32(..3) {
                    0 => Next::Keep,
                    1 => Next::Done,
                    _ => Next::Wake { after: Duration::from_millis(rng.u64(..20_000)), work: Listed(vec![n]) },
                };
                model.finish(&ended, &next, now);
                state.finish(&ended, next, now);
            }
            _ => {}
        }
        state.tick(now);
        model.tick(now);
        // Not always all that may start: the loop may be late.
        while rng.u32(..4) > 0 {
            let (started, expected) = (state.start(now), model.start(now));
            assert_eq!(started, expected, "seed {seed}, call {n}");
            let Some((key, _)) = started else { break };
            assert!(!running.contains(&key), "seed {seed}, call {n}: {key} runs already");
            running.push(key);
        }
        assert_eq!(state.snapshot(now), model.snapshot(now), "seed {seed}, call {n}");
    }
}

#[tokio::test(start_paused = true)]
async fn both_start_the_same_passes_whatever_happens() {
    (0..300).for_each(compare);
}
