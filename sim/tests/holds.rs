//! What a plain `cargo test` shows of the simulation: every scenario with nothing going wrong, one with everything, that a
//! run can be repeated, and that the checks can fail. The rest is `cargo xtask sim --singles`.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and clippy only knows the functions marked as tests"
)]

use ferrvault_sim::plan::Plan;
use ferrvault_sim::scenario::{self, Scenario};
use ferrvault_sim::{Effort, Invariant, Outcome, Pairs, Setup, Shard, catch, pairs, run, singles, variants};

fn effort() -> Effort {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    Effort { seed: 7, threads, until: None, enough_failures: 3 }
}

fn named(name: &str) -> Scenario {
    scenario::all().into_iter().find(|scenario| scenario.name == name).unwrap()
}

fn told(scenario: &Scenario, plan: &str, seed: u64) -> Outcome {
    let plan: Plan = plan.parse().unwrap();
    run(&Setup { scenario, plan, seed, broken: None, listens: true, tells: true })
}

#[test]
fn every_scenario_holds_when_nothing_goes_wrong() {
    for scenario in scenario::all() {
        let outcome = told(&scenario, "", 7);
        assert!(outcome.violations.is_empty(), "{}: {:#?}\n{}", scenario.name, outcome.violations, outcome.story);
        assert!(outcome.places.len() >= 5, "{}: nothing happens in it", scenario.name);
    }
}

#[test]
fn names_of_scenarios_and_of_broken_operators_are_unique_and_known() {
    let names: Vec<&str> = scenario::all().iter().map(|scenario| scenario.name).collect();
    let broken: Vec<&str> = variants().iter().map(|variant| variant.name).collect();
    for list in [&names, &broken] {
        let mut unique = list.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), list.len(), "{list:?}");
    }
    for variant in variants() {
        for name in variant.seen_in {
            assert!(names.contains(name), "{variant:?} is to be seen in {name}, which there is not");
        }
    }
}

#[test]
fn a_rotation_holds_with_every_single_fault() {
    let tally = singles(&[named("rotation")], &effort(), |_, _| {});
    assert!(tally.is_complete && tally.total() > 100, "{:?}", tally.runs);
    assert!(tally.failures.is_empty(), "{:#?}", tally.failures.first());
}

#[test]
fn a_run_is_the_same_again_and_another_seed_is_another_run() {
    for (name, plan) in [("a-b-a", "#5=CutAfter,#14=500"), ("two-leaders-a-b-c", "#12=Slow5,e3=Late5")] {
        let scenario = named(name);
        let first = told(&scenario, plan, 7);
        assert!(first.all_happened, "{name}");
        assert_eq!(first.story, told(&scenario, plan, 7).story, "{name}");
        assert_ne!(first.story, told(&scenario, plan, 8).story, "{name}");
    }
}

/// Runs that once did not hold.
#[test]
fn what_was_found_stays_mended() {
    for (name, plan) in [
        // A single answer that speaks against a debt, and no schedule that would bring it up again.
        ("no-schedule-in-debt", "#9=404"),
        ("no-schedule-in-debt", "#9=Stale"),
        // A single answer that the object is gone, after which nothing started the next pass.
        ("upgrade-owed", "#11=404"),
    ] {
        let outcome = told(&named(name), plan, 1);
        assert!(outcome.all_happened, "{name}:{plan}\n{}", outcome.story);
        assert!(outcome.violations.is_empty(), "{name}:{plan}: {:#?}\n{}", outcome.violations, outcome.story);
    }
}

#[test]
fn a_fault_beyond_the_end_is_told_apart_from_one_that_happened() {
    let scenario = named("rotation");
    assert!(told(&scenario, "#2=500", 7).all_happened);
    assert!(!told(&scenario, "#2000=500", 7).all_happened);
}

#[test]
fn a_story_tells_calls_answers_and_what_came_of_them() {
    let story = told(&named("rotation"), "#4=ResetAfter", 7).story;
    for line in [
        "vault db gets content B",
        "#4 operator writes secrets default/db [carried out, connection reset before the answer] -> connection broken",
        "F1 operator asks FerrVault: reveal vault db",
        "Secret default/db now has content B under version 2",
        "Deployment/api in default is restarted for version 2",
    ] {
        assert!(story.contains(line), "{line}\n{story}");
    }
    assert!(!story.contains("canary"), "{story}");
}

#[test]
fn broken_operators_are_caught_by_the_invariant_they_break() {
    let scenarios = ["a-b-a", "rotation", "two-leaders", "key-missing"].map(named);
    for (name, invariant) in [
        ("pays-too-early", Invariant::I1),
        ("stamps-again", Invariant::I2),
        ("takes-part-of-an-answer", Invariant::I4),
        ("says-restarted", Invariant::I5),
        ("scales-too", Invariant::I6),
        ("value-in-status", Invariant::I8),
        ("writes-target-twice", Invariant::I10),
    ] {
        let variant = variants().into_iter().find(|variant| variant.name == name).unwrap();
        let caught = catch(variant, &scenarios, &effort()).caught.unwrap_or_else(|| panic!("{name} survived"));
        let found: Vec<Invariant> = caught.violations.iter().map(|violation| violation.invariant).collect();
        assert!(found.contains(&invariant), "{name}: {found:?}");
    }
}

#[test]
fn pairs_go_on_where_they_were_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let notebook = folder.path().join("pairs.txt");
    let what = |resumes| Pairs { shard: Shard { number: 1, of: 40 }, notebook: notebook.clone(), resumes };
    let scenarios = [named("unchanged")];
    // About what is done and what is left; whether it holds is for the long runs to say.
    let effort = || Effort { enough_failures: usize::MAX, ..effort() };
    let whole = pairs(&scenarios, &effort(), &what(false), |_| {});
    assert!(whole.is_complete);
    assert!(whole.total() > 0, "a shard without a pair shows nothing");

    let written = std::fs::read_to_string(&notebook).unwrap();
    let kept: Vec<&str> = written.lines().take(2).collect();
    std::fs::write(&notebook, kept.join("\n") + "\n").unwrap();
    let rest = pairs(&scenarios, &effort(), &what(true), |_| {});
    assert_eq!(rest.total(), whole.total());
    let mut again: Vec<String> = std::fs::read_to_string(&notebook).unwrap().lines().map(str::to_owned).collect();
    let mut before: Vec<String> = written.lines().map(str::to_owned).collect();
    again.sort();
    before.sort();
    assert_eq!(again, before);

    // What was written by another run is not gone on with.
    let other = pairs(&scenarios, &Effort { seed: 8, ..effort() }, &what(true), |_| {});
    assert!(other.is_complete);
    assert!(std::fs::read_to_string(&notebook).unwrap().starts_with("# seed 8 "));
}
