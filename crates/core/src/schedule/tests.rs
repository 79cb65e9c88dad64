//! Every delay between two passes: by its reason, within its bounds, and never none at all.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// A resource with an interval of half an hour under an operator whose default is an hour.
const USUAL: Cadence = Cadence { interval: Duration::from_mins(30), fallback: HOUR };
/// `refreshInterval: 0s` under the same operator.
const UNSCHEDULED: Cadence = Cadence { interval: Duration::ZERO, fallback: HOUR };
/// Under one whose default is `0s` as well.
const NEVER: Cadence = Cadence { interval: Duration::ZERO, fallback: Duration::ZERO };
const BRISK: Cadence = Cadence { interval: Duration::from_secs(20), fallback: HOUR };

fn refused(reason: Reason) -> Refusal {
    Refusal::new(reason, "why")
}

#[test]
fn the_next_scheduled_look_is_the_interval_give_or_take_a_tenth() {
    let cases = [
        ("early", USUAL, 0.0, Some(27 * MINUTE)),
        ("in the middle", USUAL, 0.5, Some(30 * MINUTE)),
        ("late", USUAL, 1.0, Some(33 * MINUTE)),
        ("jitter below its range", USUAL, -5.0, Some(27 * MINUTE)),
        ("jitter above its range", USUAL, 5.0, Some(33 * MINUTE)),
        ("no schedule", UNSCHEDULED, 0.5, None),
        ("no schedule anywhere", NEVER, 0.5, None),
    ];
    for (case, cadence, jitter, expected) in cases {
        let found = refresh(cadence, jitter);
        assert_eq!(found.map(|delay| delay.as_millis()), expected.map(|delay| delay.as_millis()), "{case}");
    }
}

#[test]
fn a_refused_stage_is_retried_as_the_table_of_reasons_says() {
    let by_reason = |reason, cadence| retry(&refused(reason), 1, cadence, 0.0);
    let cases = [
        ("a refused token, not too often", Reason::AuthFailed, USUAL, 5 * MINUTE),
        ("a refused token, however brisk the interval", Reason::AuthFailed, BRISK, 5 * MINUTE),
        ("a refused token without a schedule", Reason::AuthFailed, UNSCHEDULED, 5 * MINUTE),
        ("a key that was forgotten, within the minute", Reason::MissingKeys, USUAL, MINUTE),
        ("a key that was forgotten, with the interval if that is sooner", Reason::MissingKeys, BRISK, 20 * SECOND),
        ("a key that was forgotten, without a schedule", Reason::MissingKeys, UNSCHEDULED, MINUTE),
        ("a key that was forgotten, without any schedule", Reason::MissingKeys, NEVER, MINUTE),
        ("throttled without a time", Reason::RateLimited, USUAL, SECOND),
        ("no answer", Reason::Unreachable, USUAL, SECOND),
        ("cut at the deadline", Reason::ReconcileTimeout, USUAL, SECOND),
        ("a write refused", Reason::SecretWriteFailed, USUAL, SECOND),
        ("nothing found", Reason::EmptyAnswer, USUAL, 30 * MINUTE),
        ("nothing found, without a schedule: the operator's", Reason::EmptyAnswer, UNSCHEDULED, HOUR),
        ("nothing found, without any schedule: an hour", Reason::EmptyAnswer, NEVER, HOUR),
    ];
    for (case, reason, cadence, expected) in cases {
        assert_eq!(by_reason(reason, cadence), expected, "{case}");
    }
}

#[test]
fn whatever_has_no_row_of_its_own_waits_for_the_interval() {
    use Reason::{AuthFailed, MissingKeys, RateLimited, ReconcileTimeout, SecretWriteFailed, Unreachable};
    let with_a_row = [AuthFailed, MissingKeys, RateLimited, Unreachable, ReconcileTimeout, SecretWriteFailed];
    for reason in Reason::ALL.into_iter().filter(|reason| !with_a_row.contains(reason)) {
        assert_eq!(retry(&refused(reason), 3, USUAL, 0.5), USUAL.interval, "{reason}");
    }
}

#[test]
fn a_refusal_that_passes_by_itself_is_retried_soon_whatever_its_reason() {
    for reason in Reason::ALL {
        let passing = Refusal::passing(reason, "why");
        assert_eq!(retry(&passing, 1, USUAL, 0.0), SECOND, "{reason}");
        assert_eq!(retry(&passing, 4, USUAL, 0.0), 8 * SECOND, "{reason}");
    }
}

#[test]
fn a_time_that_the_other_side_named_is_kept_within_reason() {
    let after = |delay, jitter| {
        let refusal = refused(Reason::RateLimited).after(Some(delay));
        retry(&refusal, 9, BRISK, jitter)
    };
    let cases = [
        ("as asked", 40 * SECOND, 0.0, 40 * SECOND),
        ("never sooner, a tenth later at most", 40 * SECOND, 1.0, 44 * SECOND),
        ("not at once", Duration::ZERO, 0.0, SECOND),
        ("a day, by typo", 24 * HOUR, 0.0, HOUR),
        ("a day, with jitter", 24 * HOUR, 1.0, HOUR + 6 * MINUTE),
    ];
    for (case, asked, jitter, expected) in cases {
        assert_eq!(after(asked, jitter).as_millis(), expected.as_millis(), "{case}");
    }
}

#[test]
fn a_backoff_doubles_from_a_second_to_its_cap() {
    let delays: Vec<u64> = (1..=11).map(|attempts| backoff(attempts, BACKOFF_CAP, 0.0).as_secs()).collect();
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert_eq!(backoff(0, BACKOFF_CAP, 0.0), SECOND, "a first try that was never counted");
    assert_eq!(backoff(u32::MAX, BACKOFF_CAP, 0.0), BACKOFF_CAP);
    assert_eq!(backoff(5, BACKOFF_CAP, 1.0).as_millis(), 12_800, "jitter takes a fifth at most");
    assert_eq!(backoff(5, Duration::ZERO, 0.0), SECOND, "a cap below the first delay");
}

#[test]
fn no_backoff_outlasts_the_interval() {
    let unreachable = |cadence| retry(&refused(Reason::Unreachable), 30, cadence, 0.0);
    assert_eq!(unreachable(USUAL), 5 * MINUTE);
    assert_eq!(unreachable(BRISK), 20 * SECOND);
    assert_eq!(unreachable(UNSCHEDULED), 5 * MINUTE);
    assert_eq!(unreachable(NEVER), 5 * MINUTE);
}

#[test]
fn an_owed_restart_is_retried_without_limit() {
    let cases = [
        ("waited for, first", StillOwed::Waiting, 1, USUAL, SECOND),
        ("waited for, later", StillOwed::Waiting, 30, USUAL, 20 * SECOND),
        ("waited for, without a schedule", StillOwed::Waiting, 30, NEVER, 20 * SECOND),
        ("refused, first", StillOwed::Failed, 1, USUAL, SECOND),
        ("refused, later", StillOwed::Failed, 30, USUAL, 5 * MINUTE),
        ("refused, later, brisk", StillOwed::Failed, 30, BRISK, 20 * SECOND),
        ("refused, later, without a schedule", StillOwed::Failed, 30, NEVER, 5 * MINUTE),
    ];
    for (case, owed, attempts, cadence, expected) in cases {
        assert_eq!(restart_retry(owed, attempts, cadence, 0.0), expected, "{case}");
    }
}

fn any_interval() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        (1_u64..86_400).prop_map(Duration::from_secs),
        // The longest that a resource can name: Go's limit.
        Just(Duration::from_nanos(i64::MAX.unsigned_abs())),
    ]
}

fn any_cadence() -> impl Strategy<Value = Cadence> {
    (any_interval(), any_interval()).prop_map(|(interval, fallback)| Cadence { interval, fallback })
}

fn any_refusal() -> impl Strategy<Value = Refusal> {
    let retry = prop_oneof![
        Just(Retry::ByReason),
        Just(Retry::Backoff),
        any::<u64>().prop_map(|seconds| Retry::After(Duration::from_secs(seconds))),
    ];
    (prop::sample::select(Reason::ALL.to_vec()), retry).prop_map(|(reason, retry)| Refusal { retry, ..refused(reason) })
}

proptest! {
    #[test]
    fn a_refused_stage_always_has_a_next_try_within_its_bound(
        refusal in any_refusal(),
        attempts: u32,
        cadence in any_cadence(),
        jitter in 0.0..=1.0_f64,
    ) {
        let delay = retry(&refusal, attempts, cadence, jitter);
        prop_assert!(!delay.is_zero());
        let scheduled = [cadence.interval, cadence.fallback].into_iter().find(|span| !span.is_zero()).unwrap_or(HOUR);
        let bound = match refusal.retry {
            Retry::After(_) => HOUR + 6 * MINUTE,
            Retry::Backoff => 5 * MINUTE,
            Retry::ByReason => scheduled.max(5 * MINUTE),
        };
        prop_assert!(delay <= bound, "{delay:?} for {refusal:?} under {cadence:?}");
    }

    #[test]
    fn an_owed_restart_always_has_a_next_try_within_five_minutes(
        attempts: u32,
        cadence in any_cadence(),
        jitter in 0.0..=1.0_f64,
    ) {
        for owed in [StillOwed::Waiting, StillOwed::Failed] {
            let delay = restart_retry(owed, attempts, cadence, jitter);
            prop_assert!(!delay.is_zero() && delay <= BACKOFF_CAP);
        }
        // Restarted within 30 s of its creation: one look, at most 10 s long, and this delay before it.
        prop_assert!(restart_retry(StillOwed::Waiting, attempts, cadence, jitter) <= 20 * SECOND);
    }

    #[test]
    fn a_backoff_grows_with_the_attempts_up_to_its_cap_and_jitter_only_shortens_it(
        attempts in 0_u32..u32::MAX,
        cap in (1_u64..1_000).prop_map(Duration::from_secs),
        jitter in -2.0..=2.0_f64,
    ) {
        let full = backoff(attempts, cap, 0.0);
        prop_assert!(full >= SECOND && full <= cap);
        prop_assert!(backoff(attempts + 1, cap, 0.0) >= full);
        let jittered = backoff(attempts, cap, jitter);
        prop_assert!(jittered <= full && jittered >= full.mul_f64(0.799));
    }

    #[test]
    fn a_schedule_is_kept_within_a_tenth(cadence in any_cadence(), jitter in -2.0..=2.0_f64) {
        match refresh(cadence, jitter) {
            None => prop_assert!(cadence.interval.is_zero()),
            Some(delay) => {
                prop_assert!(!delay.is_zero());
                let share = delay.as_secs_f64() / cadence.interval.as_secs_f64();
                prop_assert!(cadence.interval.as_nanos() < 10 || (0.899..=1.101).contains(&share), "{share}");
            }
        }
    }
}
