//! When a call is tried again, as data, and the loop that obeys it.
//!
//! The policy bounds a call from above: [`RetryPolicy::longest_call`] is computed from the same numbers the loop uses,
//! and no call may take longer. The loop knows nothing of HTTP; it never repeats what its attempt did not mark as
//! repeatable.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::VaultError;

/// Jitter is drawn in thousandths of its largest size, so that the arithmetic stays in whole numbers.
const DRAW_SCALE: i32 = 1_000;

/// How often, how long and how far apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all; 0 counts as 1.
    pub attempts: u32,
    /// The most one attempt may take, from the connection to the last byte of the answer.
    pub attempt_timeout: Duration,
    /// Pauses after the first, second, … failed attempt; the last one is reused, none at all means no pause.
    pub delays: Vec<Duration>,
    /// Each pause is made longer or shorter by at most this share of itself; more than 100 counts as 100.
    pub jitter_percent: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            attempt_timeout: Duration::from_secs(10),
            delays: vec![Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1_600)],
            jitter_percent: 25,
        }
    }
}

impl RetryPolicy {
    /// The longest one call can take: every attempt used up, every pause at its longest.
    ///
    /// Saturates instead of overflowing, so that a comparison with it is always safe.
    pub fn longest_call(&self) -> Duration {
        let attempts = self.attempts.max(1);
        let pauses = attempts - 1;
        let listed = u32::try_from(self.delays.len()).unwrap_or(u32::MAX).min(pauses);
        let reused = self.base_delay(pauses).saturating_mul(pauses - listed);
        let waiting = (1..=listed).fold(reused, |sum, failed| sum.saturating_add(self.base_delay(failed)));
        let waiting = waiting.saturating_mul(100 + self.jitter_percent.min(100)) / 100;
        self.attempt_timeout.saturating_mul(attempts).saturating_add(waiting)
    }

    /// The pause after the `failed`-th attempt (1 is the first), before jitter.
    fn base_delay(&self, failed: u32) -> Duration {
        let index = usize::try_from(failed.saturating_sub(1)).unwrap_or(usize::MAX);
        self.delays.get(index).or(self.delays.last()).copied().unwrap_or_default()
    }

    /// The pause after the `failed`-th attempt. `draw` lies between -1000 and 1000.
    ///
    /// Rounded down to whole milliseconds, the resolution of the timer, so that no pause exceeds its share of
    /// [`Self::longest_call`].
    fn delay(&self, failed: u32, draw: i32) -> Duration {
        let base = self.base_delay(failed).as_millis();
        let whole = 100 * u128::from(DRAW_SCALE.unsigned_abs());
        let share = u128::from(self.jitter_percent.min(100)) * u128::from(draw.unsigned_abs().min(1_000));
        let factor = if draw < 0 { whole - share } else { whole + share };
        let millis = base.saturating_mul(factor) / whole;
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// Runs `attempt` until it succeeds, fails for good or the attempts are used up. `attempt` is handed the moment at
    /// which it will be cut off.
    pub(crate) async fn run<T, A, F>(&self, repeat: Repeat, mut attempt: A) -> Result<T, VaultError>
    where
        A: FnMut(Instant) -> F,
        F: Future<Output = Result<T, Failure>>,
    {
        let mut failed = 0;
        loop {
            let start = Instant::now();
            let deadline = start.checked_add(self.attempt_timeout).unwrap_or_else(|| start + FAR);
            let failure = match tokio::time::timeout_at(deadline, attempt(deadline)).await {
                Ok(Ok(success)) => return Ok(success),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::sent(VaultError::TimedOut { limit: self.attempt_timeout }),
            };
            failed += 1;
            let repeatable = match repeat {
                Repeat::Always => failure.error.is_retryable(),
                Repeat::IfUnsent => failure.error.is_retryable() && failure.unsent,
            };
            if !repeatable || failed >= self.attempts {
                return Err(failure.error);
            }
            let pause = self.delay(failed, fastrand::i32(-DRAW_SCALE..=DRAW_SCALE));
            tracing::debug!(failed, pause_ms = pause.as_millis(), error = %failure.error, "call to FerrVault is repeated");
            tokio::time::sleep(pause).await;
        }
    }
}

/// Stands in for a deadline beyond what the clock can express: 365 days.
const FAR: Duration = Duration::from_hours(365 * 24);

/// Which calls may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Doing it twice is the same as doing it once.
    Always,
    /// Only when it is certain that FerrVault never saw the first one.
    IfUnsent,
}

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: VaultError,
    /// Whether it is certain that nothing of the request reached FerrVault.
    pub(crate) unsent: bool,
}

impl Failure {
    /// The request may have been seen.
    pub(crate) fn sent(error: VaultError) -> Self {
        Self { error, unsent: false }
    }
}

#[cfg(test)]
mod tests {
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
}
