//! Who gets room when. Time plays no part: a claim is granted at once or when another one goes.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;

const MIB: usize = 1024 * 1024;

type Wait<'a> = Pin<Box<dyn Future<Output = Claim> + 'a>>;

/// The claim, if it is granted by now. Polled by hand: it is a fact of the moment, for which no runtime is needed.
fn poll(wait: &mut Wait<'_>) -> Option<Claim> {
    match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(claim) => Some(claim),
        Poll::Pending => None,
    }
}

fn owner(namespace: &str, connection: &str) -> Owner {
    Owner { namespace: namespace.into(), connection: connection.into() }
}

/// Asks for room for the longest answer, which is 8 MiB.
fn ask<'a>(memory: &'a AnswerMemory, owner: &'a Owner) -> (Option<Claim>, Wait<'a>) {
    ask_for(memory, owner, None)
}

fn ask_for<'a>(memory: &'a AnswerMemory, owner: &'a Owner, length: Option<usize>) -> (Option<Claim>, Wait<'a>) {
    let mut wait: Wait<'a> = Box::pin(memory.claim(owner, length));
    (poll(&mut wait), wait)
}

#[test]
fn an_answer_claims_twice_its_length_and_no_more_than_twice_the_longest() {
    let memory = AnswerMemory::default();
    let one = owner("shop", "a");
    for (length, claimed) in
        [(Some(100_000), 200_000), (Some(MAX_ANSWER_BYTES), 8 * MIB), (Some(usize::MAX), 8 * MIB), (None, 8 * MIB)]
    {
        let (claim, _wait) = ask_for(&memory, &one, length);
        assert_eq!(memory.claimed(), claimed, "{length:?}");
        drop(claim);
        assert_eq!(memory.claimed(), 0);
    }
}

#[test]
fn never_more_is_claimed_than_there_is() {
    let memory = AnswerMemory::default();
    let owners: Vec<_> = (0..100).map(|n| owner(&format!("n{n}"), "a")).collect();
    let asked: Vec<_> = owners.iter().map(|owner| ask(&memory, owner)).collect();
    assert_eq!(asked.iter().filter(|(claim, _)| claim.is_some()).count(), 8);
    assert_eq!(memory.claimed(), 64 * MIB);
}

#[test]
fn whoever_asks_first_is_served_first() {
    let memory = AnswerMemory::of(8 * MIB);
    let owners: Vec<_> = (0..4).map(|n| owner(&format!("n{n}"), "a")).collect();
    let (first, _first) = ask(&memory, &owners[0]);
    assert!(first.is_some());
    let mut waits: Vec<_> = owners.iter().map(|owner| ask(&memory, owner).1).collect();
    let mut held = first;
    for turn in 0..4 {
        drop(held.take());
        for (number, wait) in waits.iter_mut().enumerate().skip(turn) {
            let granted = poll(wait);
            assert_eq!(granted.is_some(), number == turn, "turn {turn}, waiter {number}");
            held = held.or(granted);
        }
    }
}

#[test]
fn a_small_claim_does_not_overtake_a_large_one_for_ever() {
    let memory = AnswerMemory::of(8 * MIB);
    let owners: Vec<_> = (0..3).map(|n| owner(&format!("n{n}"), "a")).collect();
    let (small, _small) = ask_for(&memory, &owners[0], Some(MIB));
    let (large, mut large_waits) = ask(&memory, &owners[1]);
    let (later, mut later_waits) = ask_for(&memory, &owners[2], Some(MIB));
    assert!(small.is_some() && large.is_none() && later.is_none(), "there is room for the last, but not its turn");
    drop(small);
    let large = poll(&mut large_waits);
    assert!(large.is_some() && poll(&mut later_waits).is_none());
    drop(large);
    assert!(poll(&mut later_waits).is_some());
}

#[test]
fn a_connection_that_takes_all_it_can_leaves_room_for_others() {
    let memory = AnswerMemory::default();
    let (greedy, beside, stranger) = (owner("shop", "a"), owner("shop", "b"), owner("team", "a"));
    let crowd: Vec<_> = (0..100).map(|_| ask(&memory, &greedy)).collect();
    assert_eq!(crowd.iter().filter(|(claim, _)| claim.is_some()).count(), 2, "a quarter");
    let others: Vec<_> = (0..100).map(|_| ask(&memory, &beside)).collect();
    assert_eq!(others.iter().filter(|(claim, _)| claim.is_some()).count(), 2);
    let third = owner("shop", "c");
    assert!(ask(&memory, &third).0.is_none(), "the namespace has its half");
    let (claim, _wait) = ask(&memory, &stranger);
    assert!(claim.is_some(), "another namespace does not stand behind them");
}

#[test]
fn the_last_quarter_is_for_namespaces_that_have_nothing() {
    let memory = AnswerMemory::default();
    let owners: Vec<_> = (0..12).map(|n| owner(&format!("n{}", n % 3), &format!("c{n}"))).collect();
    let asked: Vec<_> = owners.iter().map(|owner| ask(&memory, owner)).collect();
    assert_eq!(asked.iter().filter(|(claim, _)| claim.is_some()).count(), 6, "three quarters");
    let newcomer = owner("new", "a");
    assert!(ask(&memory, &newcomer).0.is_some());
}

#[test]
fn who_gives_up_waiting_is_passed_over() {
    let memory = AnswerMemory::of(8 * MIB);
    let owners: Vec<_> = (0..3).map(|n| owner(&format!("n{n}"), "a")).collect();
    let (first, _first) = ask(&memory, &owners[0]);
    let (_, gives_up) = ask(&memory, &owners[1]);
    let (_, mut last) = ask(&memory, &owners[2]);
    drop(gives_up);
    drop(first);
    assert!(poll(&mut last).is_some());
    // Granted and not looked at any more: given back.
    let (_, unseen) = ask(&memory, &owners[1]);
    drop(unseen);
    assert_eq!(memory.claimed(), 0);
}

#[test]
fn whoever_stood_behind_one_that_gives_up_does_not_wait_for_a_claim_to_end() {
    let memory = AnswerMemory::of(8 * MIB);
    let owners: Vec<_> = (0..3).map(|n| owner(&format!("n{n}"), "a")).collect();
    let (held, _held) = ask_for(&memory, &owners[0], Some(MIB));
    let (large, large_waits) = ask(&memory, &owners[1]);
    let (small, mut small_waits) = ask_for(&memory, &owners[2], Some(MIB));
    assert!(held.is_some() && large.is_none() && small.is_none());
    drop(large_waits);
    assert!(poll(&mut small_waits).is_some());
}

#[test]
fn a_decoded_answer_keeps_what_its_values_take() {
    let memory = AnswerMemory::of(8 * MIB);
    let (one, other) = (owner("shop", "a"), owner("team", "a"));
    let (claim, _wait) = ask(&memory, &one);
    let mut claim = claim.unwrap();
    let (none, mut waits) = ask_for(&memory, &other, Some(2 * MIB));
    assert!(none.is_none());
    claim.decoded(MIB);
    assert_eq!(memory.claimed(), 3 * MIB + 4 * MIB, "three bytes a byte, and the other has got its own");
    assert!(poll(&mut waits).is_some());
    // What has grown while it was decoded is never more than was claimed.
    claim.decoded(usize::MAX);
    drop(claim);
    assert_eq!(memory.claimed(), 0);
}
