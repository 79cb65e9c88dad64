//! Rule 6: what is recorded of each workload, and when the debt is paid.

use proptest::prelude::*;

use super::*;
use crate::fixtures::{at, rollout, time, version, workload};
use crate::restart::{Debt, Step, WorkloadState, debt, steps};

const NOW: i64 = 99;

fn restarted() -> WorkloadOutcome {
    WorkloadOutcome::Restarted { paused: false }
}

fn failed() -> WorkloadOutcome {
    WorkloadOutcome::Failed("forbidden".to_owned())
}

#[test]
fn the_record_of_a_workload_follows_from_its_outcome() {
    use RolloutState::{Failed, Restarted, Waiting};
    let (a, b) = (version(1, "A"), version(2, "B"));
    let paused = WorkloadOutcome::Restarted { paused: true };
    let (missing, overtaken) = (WorkloadOutcome::Missing, WorkloadOutcome::Overtaken);
    let record = |version: &Version, state| Some(rollout("api", Some(version), state));
    let none = || Some(rollout("api", None, Waiting));
    let (text_a, text_b) = (a.as_str(), b.as_str());
    // Records are from 10 s; the outcome is of 99 s.
    let cases = [
        ("restarted for the first time", None, restarted(), Restarted, text_b, NOW, ""),
        ("restarted anew", record(&a, Restarted), restarted(), Restarted, text_b, NOW, ""),
        ("restarted before", record(&b, Restarted), restarted(), Restarted, text_b, 10, ""),
        ("restarted after a refusal", record(&a, Failed), restarted(), Restarted, text_b, NOW, ""),
        ("paused", None, paused.clone(), Restarted, text_b, NOW, "paused"),
        ("paused before", record(&b, Restarted), paused, Restarted, text_b, 10, "paused"),
        ("missing from the start", None, missing.clone(), Waiting, "", NOW, "does not exist"),
        ("missing before", none(), missing.clone(), Waiting, "", 10, "does not exist"),
        (
            "missing now, restarted for an older one",
            record(&a, Restarted),
            missing,
            Waiting,
            text_a,
            NOW,
            "does not exist",
        ),
        ("overtaken", record(&a, Restarted), overtaken.clone(), Waiting, text_a, NOW, "changed"),
        ("overtaken before", record(&a, Waiting), overtaken, Waiting, text_a, 10, "changed"),
        ("refused", record(&a, Restarted), failed(), Failed, text_a, NOW, "forbidden"),
        ("refused before", record(&a, Failed), failed(), Failed, text_a, 10, "forbidden"),
        ("refused after it was waited for", record(&a, Waiting), failed(), Failed, text_a, NOW, "forbidden"),
    ];
    for (case, before, outcome, state, hash, since, fragment) in cases {
        let recorded: Vec<Rollout> = before.into_iter().collect();
        let is_done = matches!(outcome, WorkloadOutcome::Restarted { .. });
        let settled = settle(&b, &recorded, &[(workload("api"), outcome)], at(NOW));
        let [entry] = settled.rollouts.as_slice() else { panic!("{case}: {settled:?}") };
        assert_eq!((entry.state, entry.hash.as_str()), (state, hash), "{case}");
        assert_eq!(entry.since, time(since), "{case}");
        assert!(
            entry.message.contains(fragment) && entry.message.is_empty() == fragment.is_empty(),
            "{case}: {entry:?}"
        );
        assert_eq!(settled.paid, is_done, "{case}");
    }
}

#[test]
fn the_debt_is_paid_when_every_listed_workload_is_done() {
    let b = version(2, "B");
    let cases = [
        ("no workload listed", vec![], true),
        ("all of them", vec![restarted(), WorkloadOutcome::Restarted { paused: true }], true),
        ("one missing", vec![restarted(), WorkloadOutcome::Missing], false),
        ("one overtaken", vec![WorkloadOutcome::Overtaken, restarted()], false),
        ("one refused", vec![failed(), restarted()], false),
        ("none", vec![failed(), WorkloadOutcome::Missing], false),
    ];
    for (case, outcomes, paid) in cases {
        let names = ["api", "worker"].map(workload);
        let outcomes: Vec<_> = names.into_iter().zip(outcomes).collect();
        let settled = settle(&b, &[], &outcomes, at(NOW));
        assert_eq!(settled.paid, paid, "{case}");
        assert_eq!(settled.rollouts.len(), outcomes.len(), "{case}");
    }
}

#[test]
fn records_follow_the_list_and_forget_who_left_it() {
    let (a, b) = (version(1, "A"), version(2, "B"));
    let recorded = ["gone", "api"].map(|name| rollout(name, Some(&a), RolloutState::Restarted));
    let outcomes = [(workload("worker"), restarted()), (workload("api"), failed())];
    let settled = settle(&b, &recorded, &outcomes, at(NOW));
    let names: Vec<&str> = settled.rollouts.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["worker", "api"]);
}

fn any_outcome() -> impl Strategy<Value = WorkloadOutcome> {
    prop_oneof![
        any::<bool>().prop_map(|paused| WorkloadOutcome::Restarted { paused }),
        Just(WorkloadOutcome::Missing),
        Just(WorkloadOutcome::Overtaken),
        Just(failed()),
    ]
}

proptest! {
    #[test]
    fn settling_the_same_again_changes_nothing(outcomes in prop::collection::vec(any_outcome(), 0..4)) {
        let b = version(2, "B");
        let outcomes: Vec<_> = (0..).map(|index| workload(&format!("w{index}"))).zip(outcomes).collect();
        let once = settle(&b, &[], &outcomes, at(10));
        let twice = settle(&b, &once.rollouts, &outcomes, at(NOW));
        prop_assert_eq!(once, twice);
    }

    /// Marks stripped or not: who is recorded as done is done, and whoever is not is tried again.
    #[test]
    fn what_is_recorded_is_what_the_next_pass_acts_on(
        outcomes in prop::collection::vec(any_outcome(), 0..4),
        is_stripped: bool,
    ) {
        let (a, b) = (version(1, "A"), version(2, "B"));
        let outcomes: Vec<_> = (0..).map(|index| workload(&format!("w{index}"))).zip(outcomes).collect();
        let settled = settle(&b, &[], &outcomes, at(10));
        let states = outcomes.iter().map(|(workload, outcome)| {
            let is_done = matches!(outcome, WorkloadOutcome::Restarted { .. });
            let mark = (is_done && !is_stripped).then(|| b.clone());
            (workload.clone(), WorkloadState::Present { resource_version: "1".to_owned(), mark, paused: false })
        });
        let planned = steps(&b, &settled.rollouts, states.collect());
        let all_done = planned.iter().all(|(_, step)| matches!(step, Step::Done { .. }));
        prop_assert_eq!(all_done, settled.paid);
        let last = if settled.paid { &b } else { &a };
        prop_assert_eq!(debt(Some(last), &b) == Debt::Owed, !all_done);
    }
}
