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
mod tests;
