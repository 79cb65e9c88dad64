//! The rollout protocol, checked by exhaustion: the real decisions of this crate, carried out by two actors that overlap
//! (a former leader and its successor), each cut after any single step, while FerrVault's content goes there and back
//! and people interfere with what the cluster holds.
//!
//! What must hold: after every write no restart is lost (I1) and none is done twice (I2, I3); wherever everything stops,
//! one undisturbed actor comes to rest (I10) with the target equal to FerrVault (I4) and a status that says so (I5).
//!
//! What may happen, at any moment and in any order within the bounds of a row: FerrVault's content changes up to three
//! times; a pass of either actor begins, does its next effect or is cut; a call fails, carried out or not; a read is answered
//! from before; the target is deleted, edited or loses its annotation; a mark is stripped; a workload that was missing
//! appears; another resource restarts a workload that both list. Not in the model: that other resource's own passes (it is
//! seen from here only by what it writes), somebody else's target (I6), time (I7, I9), values (I8): those are for the
//! simulation.
//!
//! The bounds are those that fit into seconds without optimisation. `cargo xtask sim --model large` explores the wide ones.

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
mod sometimes;
mod world;

use explore::{Explored, Scenario, explore};
use rules::{Rules, Script};
use sometimes::Sightings;
use world::Content::{A, B, C};
use world::{Budget, Entry, Name, State, Status, Target, WORKLOADS, World};

const UNDISTURBED: Budget =
    Budget { deletions: 0, strips: 0, target_strips: 0, edits: 0, failures: 0, others: 0, stale: 0 };
const DELETED: Budget = Budget { deletions: 1, ..UNDISTURBED };
const STRIPPED: Budget = Budget { strips: 1, ..UNDISTURBED };
const TARGET_STRIPPED: Budget = Budget { target_strips: 1, ..UNDISTURBED };
const EDITED: Budget = Budget { edits: 1, ..UNDISTURBED };
const FAILING: Budget = Budget { failures: 1, ..UNDISTURBED };
const SHARED: Budget = Budget { others: 1, ..UNDISTURBED };
const FROM_BEFORE: Budget = Budget { stale: 1, ..UNDISTURBED };
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
    for index in world.present() {
        world.marks[index] = version;
        world.status.rollouts[index] = Entry { version, state: State::Restarted };
    }
}

/// Three workloads, one of which does not exist yet.
fn with_latecomer(world: &mut World) {
    world.listed = WORKLOADS;
    world.missing[WORKLOADS - 1] = true;
}

fn settled_with_latecomer(world: &mut World) {
    with_latecomer(world);
    settled(world);
}

fn rotated_with_latecomer(world: &mut World) {
    with_latecomer(world);
    rotated(world);
}

fn upgraded_with_latecomer(world: &mut World) {
    with_latecomer(world);
    upgraded(world);
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
    let Explored { states, depth, rests, asked, .. } = found;
    println!("{case}: {states} states, {depth} deep, {rests} rests, {asked} decisions, {:.1?}", begun.elapsed());
    found
}

fn assert_holds(rows: &[Row]) -> Sightings {
    let (mut states, mut sightings) = (0, Sightings::default());
    for row in rows {
        let found = explored(Rules::PRODUCT, *row);
        assert!(found.violation.is_none(), "{}: {:?}", row.0, found.violation);
        states += found.states;
        sightings.add(&found.sightings);
    }
    println!("{states} states in {} rows", rows.len());
    sightings
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

#[test]
fn the_protocol_holds_while_a_workload_is_missing_and_another_is_shared() {
    assert_holds(&[
        ("a latecomer, one change", settled_with_latecomer, THERE, [2, 1], UNDISTURBED),
        ("a latecomer after an upgrade, one change", upgraded_with_latecomer, THERE, [1, 1], UNDISTURBED),
        ("a latecomer, there and back", rotated_with_latecomer, THERE_AND_BACK, [1, 1], UNDISTURBED),
        ("another resource restarts too, one change", rotated, THERE, [2, 2], SHARED),
        ("another resource restarts too, a latecomer", settled_with_latecomer, THERE, [1, 1], SHARED),
    ]);
}

#[test]
fn the_protocol_holds_when_a_read_is_answered_from_before() {
    assert_holds(&[
        ("a read from before, one change", settled, THERE, [2, 1], FROM_BEFORE),
        ("a read from before after an upgrade", upgraded, THERE, [2, 1], FROM_BEFORE),
        ("a read from before, no change", rotated, NO_CHANGE, [3, 3], FROM_BEFORE),
    ]);
}

/// A model in which nothing happens proves nothing.
#[test]
fn everything_that_is_meant_to_happen_happens() {
    let all_at_once = Budget { deletions: 1, strips: 1, others: 1, ..UNDISTURBED };
    let sightings = assert_holds(&[
        ("from nothing", new, THERE, [2, 1], UNDISTURBED),
        ("after an upgrade", upgraded, THERE, [2, 1], UNDISTURBED),
        ("deleted, stripped and shared", rotated, NO_CHANGE, [2, 2], all_at_once),
        ("deleted, there and back", settled, THERE_AND_BACK, [2, 1], DELETED),
        ("edited", rotated, NO_CHANGE, [2, 1], EDITED),
        ("a mark stripped", rotated, THERE, [2, 1], STRIPPED),
        ("calls fail", settled, THERE, [2, 1], FAILING),
        ("a latecomer", settled_with_latecomer, THERE, [2, 1], UNDISTURBED),
        ("a read from before", settled, THERE, [1, 1], FROM_BEFORE),
    ]);
    println!("seen:\n{sightings}");
    assert_eq!(sightings.never(), [], "{sightings}");
}

/// The wide bounds, where they are asked for; else their rows with the fewest passes that let two actors meet.
#[test]
fn the_protocol_holds_within_wide_bounds() {
    let is_large = std::env::var("FERRVAULT_MODEL").is_ok_and(|bound| bound == "large");
    let passes = |large: [u8; 2]| if is_large { large } else { [1, 1] };
    let meddled = Budget { edits: 1, strips: 1, others: 1, ..UNDISTURBED };
    let shared_and_failing = Budget { others: 1, ..FAILING };
    let deleted_and_before = Budget { stale: 1, ..DELETED };
    let sightings = assert_holds(&[
        ("wide: there, back and on", rotated, THERE_AND_BACK_AND_ON, passes([3, 2]), UNDISTURBED),
        ("wide: new, three passes each", new, THERE, passes([3, 3]), UNDISTURBED),
        ("wide: upgraded, there, back and on", upgraded, THERE_AND_BACK_AND_ON, passes([2, 2]), UNDISTURBED),
        ("wide: upgraded, three passes each", upgraded, THERE, passes([3, 3]), UNDISTURBED),
        ("wide: a latecomer, there and back", settled_with_latecomer, THERE_AND_BACK, passes([2, 2]), UNDISTURBED),
        ("wide: a latecomer shared and failing", rotated_with_latecomer, THERE, passes([2, 1]), shared_and_failing),
        ("wide: edited, stripped and shared", rotated, THERE, passes([2, 2]), meddled),
        ("wide: deleted, there, back and on", settled, THERE_AND_BACK_AND_ON, passes([2, 2]), DELETED),
        ("wide: deleted and a read from before", settled, THERE, passes([2, 2]), deleted_and_before),
        ("wide: a read from before, there and back", rotated, THERE_AND_BACK, passes([2, 2]), FROM_BEFORE),
    ]);
    println!("seen in the wide bounds:\n{sightings}");
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

/// Why workloads are read with a GET that names no resourceVersion, which the API server never answers from before: the
/// mark of a version that was lost would be missed, where FerrVault goes back and somebody deletes the target just then.
#[test]
fn a_workload_read_from_before_may_lose_a_restart_when_the_target_is_deleted() {
    let both = Budget { stale: 1, ..DELETED };
    let row = ("deleted and a read from before, there and back", settled as Start, THERE_AND_BACK, [1, 1], both);
    let found = explored(Rules::PRODUCT, row).violation.expect("the hole");
    assert!(found.violation.starts_with("I1"), "{found:?}");
    let told = format!("{found:?}");
    for accident in ["ReadWorkload(0), answered from before", "DeleteTarget"] {
        assert!(told.contains(accident), "{told}");
    }
    assert_eq!(told.matches("Upstream").count(), 2, "{told}");
}

/// The check can fail: leaving out any rule does.
#[test]
fn every_rule_left_out_breaks_an_invariant() {
    const ALL: Rules = Rules::PRODUCT;
    let cases: [(Rules, Row, &str); 12] = [
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
            Rules { second_look_is_fresh: false, ..ALL },
            ("a second look that is answered from before", settled, THERE_AND_BACK, [2, 1], FROM_BEFORE),
            "I2: workload",
        ),
        (
            Rules { records_count: false, ..ALL },
            ("a record that does not count", settled_with_latecomer, THERE, [2, 0], STRIPPED),
            "I2: workload",
        ),
        (
            Rules { absence_keeps_the_debt: false, ..ALL },
            ("a missing workload taken for done", settled_with_latecomer, THERE, [1, 0], UNDISTURBED),
            "I1: a debt is recorded as paid",
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
