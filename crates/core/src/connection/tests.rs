//! What a connection's status says, and when it may go.

use super::*;
use crate::fixtures::{at, condition_since_10, connection, time};

#[test]
fn the_finalizer_is_there_exactly_while_the_connection_is_used() {
    use FinalizerChange::{Add, Keep, Remove};
    let held = vec![marks::CONNECTION_FINALIZER.to_owned()];
    let foreign = vec!["example.com/hold".to_owned()];
    let both = [foreign.clone(), held.clone()].concat();
    let cases = [
        ("unused, free", None, false, 0, Keep),
        ("unused, free, another's hold", Some(foreign.clone()), false, 0, Keep),
        ("unused, held", Some(held.clone()), false, 0, Remove),
        ("unused, held beside another", Some(both.clone()), false, 0, Remove),
        ("used, free", None, false, 1, Add),
        ("used, another's hold", Some(foreign.clone()), false, 7, Add),
        ("used, held", Some(held.clone()), false, 1, Keep),
        ("used, held, being deleted", Some(held.clone()), true, 1, Keep),
        ("used, free, being deleted: too late, the API refuses it", Some(foreign), true, 1, Keep),
        ("unused, held, being deleted", Some(held), true, 0, Remove),
        ("unused, being deleted, free", Some(Vec::new()), true, 0, Keep),
    ];
    for (case, finalizers, is_deleting, dependents, expected) in cases {
        let mut connection = connection();
        connection.metadata.finalizers = finalizers;
        connection.metadata.deletion_timestamp = is_deleting.then(|| time(5));
        assert_eq!(finalizer(&connection, dependents), expected, "{case}");
    }
}

fn names(count: usize) -> CheckReport {
    CheckReport::DeletionBlocked((0..count).map(|index| format!("r{index}")).collect())
}

#[test]
fn a_check_ends_in_a_condition_of_this_generation() {
    let refused = CheckReport::Refused(Refusal::new(Reason::TokenUnreadable, "Secret \"t\" does not exist"));
    let cases = [
        (
            "reachable",
            CheckReport::Reachable(TokenCheck::Accepted),
            "True",
            Reason::Reachable,
            "https://vault.example.com answers and accepts the token",
        ),
        (
            "reachable, and no more is known",
            CheckReport::Reachable(TokenCheck::NotTold),
            "True",
            Reason::Reachable,
            "https://vault.example.com answers; whether it accepts the token shows on the resources",
        ),
        ("refused", refused, "False", Reason::TokenUnreadable, "Secret \"t\" does not exist"),
        ("used by one", names(1), "False", Reason::DeletionBlocked, "still used by FerrVaultSecret r0; "),
        ("used by five", names(5), "False", Reason::DeletionBlocked, "FerrVaultSecret r0, r1, r2, r3, r4; "),
        ("used by seven", names(7), "False", Reason::DeletionBlocked, "r0, r1, r2, r3, r4 and 2 more; "),
    ];
    for (case, report, is_true, reason, fragment) in cases {
        let (status, transition) = render(&connection(), &report, at(99));
        let [condition] = status.conditions.as_slice() else { panic!("{case}: {status:?}") };
        assert_eq!((condition.type_.as_str(), condition.status.as_str()), ("Ready", is_true), "{case}");
        assert_eq!(condition.reason, reason.as_str(), "{case}");
        assert!(condition.message.contains(fragment), "{case}: {}", condition.message);
        assert_eq!(condition.observed_generation, Some(2), "{case}");
        assert_eq!(condition.last_transition_time, time(99), "{case}");
        assert_eq!(status.last_checked_at, Some(time(99)), "{case}");
        let told = transition.unwrap_or_else(|| panic!("{case}: not told"));
        assert_eq!((told.type_, told.is_true, told.reason), ("Ready", is_true == "True", reason), "{case}");
        assert_eq!(told.message, condition.message, "{case}");
    }
}

#[test]
fn a_check_that_finds_the_same_moves_one_time_and_tells_nobody() {
    let mut connection = connection();
    let (first, told) = render(&connection, &CheckReport::Reachable(TokenCheck::Accepted), at(10));
    assert!(told.is_some());
    connection.status = Some(first.clone());
    let (second, told) = render(&connection, &CheckReport::Reachable(TokenCheck::Accepted), at(99));
    assert!(told.is_none());
    assert_eq!(second.conditions, first.conditions);
    assert_eq!(second.last_checked_at, Some(time(99)));
}

#[test]
fn another_reason_is_told_and_another_message_is_not() {
    let mut connection = connection();
    let blocked = |count| names(count);
    let (status, _) = render(&connection, &blocked(2), at(10));
    connection.status = Some(status);

    let (status, told) = render(&connection, &blocked(1), at(50));
    assert!(told.is_none(), "one user less is no news");
    assert_eq!(status.conditions[0].last_transition_time, time(10));
    assert!(status.conditions[0].message.contains("FerrVaultSecret r0;"));

    let refused = CheckReport::Refused(Refusal::new(Reason::Unreachable, "no answer"));
    let (status, told) = render(&connection, &refused, at(50));
    assert_eq!(told.map(|told| told.reason), Some(Reason::Unreachable));
    assert_eq!(status.conditions[0].last_transition_time, time(10), "False it was and False it is");

    let (status, told) = render(&connection, &CheckReport::Reachable(TokenCheck::Accepted), at(60));
    assert_eq!(told.map(|told| told.is_true), Some(true));
    assert_eq!(status.conditions[0].last_transition_time, time(60));
}

#[test]
fn the_conditions_of_other_writers_stay() {
    let mut connection = connection();
    let foreign = condition_since_10("Audited", "True", "Fine", "by somebody");
    connection.status =
        Some(FerrVaultConnectionStatus { conditions: vec![foreign.clone()], ..FerrVaultConnectionStatus::default() });
    let (status, _) = render(&connection, &CheckReport::Reachable(TokenCheck::Accepted), at(99));
    assert_eq!(status.conditions.len(), 2);
    assert_eq!(status.conditions[0], foreign);
}

#[test]
fn a_message_is_cut_to_what_a_terminal_shows() {
    let long = CheckReport::Refused(Refusal::new(Reason::Unreachable, "ü".repeat(600)));
    let blocked = CheckReport::DeletionBlocked(vec!["r".repeat(253); 5]);
    for report in [long, blocked] {
        let (status, told) = render(&connection(), &report, at(99));
        let message = &status.conditions[0].message;
        assert_eq!(message.chars().count(), 512);
        assert!(message.ends_with('…'));
        assert_eq!(&told.unwrap().message, message);
    }
}
