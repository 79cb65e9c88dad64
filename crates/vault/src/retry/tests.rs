//! The policy as numbers, the loop under paused time.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::error::UpstreamText;

fn unreachable() -> VaultError {
    VaultError::Unreachable { why: "connection refused".into() }
}

#[test]
fn the_longest_default_call_is_computed() {
    assert_eq!(RetryPolicy::default().longest_call(), Duration::from_millis(30_625));
}

#[test]
fn the_last_delay_is_reused_and_odd_policies_stay_finite() {
    let policy = |attempts, delays: &[u64], jitter_percent| RetryPolicy {
        attempts,
        attempt_timeout: Duration::from_secs(1),
        delays: delays.iter().copied().map(Duration::from_millis).collect(),
        jitter_percent,
    };
    for (policy, millis) in [
        (policy(0, &[100], 0), 1_000),
        (policy(1, &[100], 25), 1_000),
        (policy(5, &[100, 400], 0), 5_000 + 100 + 3 * 400),
        (policy(5, &[100, 400], 50), 5_000 + 150 + 3 * 600),
        (policy(2, &[100], 400), 2_000 + 200),
        (policy(4, &[], 25), 4_000),
    ] {
        assert_eq!(policy.longest_call(), Duration::from_millis(millis), "{policy:?}");
    }
    let endless = RetryPolicy { attempts: 9, attempt_timeout: Duration::MAX, ..RetryPolicy::default() };
    assert_eq!(endless.longest_call(), Duration::MAX);
}

#[tokio::test(start_paused = true)]
async fn only_what_may_be_repeated_is_repeated() {
    let upstream = UpstreamText::default;
    for (name, repeat, unsent, error, attempts) in [
        ("transport errors are repeated", Repeat::Always, false, unreachable(), 3),
        (
            "server errors are repeated",
            Repeat::Always,
            false,
            VaultError::ServerError { status: 503, upstream: upstream() },
            3,
        ),
        (
            "throttling is not repeated",
            Repeat::Always,
            false,
            VaultError::Throttled { after: None, upstream: upstream() },
            1,
        ),
        (
            "a refused token is not repeated",
            Repeat::Always,
            false,
            VaultError::Unauthorized { upstream: upstream() },
            1,
        ),
        (
            "a refused certificate is not repeated",
            Repeat::Always,
            false,
            VaultError::RefusedByTls { why: "expired".into() },
            1,
        ),
        ("a write that may have arrived is not repeated", Repeat::IfUnsent, false, unreachable(), 1),
        ("a write that never left is repeated", Repeat::IfUnsent, true, unreachable(), 3),
    ] {
        let made = Cell::new(0);
        let outcome: Result<(), _> = RetryPolicy::default()
            .run(repeat, |_| {
                made.set(made.get() + 1);
                let error = error.clone();
                async move { Err(Failure { error, unsent }) }
            })
            .await;
        assert_eq!(outcome, Err(error), "{name}");
        assert_eq!(made.get(), attempts, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_never_ends_is_cut_off_and_repeated() {
    let policy = RetryPolicy::default();
    let start = Instant::now();
    let made = Cell::new(0);
    let outcome: Result<(), _> = policy
        .run(Repeat::Always, |deadline| {
            made.set(made.get() + 1);
            assert_eq!(deadline - Instant::now(), policy.attempt_timeout);
            std::future::pending()
        })
        .await;
    assert_eq!(outcome, Err(VaultError::TimedOut { limit: Duration::from_secs(10) }));
    assert_eq!(made.get(), 3);
    // 30 s of attempts and at least 0.75 x (100 + 400) ms of pauses.
    assert!(start.elapsed() >= Duration::from_millis(30_375) && start.elapsed() <= policy.longest_call());
}

#[tokio::test(start_paused = true)]
async fn a_late_success_is_a_success() {
    let made = Cell::new(0);
    let outcome = RetryPolicy::default()
        .run(Repeat::Always, |_| {
            made.set(made.get() + 1);
            let last = made.get() == 3;
            async move { if last { Ok("here") } else { Err(Failure::sent(unreachable())) } }
        })
        .await;
    assert_eq!(outcome, Ok("here"));
}

proptest! {
    #[test]
    fn every_pause_keeps_to_its_share(
        delay in 0_u64..100_000, jitter_percent in 0_u32..150, failed in 1_u32..9, draw in -1_000..=1_000_i32,
    ) {
        let policy = RetryPolicy { delays: vec![Duration::from_millis(delay)], jitter_percent, ..RetryPolicy::default() };
        let jitter = jitter_percent.min(100);
        let base = Duration::from_millis(delay);
        let pause = policy.delay(failed, draw);
        prop_assert!(pause <= base * (100 + jitter) / 100);
        prop_assert!(pause + Duration::from_millis(1) > base * (100 - jitter) / 100);
    }

    #[test]
    fn no_call_exceeds_the_longest_call(
        attempts in 0_u32..6,
        attempt_timeout in 1_u64..5_000,
        delays in proptest::collection::vec(0_u64..3_000, 0..4),
        jitter_percent in 0_u32..120,
        durations in proptest::collection::vec(0_u64..10_000, 6),
    ) {
        let policy = RetryPolicy {
            attempts,
            attempt_timeout: Duration::from_millis(attempt_timeout),
            delays: delays.into_iter().map(Duration::from_millis).collect(),
            jitter_percent,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let elapsed = runtime.block_on(async {
            let start = Instant::now();
            let mut durations = durations.into_iter();
            let outcome: Result<(), _> = policy
                .run(Repeat::Always, |_| {
                    let takes = Duration::from_millis(durations.next().unwrap_or_default());
                    async move {
                        tokio::time::sleep(takes).await;
                        Err(Failure::sent(unreachable()))
                    }
                })
                .await;
            assert!(outcome.is_err());
            start.elapsed()
        });
        prop_assert!(elapsed <= policy.longest_call(), "{elapsed:?} > {:?}", policy.longest_call());
    }
}
