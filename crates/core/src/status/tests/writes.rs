//! Which write a status needs, what people are told, and what of other writers stays.

use super::*;
use crate::fixtures::{rollout, workload};
use crate::restart::{WorkloadOutcome, settle};

#[test]
fn only_a_pass_that_moved_nothing_but_times_is_a_heartbeat() {
    use Write::{Full, Heartbeat};
    let (a, b) = (version(1, "A"), version(2, "B"));
    let unchanged = || synced(&a, Change::Unchanged);
    let keys = |keys: &[&str]| SyncReport::Synced {
        version: a.clone(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        change: Change::Unchanged,
    };
    let with = |edit: fn(&mut FerrVaultSecretStatus)| {
        let mut status = in_order(&version(1, "A"));
        edit(&mut status);
        Some(status)
    };
    let in_order = || with(|_| {});
    let owed = || {
        let outcomes = [(workload("api"), WorkloadOutcome::Missing)];
        RestartReport::Owed { current: b.clone(), settled: settle(&b, &[], &outcomes, at(NOW)) }
    };
    let nothing = || RestartReport::Nothing;
    let cases = [
        ("unchanged", in_order(), unchanged(), nothing(), Heartbeat),
        ("no stage was due", in_order(), SyncReport::NotDue, RestartReport::NotDue, Heartbeat),
        ("the baseline that is on record", in_order(), unchanged(), RestartReport::Baseline(a.clone()), Heartbeat),
        ("repaired under its version", in_order(), synced(&a, Change::Repaired), nothing(), Heartbeat),
        ("the first status of all", None, SyncReport::NotDue, RestartReport::NotDue, Full),
        ("the first success", None, unchanged(), RestartReport::Baseline(a.clone()), Full),
        ("another version", in_order(), synced(&b, Change::Adopted), nothing(), Full),
        ("new content", in_order(), synced(&a, Change::Replaced), nothing(), Full),
        ("other keys", in_order(), keys(&["KEY", "NEW"]), nothing(), Full),
        ("another number of keys", in_order(), keys(&[]), nothing(), Full),
        ("a refusal", in_order(), refused(Reason::AuthFailed), RestartReport::NotDue, Full),
        ("a debt", in_order(), SyncReport::NotDue, owed(), Full),
        ("a baseline", with(|s| s.last_rollout_hash = None), unchanged(), RestartReport::Baseline(a.clone()), Full),
        ("another generation", with(|s| s.observed_generation = Some(2)), unchanged(), nothing(), Full),
        ("keys that were missing", with(|s| s.missing_keys.push("B".to_owned())), unchanged(), nothing(), Full),
        (
            "conditions of an older generation",
            with(|s| s.conditions.iter_mut().for_each(|c| c.observed_generation = Some(2))),
            unchanged(),
            nothing(),
            Full,
        ),
        ("a condition that somebody removed", with(|s| s.conditions.truncate(1)), unchanged(), nothing(), Full),
        (
            "a success after a refusal",
            with(|s| s.conditions[0].reason = "Unreachable".to_owned()),
            unchanged(),
            nothing(),
            Full,
        ),
    ];
    for (case, status, sync, restart, expected) in cases {
        let found = FerrVaultSecret { status, ..resource() };
        assert_eq!(render(&found, &sync, &restart, at(NOW)).write, expected, "{case}");
    }
}

#[test]
fn a_heartbeat_tells_nobody_and_carries_two_times() {
    let before = in_order(&version(1, "A"));
    let rendered =
        render(&resource_in_order(), &synced(&version(1, "A"), Change::Unchanged), &RestartReport::Nothing, at(NOW));
    assert!(rendered.transitions.is_empty());
    let expected =
        FerrVaultSecretStatus { last_attempted_at: Some(time(NOW)), last_synced_at: Some(time(NOW)), ..before };
    assert_eq!(rendered.status, expected);
}

#[test]
fn the_same_debt_again_is_a_heartbeat_and_no_news() {
    let b = version(2, "B");
    let report = |recorded: &[Rollout]| {
        let outcomes = [(workload("api"), WorkloadOutcome::Failed("forbidden".to_owned()))];
        RestartReport::Owed { current: b.clone(), settled: settle(&b, recorded, &outcomes, at(NOW)) }
    };
    let first = render(&resource_in_order(), &SyncReport::NotDue, &report(&[]), at(NOW));
    assert_eq!((first.write, first.transitions.len()), (Write::Full, 1));
    let found = with_status(first.status.clone());
    let second = render(&found, &SyncReport::NotDue, &report(&first.status.rollouts), at(NOW + 60));
    assert_eq!((second.write, second.transitions.len()), (Write::Heartbeat, 0));
}

#[test]
fn the_same_refusal_again_is_a_heartbeat_and_no_news() {
    for reason in Reason::ALL {
        let first = render(&resource_in_order(), &refused(reason), &RestartReport::NotDue, at(NOW));
        let found = with_status(first.status);
        let second = render(&found, &refused(reason), &RestartReport::NotDue, at(NOW + 60));
        assert_eq!(second.write, Write::Heartbeat, "{reason}");
        assert!(second.transitions.is_empty(), "{reason}");
    }
}

#[test]
fn people_are_told_of_another_state_or_reason_and_not_of_another_message() {
    let told = |found: &FerrVaultSecret, report: SyncReport| {
        let rendered = render(found, &report, &RestartReport::NotDue, at(NOW));
        let told = rendered.transitions.iter().map(|told| (told.type_, told.is_true, told.reason)).collect::<Vec<_>>();
        (told, with_status(rendered.status))
    };
    let wordy = |reason, message: &str| SyncReport::Refused(Refusal::new(reason, message));
    let (first, found) = told(&resource_in_order(), wordy(Reason::Unreachable, "no answer"));
    assert_eq!(first, [("Ready", true, Reason::Unreachable)], "True it stays, but why is another matter");
    let (second, found) = told(&found, wordy(Reason::Unreachable, "no answer from another address"));
    assert_eq!(second, []);
    let (third, found) = told(&found, wordy(Reason::AuthFailed, "401"));
    assert_eq!(third, [("Ready", false, Reason::AuthFailed)]);
    let (fourth, found) = told(&found, wordy(Reason::VaultNotFound, "404"));
    assert_eq!(fourth, [("Ready", false, Reason::VaultNotFound)]);
    let (fifth, _) = told(&found, synced(&version(1, "A"), Change::Unchanged));
    assert_eq!(fifth, [("Ready", true, Reason::Synced)]);
}

#[test]
fn a_transition_has_its_time_from_the_change_of_state_and_not_of_reason() {
    let step = |found: &FerrVaultSecret, report: SyncReport, seconds: i64| {
        let status = render(found, &report, &RestartReport::NotDue, at(seconds)).status;
        let since = ready(&status).last_transition_time.clone();
        (since, with_status(status))
    };
    let (since, found) = step(&resource_in_order(), refused(Reason::Unreachable), 20);
    assert_eq!(since, time(10), "True it was");
    let (since, found) = step(&found, refused(Reason::AuthFailed), 30);
    assert_eq!(since, time(30));
    let (since, found) = step(&found, refused(Reason::VaultNotFound), 40);
    assert_eq!(since, time(30), "False it was");
    let (since, found) = step(&found, synced(&version(1, "A"), Change::Unchanged), 50);
    assert_eq!(since, time(50));
    let (since, _) = step(&found, synced(&version(2, "B"), Change::Replaced), 60);
    assert_eq!(since, time(50), "True it was");
}

#[test]
fn the_conditions_of_other_writers_stay_as_and_where_they_are() {
    let foreign = condition_since_10("Audited", "False", "Gap", "by somebody else");
    let mut before = in_order(&version(1, "A"));
    before.conditions.insert(0, foreign.clone());
    let found = with_status(before);
    for report in [refused(Reason::AuthFailed), synced(&version(2, "B"), Change::Replaced)] {
        let status = render(&found, &report, &RestartReport::NotDue, at(NOW)).status;
        assert_eq!(status.conditions[0], foreign);
        assert_eq!(status.conditions.len(), 4);
    }
    let status = render_timeout(&found, "somewhere", "2m0s", None, at(NOW)).status;
    assert_eq!(status.conditions[0], foreign);
}

#[test]
fn merging_keeps_one_condition_per_type() {
    let old = condition_since_10("Ready", "True", "Synced", "1 key");
    let new = |is_true, reason, message: &str| condition_of("Ready", is_true, reason, message.to_owned(), 4, at(NOW));
    let cases = [
        ("the same", new(true, Reason::Synced, "1 key"), false, 10),
        ("another message", new(true, Reason::Synced, "2 keys"), false, 10),
        ("another reason", new(true, Reason::Unreachable, "1 key"), true, 10),
        ("another state", new(false, Reason::Synced, "1 key"), true, NOW),
    ];
    for (case, new, is_change, since) in cases {
        let mut conditions = vec![condition_since_10("Other", "True", "Fine", ""), old.clone()];
        assert_eq!(merge(&mut conditions, new.clone()), is_change, "{case}");
        let expected = Condition { last_transition_time: time(since), ..new };
        assert_eq!(conditions[1..], [expected], "{case}");
        assert_eq!(conditions[0].type_, "Other", "{case}");
    }
    let mut none = Vec::new();
    assert!(merge(&mut none, new(true, Reason::Synced, "")));
    assert_eq!(none, [new(true, Reason::Synced, "")]);
}

#[test]
fn records_of_workloads_stay_while_no_restart_stage_ran() {
    let a = version(1, "A");
    let rollouts = vec![rollout("api", Some(&a), RolloutState::Restarted)];
    let found = with_status(FerrVaultSecretStatus { rollouts: rollouts.clone(), ..in_order(&a) });
    for restart in [RestartReport::NotDue, RestartReport::Nothing, RestartReport::Baseline(a.clone())] {
        let status = render(&found, &synced(&a, Change::Unchanged), &restart, at(NOW)).status;
        assert_eq!(status.rollouts, rollouts, "{restart:?}");
    }
}
