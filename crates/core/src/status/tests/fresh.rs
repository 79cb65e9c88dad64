//! What the end of a pass says about passes: Fresh, the request it answers, and what it does not say when it has no end.

use super::*;

fn fresh(status: &FerrVaultSecretStatus) -> &Condition {
    condition_of_type(status, condition::FRESH)
}

/// The resource as it was left by a watchdog.
fn resource_called(reason: &str) -> FerrVaultSecret {
    let mut status = in_order(&version(1, "A"));
    status.conditions.retain(|found| found.type_ != condition::FRESH);
    status.conditions.push(condition_since_10(condition::FRESH, "False", reason, "late"));
    with_status(status)
}

#[test]
fn any_pass_that_ends_makes_it_true_again_and_people_are_told() {
    for reason in ["Stale", "Overdue"] {
        for sync in [synced(&version(1, "A"), Change::Unchanged), refused(Reason::AuthFailed), SyncReport::NotDue] {
            let rendered = render(&resource_called(reason), &sync, &RestartReport::NotDue, at(NOW));
            let now = fresh(&rendered.status);
            assert_eq!((now.status.as_str(), now.reason.as_str()), ("True", "Current"), "{reason}, {sync:?}");
            assert_eq!(now.last_transition_time, time(NOW));
            assert_eq!(rendered.write, Write::Full);
            let told = rendered.transitions.iter().filter(|told| told.type_ == condition::FRESH);
            assert_eq!(told.map(|told| (told.is_true, told.reason)).collect::<Vec<_>>(), [(true, Reason::Current)]);
        }
    }
}

#[test]
fn that_it_is_true_for_the_first_time_is_no_news() {
    let a = version(1, "A");
    let rendered = render(&resource(), &synced(&a, Change::Created), &RestartReport::Baseline(a.clone()), at(NOW));
    assert_eq!(fresh(&rendered.status).status, "True");
    assert!(rendered.transitions.iter().all(|told| told.type_ != condition::FRESH), "{:?}", rendered.transitions);
}

#[test]
fn a_suspended_resource_is_fresh_for_that_reason_and_not_ready() {
    let mut suspended = resource_called("Stale");
    suspended.spec.suspend = Some(true);
    let refusal = crate::sync::checks::suspended(&suspended).unwrap();
    let rendered = render(&suspended, &SyncReport::Refused(refusal.clone()), &RestartReport::NotDue, at(NOW));
    let now = &rendered.status;
    assert_eq!((fresh(now).status.as_str(), fresh(now).reason.as_str()), ("True", "Suspended"));
    assert_eq!((ready(now).status.as_str(), ready(now).reason.as_str()), ("False", "Suspended"));
    // The next pass has nothing to add.
    suspended.status = Some(rendered.status);
    let again = render(&suspended, &SyncReport::Refused(refusal), &RestartReport::NotDue, at(NOW + 1));
    assert_eq!((again.write, again.transitions), (Write::Heartbeat, Vec::new()));
}

#[test]
fn a_pass_without_an_end_leaves_attempt_and_freshness_as_they_were() {
    let before = resource_called("Overdue");
    let cut = render_timeout(&before, "asking FerrVault", "2m0s", None, at(NOW));
    let panicked = render_panic(&before, "asking FerrVault", at(NOW));
    for (rendered, ready_now, message) in [
        (
            cut,
            ("True", "ReconcileTimeout"),
            "the pass was cut after 2m0s while asking FerrVault; it is tried again; last synced at 2026-01-01T00:00:10Z",
        ),
        (
            panicked,
            ("False", "InternalError"),
            "the pass ended in a mistake of the operator while asking FerrVault; the target keeps what it holds and the \
             pass is tried again",
        ),
    ] {
        let now = &rendered.status;
        assert_eq!((ready(now).status.as_str(), ready(now).reason.as_str()), ready_now);
        assert_eq!(ready(now).message, message);
        assert_eq!(now.last_attempted_at, Some(time(10)));
        assert_eq!(fresh(now), fresh(before.status.as_ref().unwrap()));
        assert_eq!(rendered.transitions.len(), 1);
    }
}

#[test]
fn a_request_is_answered_in_the_same_write_once() {
    let rendered = |before: &FerrVaultSecret, request| {
        let sync = synced(&version(1, "A"), Change::Unchanged);
        render(before, &sync, &RestartReport::Nothing, at(NOW)).answering(request)
    };
    let mut answered = resource_in_order();
    for (case, request, handled, write) in [
        ("nobody asks", None, None, Write::Heartbeat),
        ("a request", Some("1"), Some("1"), Write::Full),
        ("the same request", Some("1"), Some("1"), Write::Heartbeat),
        ("another one", Some(""), Some(""), Write::Full),
        ("it is taken away", None, Some(""), Write::Heartbeat),
    ] {
        let now = rendered(&answered, request);
        assert_eq!((now.status.last_handled_refresh.as_deref(), now.write), (handled, write), "{case}");
        answered.status = Some(now.status);
    }
}
