//! The keys of one urgency that wait for a permit: groups take turns, and within a group it is first come, first served.
//!
//! Holds no work and knows no time but what it is told. Every step is a walk down a tree, so ten thousand keys of one
//! group cost no more than ten, and the order depends on nothing but the order of the calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use crate::key::ObjectKey;

/// Numbers everything in the order in which it came.
pub(super) type Ticket = u64;

/// Where a waiting key stands.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) ticket: Ticket,
    pub(super) since: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    groups: BTreeMap<Arc<str>, Waiting>,
    /// The groups that have somebody waiting, in the order of their turns.
    turns: BTreeMap<u64, Arc<str>>,
    next_turn: u64,
    /// Since when each key waits. Tickets rise with time, and a key keeps its own from lane to lane: the first is the oldest.
    since: BTreeMap<Ticket, Instant>,
}

#[derive(Debug)]
struct Waiting {
    turn: u64,
    keys: BTreeMap<Ticket, ObjectKey>,
}

impl Lane {
    /// Number of keys that wait.
    pub(super) fn len(&self) -> usize {
        self.since.len()
    }

    /// Puts `key` at its place in `group`. A group that had nobody waiting takes the last turn.
    pub(super) fn insert(&mut self, key: ObjectKey, group: &Arc<str>, place: &Place) {
        let waiting = self.groups.entry(Arc::clone(group)).or_insert_with(|| {
            let turn = self.next_turn;
            self.next_turn += 1;
            self.turns.insert(turn, Arc::clone(group));
            Waiting { turn, keys: BTreeMap::new() }
        });
        waiting.keys.insert(place.ticket, key);
        self.since.insert(place.ticket, place.since);
    }

    /// Takes the key with `ticket` out of `group`.
    pub(super) fn remove(&mut self, group: &Arc<str>, ticket: Ticket) {
        let Some(waiting) = self.groups.get_mut(group) else {
            return;
        };
        if waiting.keys.remove(&ticket).is_none() {
            return;
        }
        self.since.remove(&ticket);
        if waiting.keys.is_empty() {
            self.turns.remove(&waiting.turn);
            self.groups.remove(group);
        }
    }

    /// Takes the first key of the first group in turn that `may_start`, and moves that group to the end.
    pub(super) fn take(&mut self, may_start: impl Fn(&Arc<str>) -> bool) -> Option<ObjectKey> {
        let group = self.turns.values().find(|group| may_start(group)).map(Arc::clone)?;
        let waiting = self.groups.get_mut(&group)?;
        let (ticket, key) = waiting.keys.pop_first()?;
        self.since.remove(&ticket);
        self.turns.remove(&waiting.turn);
        if waiting.keys.is_empty() {
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

    /// The groups that have somebody waiting, with the time since when their first does.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&Arc<str>, Instant)> {
        self.groups.iter().filter_map(|(group, waiting)| {
            let (ticket, _) = waiting.keys.first_key_value()?;
            Some((group, *self.since.get(ticket)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane with keys `group/name`, tickets in the order given.
    fn lane(keys: &[(&str, &str)]) -> Lane {
        let mut lane = Lane::default();
        let since = Instant::now();
        for (ticket, (group, name)) in (0..).zip(keys) {
            lane.insert(ObjectKey::new(*group, *name), &Arc::from(*group), &Place { ticket, since });
        }
        lane
    }

    fn drain(lane: &mut Lane) -> Vec<String> {
        std::iter::from_fn(|| lane.take(|_| true)).map(|key| key.to_string()).collect()
    }

    #[test]
    fn groups_take_turns_and_keys_of_one_keep_their_order() {
        let mut lane = lane(&[("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("c", "1"), ("c", "2")]);
        assert_eq!(lane.len(), 6);
        assert_eq!(drain(&mut lane), ["a/1", "b/1", "c/1", "a/2", "c/2", "a/3"]);
        assert_eq!(lane.len(), 0);
        assert!(lane.groups().next().is_none());
    }

    #[test]
    fn a_group_that_may_not_start_is_passed_over_and_keeps_its_turn() {
        let mut lane = lane(&[("a", "1"), ("b", "1"), ("b", "2")]);
        assert_eq!(lane.take(|group| &**group != "a").unwrap().to_string(), "b/1");
        assert_eq!(drain(&mut lane), ["a/1", "b/2"]);
    }

    #[test]
    fn nothing_is_taken_when_no_group_may_start() {
        let mut lane = lane(&[("a", "1")]);
        assert!(lane.take(|_| false).is_none());
        assert_eq!(lane.len(), 1);
    }

    #[test]
    fn a_removed_key_leaves_no_trace() {
        let mut lane = lane(&[("a", "1"), ("b", "1"), ("b", "2")]);
        lane.remove(&Arc::from("a"), 0);
        lane.remove(&Arc::from("b"), 1);
        lane.remove(&Arc::from("b"), 7);
        lane.remove(&Arc::from("z"), 2);
        assert_eq!(lane.len(), 1);
        assert_eq!(drain(&mut lane), ["b/2"]);
        assert!(lane.turns.is_empty() && lane.oldest().is_none());
    }
}
