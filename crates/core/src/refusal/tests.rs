//! When a refusal is tried again, and which of them a condition outlives.

use super::*;

#[test]
fn a_refusal_is_retried_as_it_was_made_to_be() {
    let by_reason = Refusal::new(Reason::EmptyAnswer, "nothing");
    assert_eq!((by_reason.retry, by_reason.message.as_str()), (Retry::ByReason, "nothing"));
    assert!(by_reason.missing_keys.is_empty());

    let passing = Refusal::passing(Reason::SecretReadFailed, "timed out");
    assert_eq!((passing.reason, passing.retry), (Reason::SecretReadFailed, Retry::Backoff));

    let after = passing.clone().after(Some(Duration::from_secs(7)));
    assert_eq!((after.reason, after.retry), (Reason::SecretReadFailed, Retry::After(Duration::from_secs(7))));
    assert_eq!(passing.clone().after(None), passing);
}

#[test]
fn only_what_passes_by_itself_leaves_a_condition_true() {
    let transient = [Reason::Unreachable, Reason::RateLimited, Reason::ReconcileTimeout];
    for reason in Reason::ALL {
        let expected = transient.contains(&reason);
        assert_eq!(Refusal::new(reason, "why").is_transient(), expected, "{reason}");
        assert_eq!(Refusal::passing(reason, "why").is_transient(), expected, "{reason}, however it is retried");
        let lost = Refusal { target_is_lost: true, ..Refusal::new(reason, "why") };
        assert_eq!((Refusal::new(reason, "why").leaves_ready(), lost.leaves_ready()), (expected, false), "{reason}");
    }
}
