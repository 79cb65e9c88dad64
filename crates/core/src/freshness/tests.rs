use serde_json::json;

use super::*;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ages(attempted: u64, awaited: Option<u64>) -> Ages {
    Ages { attempted: secs(attempted), awaited: awaited.map(secs) }
}

#[test]
fn a_resource_is_judged_by_what_is_late_and_by_how_much() {
    use Freshness::{Current, Overdue, Stale, Suspended};
    const HOUR: u64 = 3_600;
    const AGES: u64 = 1_000 * HOUR;
    for (case, suspended, interval, age, expected) in [
        ("just looked at", false, 60, ages(0, None), Current),
        ("at its limit", false, 60, ages(2 * 60 + 300, None), Current),
        ("a second past its limit", false, 60, ages(2 * 60 + 301, None), Stale),
        ("an hourly one after two hours", false, HOUR, ages(2 * HOUR, None), Current),
        ("an hourly one past two hours and five minutes", false, HOUR, ages(2 * HOUR + 301, None), Stale),
        ("without a schedule nothing is late", false, 0, ages(AGES, None), Current),
        ("an interval longer than time itself", false, u64::MAX, ages(u64::MAX, None), Current),
        ("asked for five minutes ago", false, HOUR, ages(400, Some(300)), Current),
        ("asked for longer ago, however long the interval", false, HOUR, ages(400, Some(301)), Overdue),
        ("asked for longer ago, without a schedule", false, 0, ages(AGES, Some(301)), Overdue),
        ("both late and asked for", false, 60, ages(AGES, Some(301)), Overdue),
        ("late, and asked for only now", false, 60, ages(AGES, Some(1)), Stale),
        ("suspended, whatever is late", true, 60, ages(AGES, Some(AGES)), Suspended),
    ] {
        assert_eq!(judge(suspended, secs(interval), age), expected, "{case}");
    }
}

/// A resource of generation 3 whose `Fresh` stands as given.
fn resource(fresh: Option<(&str, &str)>) -> FerrVaultSecret {
    let mut conditions = vec![json!({
        "type": "Ready", "status": "True", "reason": "Synced", "message": "as it was", "observedGeneration": 3,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })];
    if let Some((status, reason)) = fresh {
        conditions.push(json!({
            "type": "Fresh", "status": status, "reason": reason, "message": "m", "observedGeneration": 2,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }));
    }
    serde_json::from_value(json!({
        "apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret",
        "metadata": {"namespace": "shop", "name": "db", "generation": 3},
        "spec": {"connectionRef": {"name": "main"}, "vault": "v"},
        "status": {"conditions": conditions, "lastRolloutHash": "kept"},
    }))
    .unwrap()
}

fn now() -> Timestamp {
    "2026-01-01T12:00:00.9Z".parse().unwrap()
}

#[test]
fn what_is_said_already_is_not_said_again() {
    for (standing, freshness) in [
        (("True", "Current"), Freshness::Current),
        (("True", "Suspended"), Freshness::Suspended),
        (("False", "Stale"), Freshness::Stale),
        (("False", "Overdue"), Freshness::Overdue),
    ] {
        assert_eq!(render(&resource(Some(standing)), freshness, secs(60), ages(9_999, Some(9_999)), now()), None);
    }
}

#[test]
fn the_message_says_since_when_and_what_the_limit_is() {
    for (freshness, message) in [
        (
            Freshness::Stale,
            "no pass has ended since 2026-01-01T11:50:00Z; with this refresh interval the limit is 7m0s",
        ),
        (Freshness::Overdue, "a pass was asked for at 2026-01-01T11:54:00Z and has not ended; the limit is 5m0s"),
    ] {
        let (status, told) =
            render(&resource(Some(("True", "Current"))), freshness, secs(60), ages(600, Some(360)), now()).unwrap();
        let fresh = said(Some(&status)).unwrap();
        assert_eq!((fresh.status.as_str(), fresh.message.as_str()), ("False", message));
        assert_eq!((fresh.observed_generation, fresh.last_transition_time.0), (Some(3), now()));
        let told = told.unwrap();
        assert_eq!((told.type_, told.is_true, told.reason), ("Fresh", false, freshness.reason()));
    }
}

#[test]
fn that_nothing_is_expected_of_a_suspended_resource_is_said_otherwise_than_that_all_is_well() {
    for (freshness, message) in [
        (Freshness::Suspended, "spec.suspend is true, so no pass is expected"),
        (Freshness::Current, "passes end as often as they should"),
    ] {
        assert_eq!(ended(&resource(None), freshness, now()).message, message);
    }
}

#[test]
fn everything_else_in_the_status_stays() {
    let before = resource(Some(("True", "Current")));
    let (mut after, _) = render(&before, Freshness::Stale, secs(60), ages(600, None), now()).unwrap();
    let mut before = before.status.unwrap();
    before.conditions.retain(|found| found.type_ != "Fresh");
    after.conditions.retain(|found| found.type_ != "Fresh");
    assert_eq!(before, after);
}

#[test]
fn people_are_told_of_trouble_and_of_its_end_and_of_nothing_else() {
    for (standing, freshness, news) in [
        (None, Freshness::Current, false),
        (None, Freshness::Stale, true),
        (Some(("True", "Current")), Freshness::Suspended, false),
        (Some(("True", "Suspended")), Freshness::Current, false),
        (Some(("False", "Stale")), Freshness::Overdue, true),
        (Some(("False", "Overdue")), Freshness::Current, true),
    ] {
        let (_, told) = render(&resource(standing), freshness, secs(60), ages(600, Some(360)), now()).unwrap();
        assert_eq!(told.is_some(), news, "{standing:?} to {freshness:?}");
    }
}

#[test]
fn a_time_before_the_calendar_is_no_failure() {
    let (status, _) = render(&resource(None), Freshness::Stale, secs(1), ages(u64::MAX, None), now()).unwrap();
    assert!(said(Some(&status)).unwrap().message.contains("-009999-01-02"), "{status:?}");
}
