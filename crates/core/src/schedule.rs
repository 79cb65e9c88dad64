//! From the outcome of a pass to its next start. Holds I7: whatever happened, something is left that starts the next pass.
//!
//! A resource has two times of its own, one per stage, so that a restart that is retried every few seconds neither asks
//! FerrVault again nor moves the next scheduled look.

use std::time::Duration;

use ferrvault_api::Reason;

use crate::refusal::{Refusal, Retry};

/// First delay of every backoff.
const BACKOFF_START: Duration = Duration::from_secs(1);
/// No backoff is slower than this: five minutes is the longest a healed cluster may stay unnoticed.
pub const BACKOFF_CAP: Duration = Duration::from_mins(5);
/// A token that was refused is not tried more often than this: servers lock out who insists.
pub const AUTH_RETRY: Duration = Duration::from_mins(5);
/// A key that was just forgotten tends to be added within the minute.
const MISSING_KEYS_RETRY: Duration = Duration::from_mins(1);
/// A workload that is waited for is looked for this often: it has to be restarted within 30 s of its creation, and a
/// look takes at most one call's deadline of 10 s.
const MISSING_WORKLOAD_CAP: Duration = Duration::from_secs(20);
/// Where neither the resource nor the operator has a scheduled look, a refused stage is still tried again this often:
/// `0s` turns the schedule off, not the retries.
const UNSCHEDULED_RETRY: Duration = Duration::from_hours(1);
/// No `Retry-After` is believed beyond this: a day-long one would be an outage by typo.
const RETRY_AFTER_CAP: Duration = Duration::from_hours(1);

/// How often a resource is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    /// The resource's interval, or the operator's default; zero means no scheduled look.
    pub interval: Duration,
    /// The operator's default, for retries of what has no schedule.
    pub fallback: Duration,
}

impl Cadence {
    fn retry_interval(self) -> Duration {
        [self.interval, self.fallback].into_iter().find(|d| !d.is_zero()).unwrap_or(UNSCHEDULED_RETRY)
    }

    /// No backoff is slower than the schedule would be, and none slower than [`BACKOFF_CAP`].
    pub fn backoff_cap(self) -> Duration {
        if self.interval.is_zero() { BACKOFF_CAP } else { BACKOFF_CAP.min(self.interval) }
    }
}

/// When the next scheduled look is, after a look that went well; `None`: there is no schedule.
///
/// `jitter` in 0..1 spreads it by ±10 %, so that a thousand resources made by one command do not come back together.
pub fn refresh(cadence: Cadence, jitter: f64) -> Option<Duration> {
    (!cadence.interval.is_zero()).then(|| cadence.interval.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0)))
}

/// When a refused sync stage is tried again. `attempts`: refusals in a row, this one included.
pub fn retry(refusal: &Refusal, attempts: u32, cadence: Cadence, jitter: f64) -> Duration {
    let soon = || backoff(attempts, cadence.backoff_cap(), jitter);
    match (refusal.retry, refusal.reason) {
        (Retry::After(delay), _) => {
            delay.clamp(BACKOFF_START, RETRY_AFTER_CAP).mul_f64(1.0 + 0.1 * jitter.clamp(0.0, 1.0))
        }
        (Retry::Backoff, _) => soon(),
        (Retry::ByReason, Reason::AuthFailed) => AUTH_RETRY,
        (Retry::ByReason, Reason::MissingKeys) => cadence.retry_interval().min(MISSING_KEYS_RETRY),
        (
            Retry::ByReason,
            Reason::RateLimited | Reason::Unreachable | Reason::ReconcileTimeout | Reason::SecretWriteFailed,
        ) => soon(),
        (Retry::ByReason, _) => cadence.retry_interval(),
    }
}

/// Why a restart is still owed after its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StillOwed {
    /// Only workloads that do not exist, or changed under us, are left.
    Waiting,
    /// A workload was refused.
    Failed,
}

/// When an owed restart is tried again. `attempts`: stages in a row that left it owed, this one included.
pub fn restart_retry(owed: StillOwed, attempts: u32, cadence: Cadence, jitter: f64) -> Duration {
    match owed {
        StillOwed::Waiting => backoff(attempts, MISSING_WORKLOAD_CAP, jitter),
        StillOwed::Failed => backoff(attempts, cadence.backoff_cap(), jitter),
    }
}

/// Doubling from one second up to `cap`, less up to a fifth: jitter never makes it slower than the cap.
pub fn backoff(attempts: u32, cap: Duration, jitter: f64) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    let full = BACKOFF_START.saturating_mul(1 << doublings).min(cap.max(BACKOFF_START));
    full.mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests;
