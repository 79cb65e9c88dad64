//! The rollout protocol, checked by exhaustion: the real decisions of this crate, carried out by two actors that overlap
//! (a former leader and its successor), each cut after any single step, while FerrVault's content goes there and back
//! and people interfere with what the cluster holds.
//!
//! What must hold: after every write no restart is lost (I1) and none is done twice (I2, I3); wherever everything stops,
//! one undisturbed actor comes to rest (I10) with the target equal to FerrVault (I4) and a status that says so (I5).
//!
//! The bounds are those that fit into a few seconds without optimisation. Wider ones (three passes each, two failing
//! calls, A-B-A-C) were explored when this was written, up to four million states each.

#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    reason = "test support outside #[test] functions"
)]
#![allow(clippy::struct_excessive_bools, reason = "each names a rule that a check may leave out")]

mod actor;
mod explore;
mod hash;
mod invariants;
mod oracle;
mod rules;
mod world;

use explore::{Explored, Scenario, explore};
use rules::{Rules, Script};
use world::Content::{A, B, C};
use world::{Budget, Entry, Name, State, Status, Target, World};

const UNDISTURBED: Budget = Budget { deletions: 0, strips: 0, target_strips: 0, edits: 0, failures: 0 };
const DELETED: Budget = Budget { deletions: 1, ..UNDISTURBED };
const STRIPPED: Budget = Budget { strips: 1, ..UNDISTURBED };
const TARGET_STRIPPED: Budget = Budget { target_strips: 1, ..UNDISTURBED };
const EDITED: Budget = Budget { edits: 1, ..UNDISTURBED };
const FAILING: Budget = Budget { failures: 1, ..UNDISTURBED };
const DELETED_AND_FAILING: Budget = Budget { failures: 1, ..DELETED };

const NO_CHANGE: Script = &[A];
const THERE: Script = &[A, B];
const THERE_AND_BACK: Script = &[A, B, A];
const THERE_AND_BACK_AND_ON: Script = &[A, B, A, C];

/// Nothing but the resource.
fn new(_: &mut World) {}

/// Created by this operator, and no change since.
fn settled(world: &mut World) {
    let version = Name::new(1, A);
    world.settle_on(Target { version: Some(version), content: A });
    world.status = Status { last_rollout: Some(version), content: Some(version), ..Status::default() };
}

/// One change since then, and every workload was restarted for it.
fn rotated(world: &mut World) {
    settled(world);
    let version = world.status.last_rollout;
    world.marks = [version; 2];
    world.status.rollouts = [Entry { version, state: State::Restarted }; 2];
}

/// As the Go operator left it, which never restarted anything for it.
fn upgraded(world: &mut World) {
    world.settle_on(Target { version: Some(Name::LEGACY), content: A });
}

/// As the Go operator left it, with its record.
fn upgraded_with_record(world: &mut World) {
    upgraded(world);
    world.status.last_rollout = Some(Name::LEGACY);
}

/// As the Go operator left it between its write and its restarts.
fn upgraded_in_debt(world: &mut World) {
    upgraded(world);
    world.be_outdated();
    world.status.last_rollout = Some(Name::LEGACY_BEFORE);
}

type Start = fn(&mut World);
type Row = (&'static str, Start, Script, [u8; 2], Budget);

fn explored(rules: Rules, (case, start, script, passes, budget): Row) -> Explored {
    let begun = std::time::Instant::now();
    let found = explore(Scenario { start, script, passes, budget, rules });
    let Explored { states, rests, asked, .. } = found;
    println!("{case}: {states} states, {rests} of them rests, {asked} decisions, {:.1?}", begun.elapsed());
    found
}

fn assert_holds(rows: &[Row]) {
    for row in rows {
        let found = explored(Rules::PRODUCT, *row);
        assert!(found.violation.is_none(), "{}: {:?}", row.0, found.violation);
    }
}

#[test]
fn the_protocol_holds_through_changes_and_cuts() {
    assert_holds(&[
        ("a new resource, one change", new, THERE, [2, 2], UNDISTURBED),
        ("there and back", settled, THERE_AND_BACK, [2, 2], UNDISTURBED),
        ("there, back and on", rotated, THERE_AND_BACK_AND_ON, [2, 1], UNDISTURBED),
        ("one change, three passes each", rotated, THERE, [3, 3], UNDISTURBED),
    ]);
}

#[test]
fn the_protocol_holds_through_an_upgrade_from_the_go_operator() {
    assert_holds(&[
        ("upgraded, no change", upgraded, NO_CHANGE, [3, 3], UNDISTURBED),
        ("upgraded, there and back", upgraded, THERE_AND_BACK, [2, 1], UNDISTURBED),
        ("upgraded with its record, one change", upgraded_with_record, THERE, [2, 2], UNDISTURBED),
        ("upgraded in debt, one change", upgraded_in_debt, THERE, [2, 1], UNDISTURBED),
    ]);
}

#[test]
fn the_protocol_holds_when_the_target_is_deleted_by_hand() {
    assert_holds(&[
        ("deleted, one change", rotated, THERE, [2, 1], DELETED),
        ("deleted, there and back", settled, THERE_AND_BACK, [2, 1], DELETED),
        ("deleted after an upgrade, there and back", upgraded_with_record, THERE_AND_BACK, [1, 1], DELETED),
    ]);
}

#[test]
fn the_protocol_holds_when_the_target_is_edited_by_hand() {
    assert_holds(&[
        ("annotation stripped, one change", settled, THERE, [2, 1], TARGET_STRIPPED),
        ("annotation stripped, there and back", rotated, THERE_AND_BACK, [2, 1], TARGET_STRIPPED),
        ("data edited to what comes next", settled, THERE, [2, 2], EDITED),
        ("data edited, there and back", upgraded, THERE_AND_BACK, [2, 1], EDITED),
    ]);
}

#[test]
fn the_protocol_holds_when_calls_fail_or_end_without_an_answer() {
    assert_holds(&[
        ("a call fails, one change", settled, THERE, [2, 2], FAILING),
        ("a call fails after an upgrade, there and back", upgraded, THERE_AND_BACK, [1, 1], FAILING),
        ("a call fails, the target is deleted, there and back", rotated, THERE_AND_BACK, [1, 1], DELETED_AND_FAILING),
    ]);
}

#[test]
fn nothing_restarts_while_nothing_changes() {
    let everything = Budget { deletions: 1, strips: 1, ..UNDISTURBED };
    assert_holds(&[
        ("new, undisturbed", new, NO_CHANGE, [3, 3], UNDISTURBED),
        ("deleted and stripped", rotated, NO_CHANGE, [3, 3], everything),
        ("edited", rotated, NO_CHANGE, [3, 3], EDITED),
        ("annotation stripped", rotated, NO_CHANGE, [3, 3], TARGET_STRIPPED),
        ("annotation stripped after an upgrade", upgraded_with_record, NO_CHANGE, [3, 3], TARGET_STRIPPED),
        ("calls fail", upgraded, NO_CHANGE, [3, 3], Budget { failures: 2, ..UNDISTURBED }),
    ]);
}

/// A mark that is stripped leaves the record in the status as the only trace. An actor that read the status before the
/// record was written, and the workload after the mark was stripped, would see neither and restart once too often; the
/// look at the resource again before the stamps shows it the record.
#[test]
fn a_stripped_mark_costs_no_restart() {
    let row: Row = ("a mark stripped, one change", rotated, THERE, [2, 1], STRIPPED);
    let found = explored(Rules { status_again: false, ..Rules::PRODUCT }, row).violation.expect("one restart too many");
    assert!(found.violation.starts_with("I2"), "{found:?}");

    let alone = ("a mark stripped, one actor", rotated as Start, THERE_AND_BACK, [3, 0], STRIPPED);
    assert_holds(&[row, alone]);
}

/// The hole that is known: a cut between a stamp and its record, that mark stripped, the target deleted by hand and
/// FerrVault going back, all in one window. Nothing in the cluster tells of the stamp any more. Where FerrVault does not
/// go back, nothing is lost.
#[test]
fn four_accidents_in_one_window_lose_a_restart() {
    let all = Budget { strips: 1, ..DELETED };
    let rules = Rules::PRODUCT;
    let there_and_back = ("stripped and deleted, there and back", rotated as Start, THERE_AND_BACK, [1, 1], all);
    let found = explored(rules, there_and_back).violation.expect("the hole");
    assert!(found.violation.starts_with("I1"), "{found:?}");
    let told = format!("{found:?}");
    for accident in ["Stamp", "is cut", "StripMark", "DeleteTarget"] {
        assert!(told.contains(accident), "{told}");
    }
    assert_eq!(told.matches("Upstream").count(), 2, "{told}");

    let there = ("stripped and deleted, one change", rotated as Start, THERE, [1, 1], all);
    let found = explored(rules, there).violation;
    assert!(found.is_none(), "{found:?}");
}

/// The check can fail: leaving out any rule does.
#[test]
fn every_rule_left_out_breaks_an_invariant() {
    const ALL: Rules = Rules::PRODUCT;
    let cases: [(Rules, Row, &str); 9] = [
        (
            Rules { debt_first: false, ..ALL },
            ("no debt first", upgraded, THERE, [1, 0], UNDISTURBED),
            "I1: a workload does not run on",
        ),
        (
            Rules { status_precondition: false, ..ALL },
            ("a status without resourceVersion", upgraded, THERE, [2, 1], UNDISTURBED),
            "I1: a workload does not run on",
        ),
        (
            Rules { target_precondition: false, ..ALL },
            ("a target without resourceVersion", settled, THERE, [1, 1], UNDISTURBED),
            "I3: B gets",
        ),
        (
            Rules { target_before_reveal: false, ..ALL },
            ("a reveal before the target is read", settled, THERE, [1, 1], UNDISTURBED),
            "I4: the target goes back",
        ),
        (
            Rules { workload_precondition: false, ..ALL },
            ("a workload without resourceVersion", settled, THERE, [1, 1], UNDISTURBED),
            "I2: workload",
        ),
        (
            Rules { second_look: false, ..ALL },
            ("no second look at the target", settled, THERE_AND_BACK, [2, 2], UNDISTURBED),
            "I2: workload",
        ),
        (
            Rules { careful_recreation: false, ..ALL },
            ("recreated under lastRolloutHash whatever is seen", settled, THERE_AND_BACK, [1, 1], DELETED),
            "I1: a workload does not run on",
        ),
        (
            Rules { unreadable_is_doubt: false, ..ALL },
            ("an unreadable workload taken for unmarked", settled, THERE_AND_BACK, [1, 1], DELETED_AND_FAILING),
            "I1: a workload does not run on",
        ),
        (
            Rules { bytes_without_version_count: false, ..ALL },
            ("other bytes renamed to lastRolloutHash", settled, THERE_AND_BACK, [1, 1], TARGET_STRIPPED),
            "I1: a workload does not run on",
        ),
    ];
    for (rules, row, expected) in cases {
        let found = explored(rules, row).violation;
        let story = found.unwrap_or_else(|| panic!("{}: no violation", row.0));
        println!("{story:?}");
        assert!(story.violation.starts_with(expected), "{}: {story:?}", row.0);
    }
}
