//! `RolloutRestarted`, `lastRolloutHash` and `rollouts`: True only while nothing is owed (I5).

use super::*;
use crate::fixtures::{rollout, workload};

use crate::restart::{WorkloadOutcome, WorkloadState, settle};

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
        ("no workload listed", vec![], true, "Restarted", "nothing to restart: no workload is listed"),
        ("one restarted", vec![("api", done())], true, "Restarted", "1 workload(s) restarted"),
        (
            "one on pause",
            vec![("api", WorkloadOutcome::Restarted { paused: true }), ("worker", done())],
            true,
            "Restarted",
            "2 workload(s) restarted; Deployment/api was paused at 2026-01-01T00:01:39Z, and resuming it restarts its pods",
        ),
        (
            "one waited for",
            vec![("api", done()), ("worker", WorkloadOutcome::Missing)],
            false,
            "RolloutPending",
            "Deployment/worker: does not exist; create it, or take it out of spec.rolloutRestart",
        ),
        (
            "one overtaken",
            vec![("api", WorkloadOutcome::Overtaken)],
            false,
            "RolloutPending",
            "Deployment/api: changed while it was being restarted; it is tried again",
        ),
        (
            "one refused",
            vec![("api", failed())],
            false,
            "RolloutFailed",
            "Deployment/api: forbidden; it is tried again until it works: mend what is said here, or take it out of \
             spec.rolloutRestart",
        ),
        (
            "one refused beside one waited for",
            vec![("api", WorkloadOutcome::Missing), ("worker", failed()), ("cron", done())],
            false,
            "RolloutFailed",
            "Deployment/api: does not exist; Deployment/worker: forbidden; it is tried again until it works: mend what is \
             said here, or take it out of spec.rolloutRestart",
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
    let nothing = ("True", "nothing to restart: no workload is listed");
    assert_eq!((condition.status.as_str(), condition.message.as_str()), nothing);
    assert_eq!(condition.last_transition_time, time(NOW));
    assert_eq!(rendered.transitions.len(), 1);
}

#[test]
fn where_nothing_is_owed_a_true_condition_stays_word_for_word_until_the_resource_is_another() {
    let a = version(1, "A");
    let mut said = condition_since_10(condition::ROLLOUT_RESTARTED, "True", "Restarted", "whatever it was");
    let before = |said: &Condition| {
        let mut before = in_order(&a);
        before.conditions[1] = said.clone();
        before.rollouts = vec![rollout("api", Some(&a), RolloutState::Restarted)];
        before
    };
    for restart in [RestartReport::Nothing, RestartReport::Baseline(a.clone())] {
        let rendered = render(&listing(&["api"], before(&said)), &SyncReport::NotDue, &restart, at(NOW));
        assert_eq!(restarted(&rendered.status), &said);
        assert_eq!(rendered.write, Write::Heartbeat);
    }
    said.observed_generation = Some(2);
    for (listed, message) in [
        (&["api"][..], "1 workload(s) restarted"),
        (&["api", "new"], "1 workload(s) restarted"),
        (&["new"], "no restart is owed"),
        (&[], "nothing to restart: no workload is listed"),
    ] {
        let found = listing(listed, before(&said));
        let rendered = render(&found, &SyncReport::NotDue, &RestartReport::Nothing, at(NOW));
        let now = restarted(&rendered.status);
        assert_eq!((now.status.as_str(), now.message.as_str()), ("True", message), "{listed:?}");
        assert_eq!((now.observed_generation, &now.last_transition_time), (Some(3), &time(10)), "{listed:?}");
        assert!(rendered.transitions.is_empty(), "{listed:?}: nothing was restarted");
    }
}

fn listing(names: &[&str], status: FerrVaultSecretStatus) -> FerrVaultSecret {
    let mut found = with_status(status);
    found.spec.rollout_restart = names.iter().map(|name| workload(name)).collect();
    found
}

#[test]
fn what_a_look_finds_is_said_while_nothing_is_owed_and_touches_no_record() {
    let a = version(1, "A");
    let states = |missing: &[&str], unreadable: &[&str]| {
        let missing = missing.iter().map(|name| (workload(name), WorkloadState::Missing));
        let why = || WorkloadState::Unreadable("forbidden".to_owned());
        Look::of(&missing.chain(unreadable.iter().map(|name| (workload(name), why()))).collect::<Vec<_>>(), at(NOW))
    };
    let many: Vec<String> = (0..300).map(|index| format!("workload-{index}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (case, look, message) in [
        ("all is there", states(&[], &[]), "no restart is owed".to_owned()),
        (
            "a name that is mistyped",
            states(&["apj"], &[]),
            "no restart is owed; at 2026-01-01T00:01:39Z Deployment/apj did not exist: create it, or correct \
             spec.rolloutRestart"
                .to_owned(),
        ),
        (
            "two that may not be read",
            states(&[], &["api", "store"]),
            "no restart is owed; at 2026-01-01T00:01:39Z Deployment/api and 1 more could not be looked at: forbidden"
                .to_owned(),
        ),
        (
            "both",
            states(&["apj"], &["api"]),
            "no restart is owed; at 2026-01-01T00:01:39Z Deployment/apj did not exist: create it, or correct \
             spec.rolloutRestart; at 2026-01-01T00:01:39Z Deployment/api could not be looked at: forbidden"
                .to_owned(),
        ),
        ("hundreds", states(&many, &[]), String::new()),
    ] {
        let before = listing(&["api"], in_order(&a));
        let sync = synced(&a, Change::Unchanged);
        let rendered = render_with_look(&before, &sync, &RestartReport::Nothing, Some(&look), at(NOW));
        let said = restarted(&rendered.status);
        assert_eq!((said.status.as_str(), said.reason.as_str()), ("True", "Restarted"), "{case}");
        if message.is_empty() {
            assert!(said.message.contains("workload-9 and 290 more did not exist"), "{case}: {}", said.message);
            assert!(said.message.chars().count() <= MAX_MESSAGE, "{case}");
        } else {
            assert_eq!(said.message, message, "{case}");
        }
        let kept = before.status.as_ref().unwrap();
        assert_eq!(rendered.status.last_rollout_hash, kept.last_rollout_hash, "{case}");
        assert_eq!(rendered.status.rollouts, kept.rollouts, "{case}");
        assert!(rendered.transitions.is_empty(), "{case}");

        // Later passes of this generation neither look nor say anything else.
        let mut after = before.clone();
        after.status = Some(rendered.status.clone());
        let later = render(&after, &sync, &RestartReport::Nothing, at(NOW + 1));
        assert_eq!((restarted(&later.status), later.write), (said, Write::Heartbeat), "{case}");
        // The next look finds them.
        let found = states(&[], &[]);
        let next = render_with_look(&after, &sync, &RestartReport::Nothing, Some(&found), at(NOW + 2));
        assert_eq!(restarted(&next.status).message, "no restart is owed", "{case}");
    }
}

/// What was owed for another version is not owed any more once the target is back under the one on record.
#[test]
fn no_record_says_failed_where_nothing_is_owed() {
    use RolloutState::{Failed, Restarted, Waiting};
    let (a, old) = (version(1, "A"), version(9, "Z"));
    let mut rollouts = vec![
        rollout("done", Some(&a), Restarted),
        rollout("refused", Some(&a), Failed),
        rollout("older", Some(&old), Waiting),
        rollout("never", None, Failed),
    ];
    rollouts[1].message = "forbidden".to_owned();
    let conditions = vec![condition_since_10(condition::ROLLOUT_RESTARTED, "False", "RolloutFailed", "forbidden")];
    let before = FerrVaultSecretStatus { conditions, rollouts: rollouts.clone(), ..in_order(&a) };
    let found = listing(&["done", "refused", "older", "never"], before);
    let rendered = render(&found, &SyncReport::NotDue, &RestartReport::Nothing, at(NOW));
    let told = |entry: &Rollout| (entry.name.clone(), entry.hash.clone(), entry.state, entry.message.clone());
    let now: Vec<_> = rendered.status.rollouts.iter().map(told).collect();
    let hash = |version: &Version| version.as_str().to_owned();
    let restarted_for = |name: &str, version| (name.to_owned(), hash(version), Restarted, String::new());
    assert_eq!(now, [restarted_for("done", &a), restarted_for("refused", &a), restarted_for("older", &old)]);
    assert_eq!(rendered.status.rollouts[0], rollouts[0], "what was right stays as it was");
    assert_eq!(restarted(&rendered.status).message, "3 workload(s) restarted");
}

#[test]
fn a_debt_that_nobody_retries_says_so() {
    let (a, b) = (version(1, "A"), version(2, "B"));
    let owing = |status: &str| FerrVaultSecretStatus {
        conditions: vec![condition_since_10(condition::ROLLOUT_RESTARTED, status, "RolloutFailed", "as it was")],
        content_hash: Some(b.to_string()),
        rollouts: vec![rollout("api", Some(&a), RolloutState::Failed)],
        ..in_order(&a)
    };
    let refusal = Refusal::new(Reason::TargetConflict, "why");
    let held = "a restart is owed and waits for what Ready says (TargetConflict); status.rollouts has each workload";
    for (case, status, refusal, message) in [
        ("it stands in the way", "False", refusal.clone().holding_restarts(), held),
        ("it does not", "False", refusal.clone(), "as it was"),
        ("nothing is owed", "True", refusal.holding_restarts(), "as it was"),
    ] {
        let report = SyncReport::Refused(refusal);
        let before = owing(status);
        let mut found = listing(&["api"], before.clone());
        let rendered = render(&found, &report, &RestartReport::NotDue, at(NOW));
        let said = restarted(&rendered.status);
        let expected = (status, "RolloutFailed", message);
        assert_eq!((said.status.as_str(), said.reason.as_str(), said.message.as_str()), expected, "{case}");
        assert_eq!(rendered.status.rollouts, before.rollouts, "{case}");
        assert_eq!(rendered.status.last_rollout_hash, before.last_rollout_hash, "{case}");
        found.status = Some(rendered.status);
        let again = render(&found, &report, &RestartReport::NotDue, at(NOW + 1));
        assert_eq!(again.write, Write::Heartbeat, "{case}: said once");
    }
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
