//! `RolloutRestarted`, `lastRolloutHash` and `rollouts`: True only while nothing is owed (I5).

use super::*;
use crate::fixtures::{rollout, workload};
use crate::restart::{WorkloadOutcome, settle};

fn outcome_of(outcomes: Vec<(&str, WorkloadOutcome)>) -> RestartReport {
    let current = version(2, "B");
    let outcomes: Vec<_> = outcomes.into_iter().map(|(name, outcome)| (workload(name), outcome)).collect();
    RestartReport::Owed { settled: settle(&current, &[], &outcomes, at(NOW)), current }
}

fn done() -> WorkloadOutcome {
    WorkloadOutcome::Restarted { paused: false }
}

fn failed() -> WorkloadOutcome {
    WorkloadOutcome::Failed("forbidden".to_owned())
}

#[test]
fn a_debt_is_paid_or_shown_with_each_workload_that_keeps_it() {
    let cases = [
        ("no workload listed", vec![], true, "Restarted", "no workload is listed"),
        ("one restarted", vec![("api", done())], true, "Restarted", "1 workload(s) restarted"),
        (
            "one on pause",
            vec![("api", WorkloadOutcome::Restarted { paused: true }), ("worker", done())],
            true,
            "Restarted",
            "2 workload(s) restarted; Deployment/api is paused",
        ),
        (
            "one waited for",
            vec![("api", done()), ("worker", WorkloadOutcome::Missing)],
            false,
            "RolloutPending",
            "Deployment/worker: does not exist",
        ),
        (
            "one overtaken",
            vec![("api", WorkloadOutcome::Overtaken)],
            false,
            "RolloutPending",
            "Deployment/api: changed while it was being restarted",
        ),
        ("one refused", vec![("api", failed())], false, "RolloutFailed", "Deployment/api: forbidden"),
        (
            "one refused beside one waited for",
            vec![("api", WorkloadOutcome::Missing), ("worker", failed()), ("cron", done())],
            false,
            "RolloutFailed",
            "Deployment/api: does not exist; Deployment/worker: forbidden",
        ),
    ];
    let (a, b) = (version(1, "A"), version(2, "B"));
    for (case, outcomes, is_true, reason, message) in cases {
        let report = outcome_of(outcomes);
        let RestartReport::Owed { settled, .. } = &report else { unreachable!() };
        let rendered = render(&resource_in_order(), &synced(&b, Change::Replaced), &report, at(NOW));
        let condition = restarted(&rendered.status);
        assert_eq!((condition.status == "True", condition.reason.as_str()), (is_true, reason), "{case}");
        assert_eq!(condition.message, message, "{case}");
        assert_eq!(rendered.status.rollouts, settled.rollouts, "{case}");
        let last = if is_true { &b } else { &a };
        assert_eq!(rendered.status.last_rollout_hash.as_deref(), Some(last.as_str()), "{case}");
        // The data did sync, whatever became of the restarts.
        assert_eq!(ready(&rendered.status).status, "True", "{case}");
        assert_eq!(rendered.status.last_synced_at, Some(time(NOW)), "{case}");
        let told = rendered.transitions.iter().any(|told| told.type_ == condition::ROLLOUT_RESTARTED);
        assert_eq!(told, !is_true, "True it was: {case}");
    }
}

#[test]
fn a_baseline_is_recorded_and_restarts_nothing() {
    let a = version(1, "A");
    let before = FerrVaultSecretStatus { last_rollout_hash: None, ..in_order(&a) };
    let rendered = render(&with_status(before), &SyncReport::NotDue, &RestartReport::Baseline(a.clone()), at(NOW));
    assert_eq!(rendered.status.last_rollout_hash.as_deref(), Some(a.as_str()));
    assert!(rendered.status.rollouts.is_empty());
    assert_eq!(restarted(&rendered.status).status, "True");
    assert!(rendered.transitions.is_empty());
}

#[test]
fn where_nothing_is_owed_a_false_condition_is_taken_back() {
    let a = version(1, "A");
    let conditions = vec![condition_since_10(condition::ROLLOUT_RESTARTED, "False", "RolloutFailed", "forbidden")];
    let before = FerrVaultSecretStatus { conditions, ..in_order(&a) };
    let rendered = render(&with_status(before), &SyncReport::NotDue, &RestartReport::Nothing, at(NOW));
    let condition = restarted(&rendered.status);
    assert_eq!((condition.status.as_str(), condition.message.as_str()), ("True", "no restart is owed"));
    assert_eq!(condition.last_transition_time, time(NOW));
    assert_eq!(rendered.transitions.len(), 1);
}

#[test]
fn where_nothing_is_owed_a_true_condition_stays_for_the_new_generation() {
    let a = version(1, "A");
    let mut said = condition_since_10(condition::ROLLOUT_RESTARTED, "True", "Restarted", "2 workload(s) restarted");
    said.observed_generation = Some(2);
    let before = FerrVaultSecretStatus { conditions: vec![said.clone()], ..in_order(&a) };
    let rendered = render(&with_status(before), &SyncReport::NotDue, &RestartReport::Nothing, at(NOW));
    said.observed_generation = Some(3);
    assert_eq!(restarted(&rendered.status), &said);
    assert!(rendered.transitions.is_empty());
}

/// A pass whose target was proved new and whose restart stage could not look: True would be a lie from then on.
#[test]
fn a_restart_that_could_not_be_looked_at_is_owed_all_the_same() {
    let (a, b) = (version(1, "A"), version(2, "B"));
    let rendered = render(&resource_in_order(), &synced(&b, Change::Unchanged), &RestartReport::NotDue, at(NOW));
    let condition = restarted(&rendered.status);
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "RolloutPending"));
    assert_eq!(condition.last_transition_time, time(NOW));
    assert_eq!(rendered.status.last_rollout_hash.as_deref(), Some(a.as_str()), "the debt stays on record");

    let conditions = vec![condition_since_10(condition::ROLLOUT_RESTARTED, "False", "RolloutFailed", "forbidden")];
    let before = FerrVaultSecretStatus { conditions: conditions.clone(), ..in_order(&a) };
    let rendered = render(&with_status(before), &synced(&b, Change::Unchanged), &RestartReport::NotDue, at(NOW));
    assert_eq!(restarted(&rendered.status), &conditions[0], "what is known of it stays");

    let rendered = render(&resource_in_order(), &synced(&a, Change::Unchanged), &RestartReport::NotDue, at(NOW));
    assert_eq!(restarted(&rendered.status).status, "True", "nothing is owed for this version");

    let rendered = render(&resource(), &synced(&a, Change::Created), &RestartReport::NotDue, at(NOW));
    assert!(rendered.status.conditions.iter().all(|found| found.type_ != condition::ROLLOUT_RESTARTED));
}

#[test]
fn a_failed_restart_is_retried_and_paid_while_ferrvault_is_away() {
    let (a, b) = (version(1, "A"), version(2, "B"));
    let before = FerrVaultSecretStatus {
        content_hash: Some(b.to_string()),
        rollouts: vec![rollout("api", Some(&a), RolloutState::Failed)],
        conditions: vec![
            condition_since_10(condition::READY, "True", "Synced", "1 key(s) synced into app-env"),
            condition_since_10(condition::ROLLOUT_RESTARTED, "False", "RolloutFailed", "Deployment/api: forbidden"),
        ],
        ..in_order(&a)
    };
    let report = outcome_of(vec![("api", done())]);
    let rendered = render(&with_status(before), &refused(Reason::AuthFailed), &report, at(NOW));
    assert_eq!(ready(&rendered.status).status, "False");
    assert_eq!(restarted(&rendered.status).status, "True");
    assert_eq!(rendered.status.last_rollout_hash.as_deref(), Some(b.as_str()));
    assert_eq!(rendered.status.last_synced_at, Some(time(10)));
}
