//! From the outcome of a pass to the status it leaves: Ready here, restarts, writes and messages in files of their own.

use std::time::Duration;

use ferrvault_api::condition;
use ferrvault_api::secret::{Rollout, RolloutState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::messages::MAX_MESSAGE;
use super::*;
use crate::fixtures::{CANARY, LEGACY_A, at, condition_since_10, in_order, resource, time, version, with_status};

mod fresh;
mod messages;
mod restarts;
mod writes;

const NOW: i64 = 99;

fn synced(version: &Version, change: Change) -> SyncReport {
    SyncReport::Synced { version: version.clone(), keys: vec!["KEY".to_owned()], change }
}

fn refused(reason: Reason) -> SyncReport {
    SyncReport::Refused(Refusal::new(reason, "why"))
}

fn ready(status: &FerrVaultSecretStatus) -> &Condition {
    condition_of_type(status, condition::READY)
}

fn restarted(status: &FerrVaultSecretStatus) -> &Condition {
    condition_of_type(status, condition::ROLLOUT_RESTARTED)
}

#[track_caller]
fn condition_of_type<'a>(status: &'a FerrVaultSecretStatus, type_: &str) -> &'a Condition {
    let found: Vec<&Condition> = status.conditions.iter().filter(|found| found.type_ == type_).collect();
    let [condition] = found.as_slice() else { panic!("{type_}: {found:?}") };
    condition
}

/// A resource whose last pass was in order, at 10 s.
fn resource_in_order() -> FerrVaultSecret {
    with_status(in_order(&version(1, "A")))
}

/// Transient or not, as the contract has it.
const TRANSIENT: [Reason; 3] = [Reason::Unreachable, Reason::RateLimited, Reason::ReconcileTimeout];

#[test]
fn a_first_success_fills_the_status() {
    let a = version(1, "A");
    let rendered = render(&resource(), &synced(&a, Change::Created), &RestartReport::Baseline(a.clone()), at(NOW));
    let status = &rendered.status;
    assert_eq!((ready(status).status.as_str(), ready(status).reason.as_str()), ("True", "Synced"));
    assert_eq!(ready(status).message, "1 key(s) synced into app-env");
    assert_eq!((restarted(status).status.as_str(), restarted(status).reason.as_str()), ("True", "Restarted"));
    for condition in &status.conditions {
        assert_eq!((condition.observed_generation, &condition.last_transition_time), (Some(3), &time(NOW)));
    }
    let now = Some(time(NOW));
    assert_eq!((&status.last_attempted_at, &status.last_synced_at, &status.last_changed_at), (&now, &now, &now));
    assert_eq!(status.content_hash.as_deref(), Some(a.as_str()));
    assert_eq!(status.last_rollout_hash.as_deref(), Some(a.as_str()));
    assert_eq!(status.synced_keys, ["KEY"]);
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(rendered.write, Write::Full);
    let told: Vec<_> = rendered.transitions.iter().map(|told| (told.type_, told.is_true, told.reason)).collect();
    assert_eq!(told, [("Ready", true, Reason::Synced)], "a baseline restarts nothing, so nobody is told of it");
}

#[test]
fn a_success_proves_the_version_and_only_another_content_moves_the_time_of_change() {
    use Change::{Adopted, Created, Recreated, Repaired, Replaced, Unchanged};
    let (a, b, legacy) = (version(1, "A"), version(2, "B"), Version::parse(LEGACY_A));
    let cases = [
        ("as it was", Some(&a), &a, Unchanged, false),
        ("repaired", Some(&a), &a, Repaired, false),
        ("recreated", Some(&a), &a, Recreated, false),
        ("created", None, &a, Created, true),
        ("replaced", Some(&a), &b, Replaced, true),
        ("replaced by a pass that did not report it", Some(&a), &b, Unchanged, true),
        ("the same, and edited since", Some(&a), &b, Repaired, true),
        ("the same, and deleted since", Some(&a), &b, Recreated, true),
        ("created by a pass that did not report it", None, &a, Unchanged, true),
        ("handed over as it should be", None, &a, Adopted, false),
        ("left by the Go operator", None, &legacy, Unchanged, false),
        ("replaced for the first time since then", None, &b, Replaced, true),
    ];
    for (case, known, current, change, is_changed) in cases {
        let before = FerrVaultSecretStatus { content_hash: known.map(ToString::to_string), ..in_order(&a) };
        let status = render(&with_status(before), &synced(current, change), &RestartReport::NotDue, at(NOW)).status;
        let changed = if is_changed { NOW } else { 10 };
        assert_eq!(status.last_changed_at, Some(time(changed)), "{case}");
        assert_eq!(status.last_synced_at, Some(time(NOW)), "{case}");
        assert_eq!(status.content_hash.as_deref(), Some(current.as_str()), "{case}");
    }
}

#[test]
fn a_success_forgets_what_was_missing_and_covers_the_new_generation() {
    let before = FerrVaultSecretStatus {
        missing_keys: vec!["B".to_owned()],
        observed_generation: Some(2),
        ..in_order(&version(1, "A"))
    };
    let a = version(1, "A");
    let report =
        SyncReport::Synced { version: a, keys: vec!["A".to_owned(), "B".to_owned()], change: Change::Unchanged };
    let status = render(&with_status(before), &report, &RestartReport::Nothing, at(NOW)).status;
    assert!(status.missing_keys.is_empty());
    assert_eq!(status.synced_keys, ["A", "B"]);
    assert_eq!(status.observed_generation, Some(3));
}

#[test]
fn a_refusal_proves_nothing() {
    let before = in_order(&version(1, "A"));
    for reason in Reason::ALL {
        let status = render(&resource_in_order(), &refused(reason), &RestartReport::NotDue, at(NOW)).status;
        let kept = FerrVaultSecretStatus {
            conditions: status.conditions.clone(),
            last_attempted_at: Some(time(NOW)),
            missing_keys: status.missing_keys.clone(),
            ..before.clone()
        };
        assert_eq!(status, kept, "{reason}");
        assert_eq!(restarted(&status), restarted(&before), "a refusal says nothing of restarts: {reason}");
    }
}

#[test]
fn ready_outlives_what_passes_by_itself_and_nothing_else() {
    for reason in Reason::ALL {
        let rendered = render(&resource_in_order(), &refused(reason), &RestartReport::NotDue, at(NOW));
        let condition = ready(&rendered.status);
        let is_transient = TRANSIENT.contains(&reason);
        assert_eq!(condition.status == "True", is_transient, "{reason}");
        assert_eq!(condition.reason, reason.as_str());
        assert_eq!(condition.observed_generation, Some(3));
        let since = if is_transient { 10 } else { NOW };
        assert_eq!(condition.last_transition_time, time(since), "{reason}");
        let message = if is_transient { "why; last synced at 2026-01-01T00:00:10Z" } else { "why" };
        assert_eq!(condition.message, message, "{reason}");
        assert_eq!(rendered.transitions.len(), 1, "{reason}");
    }
}

#[test]
fn ready_ends_with_a_target_that_is_lost_and_says_when_it_was_last_right() {
    for reason in TRANSIENT {
        let refusal = Refusal { target_is_lost: true, ..Refusal::new(reason, "why") };
        let rendered = render(&resource_in_order(), &SyncReport::Refused(refusal), &RestartReport::NotDue, at(NOW));
        let condition = ready(&rendered.status);
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", reason.as_str()));
        assert_eq!(condition.message, "why; last synced at 2026-01-01T00:00:10Z");
        assert_eq!(rendered.transitions.len(), 1, "{reason}");
    }
}

#[test]
fn ready_outlives_it_only_where_this_generation_was_synced() {
    let base = || in_order(&version(1, "A"));
    let with_ready = |status: &str, reason: &str| {
        let conditions = vec![condition_since_10(condition::READY, status, reason, "before")];
        FerrVaultSecretStatus { conditions, ..base() }
    };
    let cases = [
        ("this generation, synced", Some(base()), true),
        ("this generation, unreachable since then", Some(with_ready("True", "Unreachable")), true),
        ("this generation, refused since then", Some(with_ready("False", "AuthFailed")), false),
        ("another generation", Some(FerrVaultSecretStatus { observed_generation: Some(2), ..base() }), false),
        ("no generation", Some(FerrVaultSecretStatus { observed_generation: None, ..base() }), false),
        ("no condition", Some(FerrVaultSecretStatus { conditions: Vec::new(), ..base() }), false),
        ("no status", None, false),
    ];
    for (case, status, expected) in cases {
        let found = FerrVaultSecret { status, ..resource() };
        let rendered = render(&found, &refused(Reason::Unreachable), &RestartReport::NotDue, at(NOW));
        assert_eq!(ready(&rendered.status).status == "True", expected, "{case}");
    }
}

#[test]
fn a_refusal_without_a_success_before_it_tells_of_none() {
    let status = render(&resource(), &refused(Reason::Unreachable), &RestartReport::NotDue, at(NOW)).status;
    assert_eq!(ready(&status).message, "why");
}

#[test]
fn missing_keys_are_listed_until_a_success_or_another_list() {
    let missing = |keys: &[&str]| {
        SyncReport::Refused(Refusal {
            missing_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            ..Refusal::new(Reason::MissingKeys, "why")
        })
    };
    let mut found = resource_in_order();
    for (report, expected) in [
        (missing(&["A", "B"]), &["A", "B"][..]),
        (missing(&["B"]), &["B"]),
        // FerrVault away: what it last said still stands.
        (refused(Reason::Unreachable), &["B"]),
        (synced(&version(1, "A"), Change::Unchanged), &[]),
    ] {
        let status = render(&found, &report, &RestartReport::NotDue, at(NOW)).status;
        assert_eq!(status.missing_keys, expected);
        found.status = Some(status);
    }
}

#[test]
fn a_stage_that_was_not_due_leaves_what_it_would_have_written() {
    let before = in_order(&version(1, "A"));
    let status = render(&resource_in_order(), &SyncReport::NotDue, &RestartReport::NotDue, at(NOW)).status;
    assert_eq!(status, FerrVaultSecretStatus { last_attempted_at: Some(time(NOW)), ..before });
}

#[test]
fn a_pass_that_was_cut_shows_where_it_was_and_counts_as_none() {
    let found = resource_in_order();
    let rendered = render_timeout(&found, "asking FerrVault for vault prod", "2m0s", None, at(NOW));
    let condition = ready(&rendered.status);
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "ReconcileTimeout"));
    let said = "the pass was cut after 2m0s while asking FerrVault for vault prod; it is tried again; \
                last synced at 2026-01-01T00:00:10Z";
    assert_eq!(condition.message, said);
    assert_eq!(rendered.status.last_attempted_at, Some(time(10)), "standing still is what tells");
    assert_eq!(rendered.write, Write::Full);

    let lost = Some("Secret \"app-env\" was deleted");
    let rendered = render_timeout(&found, "asking", "2m0s", lost, at(NOW));
    let condition = ready(&rendered.status);
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "ReconcileTimeout"));
    assert!(
        condition.message.contains("tried again; Secret \"app-env\" was deleted; last synced"),
        "{}",
        condition.message
    );

    let rendered = render_timeout(&resource(), "reading the resource", "2m0s", None, at(NOW));
    assert_eq!(ready(&rendered.status).status, "False", "never synced");
    assert_eq!(rendered.status.last_attempted_at, None);
}

#[test]
fn a_pass_that_panicked_shows_where_it_was_and_counts_as_none() {
    for found in [resource_in_order(), resource()] {
        let rendered = render_panic(&found, "writing Secret app-env", at(NOW));
        let condition = ready(&rendered.status);
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "InternalError"));
        assert!(condition.message.contains("while writing Secret app-env"), "{}", condition.message);
        let attempted = found.status.as_ref().and_then(|status| status.last_attempted_at.clone());
        assert_eq!(rendered.status.last_attempted_at, attempted, "standing still is what tells");
        assert_eq!(rendered.write, Write::Full);
    }
}

#[test]
fn a_suspended_resource_says_so_and_is_fresh() {
    let mut found = resource_in_order();
    found.spec.suspend = Some(true);
    let refusal = crate::sync::checks::suspended(&found).expect("suspended");
    let rendered = render(&found, &SyncReport::Refused(refusal), &RestartReport::NotDue, at(NOW));
    assert_eq!(
        (ready(&rendered.status).status.as_str(), ready(&rendered.status).reason.as_str()),
        ("False", "Suspended")
    );
    let fresh = condition_of_type(&rendered.status, condition::FRESH);
    assert_eq!((fresh.status.as_str(), fresh.reason.as_str()), ("True", "Suspended"));
    assert_eq!(rendered.status.last_synced_at, Some(time(10)));
    let told: Vec<_> = rendered.transitions.iter().map(|told| (told.type_, told.reason)).collect();
    assert_eq!(told, [("Ready", Reason::Suspended)]);
}

#[test]
fn the_end_of_a_pass_takes_a_stale_resource_back() {
    let mut before = in_order(&version(1, "A"));
    before.conditions[2] = condition_since_10(condition::FRESH, "False", "Stale", "no pass has ended");
    let found = with_status(before);
    let rendered = render(&found, &refused(Reason::AuthFailed), &RestartReport::NotDue, at(NOW));
    let fresh = condition_of_type(&rendered.status, condition::FRESH);
    assert_eq!((fresh.status.as_str(), fresh.reason.as_str()), ("True", "Current"));
    assert_eq!(fresh.last_transition_time, time(NOW));
    let told: Vec<_> = rendered.transitions.iter().map(|told| (told.type_, told.is_true)).collect();
    assert_eq!(told, [("Ready", false), ("Fresh", true)]);

    let rendered = render_timeout(&found, "somewhere", "2m0s", None, at(NOW));
    assert_eq!(
        condition_of_type(&rendered.status, condition::FRESH).status,
        "False",
        "a pass that was cut did not end"
    );
}

#[test]
fn a_request_for_a_pass_is_answered_by_a_full_write_once() {
    let unchanged = || render(&resource_in_order(), &SyncReport::NotDue, &RestartReport::NotDue, at(NOW));
    let answered = unchanged().answering(Some("now"));
    assert_eq!((answered.status.last_handled_refresh.as_deref(), answered.write), (Some("now"), Write::Full));

    let unasked = unchanged().answering(None);
    assert_eq!((unasked.status.last_handled_refresh.as_deref(), unasked.write), (None, Write::Heartbeat));

    let found = with_status(answered.status);
    let again = |request| render(&found, &SyncReport::NotDue, &RestartReport::NotDue, at(NOW)).answering(request);
    assert_eq!(again(Some("now")).write, Write::Heartbeat);
    assert_eq!(again(None).write, Write::Heartbeat);
    assert_eq!(again(None).status.last_handled_refresh.as_deref(), Some("now"));
    let asked_anew = again(Some("and now"));
    assert_eq!((asked_anew.status.last_handled_refresh.as_deref(), asked_anew.write), (Some("and now"), Write::Full));
}

#[test]
fn the_hint_of_a_retry_is_no_part_of_a_status() {
    let refusal = Refusal::new(Reason::RateLimited, "why");
    let with = SyncReport::Refused(refusal.clone().after(Some(Duration::from_secs(7))));
    let without = SyncReport::Refused(refusal);
    let status = |report| render(&resource_in_order(), report, &RestartReport::NotDue, at(NOW)).status;
    assert_eq!(status(&with), status(&without));
}
