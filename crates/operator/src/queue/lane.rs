//! The keys of one urgency that wait for a permit: groups take turns, and within a group it is first come, first served
//! among those that may start.
//!
//! Holds no work and knows no time but what it is told. Every step is a walk down a tree, so ten thousand keys of one
//! group cost no more than ten, and the order depends on nothing but the order of the calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::limits::Admission;
use crate::key::ObjectKey;

/// Whose turn it is: within one namespace, whom its keys share their fate with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

/// Numbers everything in the order in which it came.
pub(super) type Ticket = u64;

/// Where a waiting key stands.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) ticket: Ticket,
    pub(super) since: Instant,
    /// Whether the last pass of the key ran long.
    pub(super) slow: bool,
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    groups: BTreeMap<Group, Waiting>,
    /// The groups that have somebody waiting, in the order of their turns.
    turns: BTreeMap<u64, Group>,
    next_turn: u64,
    /// Since when each key waits. Tickets rise with time, and a key keeps its own from lane to lane: the first is the oldest.
    since: BTreeMap<Ticket, Instant>,
}

#[derive(Debug)]
struct Waiting {
    turn: u64,
    quick: BTreeMap<Ticket, ObjectKey>,
    slow: BTreeMap<Ticket, ObjectKey>,
}

impl Waiting {
    fn of(&mut self, slow: bool) -> &mut BTreeMap<Ticket, ObjectKey> {
        if slow { &mut self.slow } else { &mut self.quick }
    }

    fn is_empty(&self) -> bool {
        self.quick.is_empty() && self.slow.is_empty()
    }

    /// The first key that may start: its ticket, and whether it is slow.
    fn first(&self, admission: Admission) -> Option<(Ticket, bool)> {
        let first = |keys: &BTreeMap<Ticket, ObjectKey>, slow: bool| {
            let (ticket, _) = keys.first_key_value()?;
            admission.admits(slow).then_some((*ticket, slow))
        };
        first(&self.quick, false).into_iter().chain(first(&self.slow, true)).min()
    }
}

impl Lane {
    /// Number of keys that wait.
    pub(super) fn len(&self) -> usize {
        self.since.len()
    }

    /// Puts `key` at its place in `group`. A group that had nobody waiting takes the last turn.
    pub(super) fn insert(&mut self, key: ObjectKey, group: &Group, place: &Place) {
        let waiting = self.groups.entry(group.clone()).or_insert_with(|| {
            let turn = self.next_turn;
            self.next_turn += 1;
            self.turns.insert(turn, group.clone());
            Waiting { turn, quick: BTreeMap::new(), slow: BTreeMap::new() }
        });
        waiting.of(place.slow).insert(place.ticket, key);
        self.since.insert(place.ticket, place.since);
    }

    /// Takes the key at `place` out of `group`.
    pub(super) fn remove(&mut self, group: &Group, place: &Place) {
        let Some(waiting) = self.groups.get_mut(group) else {
            return;
        };
        if waiting.of(place.slow).remove(&place.ticket).is_none() {
            return;
        }
        self.since.remove(&place.ticket);
        if waiting.is_empty() {
            self.turns.remove(&waiting.turn);
            self.groups.remove(group);
        }
    }

    /// Takes the first key that may start of the first group in turn that has one, and moves that group to the end.
    pub(super) fn take(&mut self, admission: impl Fn(&Group) -> Admission) -> Option<ObjectKey> {
        let (group, (ticket, slow)) = self.turns.values().find_map(|group| {
            let first = self.groups.get(group)?.first(admission(group))?;
            Some((group.clone(), first))
        })?;
        let waiting = self.groups.get_mut(&group)?;
        let key = waiting.of(slow).remove(&ticket)?;
        self.since.remove(&ticket);
        self.turns.remove(&waiting.turn);
        if waiting.is_empty() {
            self.groups.remove(&group);
        } else {
            waiting.turn = self.next_turn;
            self.turns.insert(self.next_turn, group);
            self.next_turn += 1;
        }
        Some(key)
    }

    /// Since when the oldest key waits.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.since.values().next().copied()
    }

    /// Since when the oldest key waits of those that may start.
    pub(super) fn oldest_startable(&self, admission: impl Fn(&Group) -> Admission) -> Option<Instant> {
        let first = |(group, waiting): (&Group, &Waiting)| waiting.first(admission(group));
        let (ticket, _) = self.groups.iter().filter_map(first).min()?;
        self.since.get(&ticket).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> Group {
        Group { namespace: Arc::from("ns"), name: Arc::from(name) }
    }

    fn any(_: &Group) -> Admission {
        Admission::Any
    }

    /// A lane with keys `group/name`, tickets in the order given. A name that begins with `slow` is a slow key.
    fn lane(keys: &[(&str, &str)]) -> Lane {
        let mut lane = Lane::default();
        let since = Instant::now();
        for (ticket, (of, name)) in (0..).zip(keys) {
            let place = Place { ticket, since, slow: name.starts_with("slow") };
            lane.insert(ObjectKey::new(*of, *name), &group(of), &place);
        }
        lane
    }

    fn place(ticket: Ticket) -> Place {
        Place { ticket, since: Instant::now(), slow: false }
    }

    fn drain(lane: &mut Lane) -> Vec<String> {
        std::iter::from_fn(|| lane.take(any)).map(|key| key.to_string()).collect()
    }

    #[test]
    fn groups_take_turns_and_keys_of_one_keep_their_order() {
        let mut lane = lane(&[("a", "1"), ("a", "slow"), ("a", "3"), ("b", "1"), ("c", "1"), ("c", "2")]);
        assert_eq!(lane.len(), 6);
        assert_eq!(drain(&mut lane), ["a/1", "b/1", "c/1", "a/slow", "c/2", "a/3"]);
        assert_eq!(lane.len(), 0);
        assert!(lane.oldest_startable(any).is_none());
    }

    #[test]
    fn a_group_that_may_not_start_is_passed_over_and_keeps_its_turn() {
        let mut lane = lane(&[("a", "1"), ("b", "1"), ("b", "2")]);
        let but_a = |of: &Group| if *of == group("a") { Admission::None } else { Admission::Any };
        assert_eq!(lane.take(but_a).unwrap().to_string(), "b/1");
        assert_eq!(drain(&mut lane), ["a/1", "b/2"]);
    }

    #[test]
    fn slow_keys_that_may_not_start_are_passed_over_within_their_group() {
        let mut lane = lane(&[("a", "slow-1"), ("a", "slow-2"), ("a", "3"), ("b", "slow-1")]);
        let quick = |_: &Group| Admission::Quick;
        assert_eq!(lane.take(quick).unwrap().to_string(), "a/3");
        assert!(lane.take(quick).is_none() && lane.oldest_startable(quick).is_none());
        assert_eq!(drain(&mut lane), ["b/slow-1", "a/slow-1", "a/slow-2"]);
    }

    #[test]
    fn nothing_is_taken_when_no_group_may_start() {
        let mut lane = lane(&[("a", "1")]);
        assert!(lane.take(|_| Admission::None).is_none());
        assert_eq!(lane.len(), 1);
    }

    #[test]
    fn a_removed_key_leaves_no_trace() {
        let mut lane = lane(&[("a", "1"), ("b", "1"), ("b", "2")]);
        lane.remove(&group("a"), &place(0));
        lane.remove(&group("b"), &place(1));
        lane.remove(&group("b"), &place(7));
        lane.remove(&group("z"), &place(2));
        assert_eq!(lane.len(), 1);
        assert_eq!(drain(&mut lane), ["b/2"]);
        assert!(lane.turns.is_empty() && lane.oldest().is_none());
    }
}
