//! From ready to running and back: the steps that depend on time and on what runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::lane::Group;
use super::super::limits::{Load, OVERTIME};
use super::super::{Next, Urgency, Work};
use super::{Entry, Meanwhile, Pass, Phase, State};
use crate::key::ObjectKey;

/// The furthest that a wake may lie ahead. Timers take no more than some two years, and an interval of a year is a
/// mistake already.
const FURTHEST: Duration = Duration::from_hours(365 * 24);

/// From here on a routine key that waits, and could start, gets every other permit, however much urgent work there is.
/// Urgent work comes from people; a flood of it that lasts half a minute comes from a machine, and must not make
/// everything else stale.
const PATIENCE: Duration = Duration::from_secs(30);

impl<W: Work> State<W> {
    /// Lets time pass: wakes that are due become work, passes that run long give their permits back.
    pub(in super::super) fn tick(&mut self, now: Instant) {
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
            let Some(Entry { phase: Phase::Running(pass), .. }) = self.entries.get_mut(&key) else {
                continue;
            };
            pass.overtime = true;
            let group = &pass.group;
            let loads = [self.groups.get_mut(group), self.namespaces.get_mut(&group.namespace), Some(&mut self.all)];
            for load in loads.into_iter().flatten() {
                load.permits -= 1;
            }
        }
    }

    /// Begins the next pass, if one may begin: whose, and with what to do.
    pub(in super::super) fn start(&mut self, now: Instant) -> Option<(ObjectKey, W)> {
        if !self.limits.allow_any(self.all) {
            return None;
        }
        let (mut urgent, mut routine) = (std::mem::take(&mut self.urgent), std::mem::take(&mut self.routine));
        let admission = |group: &Group| self.admission(group);
        let for_long =
            |since: Option<Instant>| since.is_some_and(|since| now.saturating_duration_since(since) > PATIENCE);
        // One that only waits for its own group makes nobody impatient. Which those are takes a look at every group, so that
        // is asked last.
        let impatient = || for_long(routine.oldest()) && for_long(routine.oldest_startable(admission));
        let routine_first = self.routine_is_owed && impatient();
        let key = if routine_first {
            routine.take(admission).or_else(|| urgent.take(admission))
        } else {
            urgent.take(admission).or_else(|| routine.take(admission))
        };
        (self.urgent, self.routine) = (urgent, routine);
        let key = key?;
        self.routine_is_owed = !routine_first;

        let ticket = self.ticket();
        let entry = self.entries.get_mut(&key)?;
        let (work, _) = *entry.pending.take()?;
        let group = Group { namespace: Arc::clone(&key.namespace), name: Arc::clone(&entry.group) };
        let slow = entry.slow;
        entry.phase = Phase::Running(Box::new(Pass {
            since: now,
            ticket,
            group: group.clone(),
            slow,
            overtime: false,
            meanwhile: Meanwhile::Nothing,
            awaited_since: work.awaited_since(),
        }));
        self.permits.insert((now + OVERTIME, ticket), key.clone());
        let namespace = self.namespaces.entry(Arc::clone(&group.namespace)).or_default();
        for load in [&mut self.all, namespace, self.groups.entry(group).or_default()] {
            load.permits += 1;
            load.running += 1;
            load.slow += usize::from(slow);
        }
        self.last_started = Some(now);
        Some((key, work))
    }

    /// Ends the pass of `key`, which answered `next`.
    pub(in super::super) fn finish(&mut self, key: &ObjectKey, next: Next<W>, now: Instant) {
        let Some((key, mut entry)) = self.entries.remove_entry(key) else {
            return;
        };
        let pass = match std::mem::replace(&mut entry.phase, Phase::Idle) {
            Phase::Running(pass) => pass,
            other => {
                // Not running: nothing to end.
                entry.phase = other;
                self.entries.insert(key, entry);
                return;
            }
        };
        let Pass { since, ticket, group, slow, overtime, meanwhile, awaited_since: _ } = *pass;
        let (forgotten, woken) = (meanwhile == Meanwhile::Forgotten, meanwhile == Meanwhile::Woken);
        self.last_finished = Some(now);
        self.permits.remove(&(since + OVERTIME, ticket));
        let end = |load: &mut Load| {
            load.running -= 1;
            load.permits -= usize::from(!overtime);
            load.slow -= usize::from(slow);
            load.running == 0
        };
        end(&mut self.all);
        if self.namespaces.get_mut(&group.namespace).is_some_and(end) {
            self.namespaces.remove(&group.namespace);
        }
        if self.groups.get_mut(&group).is_some_and(end) {
            self.groups.remove(&group);
        }
        // By the clock and not by whether the permit was taken back, which only happens while somebody waits for it. What
        // replaces an object that is gone starts afresh.
        entry.slow = !forgotten && now >= since + OVERTIME;

        match next {
            Next::Wake { after, mut work } if !forgotten => {
                let mut at = now + after.min(FURTHEST);
                // The pass did not know of a wake that was set while it ran: both are kept, in one.
                if woken && let Some(other) = self.replace_wake(&key, &mut entry, None) {
                    at = at.min(other.at);
                    work.merge(other.work);
                }
                self.replace_wake(&key, &mut entry, Some((at, work)));
            }
            Next::Done if !forgotten && !woken => {
                self.replace_wake(&key, &mut entry, None);
            }
            Next::Wake { .. } | Next::Done | Next::Keep => {}
        }
        self.put_back(key, entry, now);
    }
}
