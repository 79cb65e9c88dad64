//! Which replica works: a Lease that one process holds and renews.
//!
//! ```text
//!              took the lease                      renewed in time
//!   STANDBY ───────────────────▶ LEADER ─────────────────────┐
//!      ▲                          │   ▲──────────────────────┘
//!      └──────────────────────────┘ renew deadline passed, another holds it, or given back
//! ```
//!
//! Every write of the Lease is a replacement under the resource version that was read, so of two contenders one is
//! refused. How long a holder may act is counted on its own monotonic clock from *before* the request that renewed it;
//! how long a holder is respected, on the observer's own clock from *after* the answer that showed the renewal. No two
//! machines' clocks are ever compared, and the first span (10 s) ends before the second (15 s) whatever they show.
//!
//! Losing the lease ends nothing but leadership: no write is begun past it ([`Leadership::check`]), the process stays and
//! stands by. A write that is under way when leadership ends cannot be called back; writes carry resource versions.

mod elector;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::error::CallError;

pub use self::elector::{Candidate, Elector};

/// The times of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long a standby respects a holder that shows no renewal.
    pub duration: Duration,
    /// How long a holder acts on one renewal.
    pub renew_deadline: Duration,
    /// How often a holder renews.
    pub retry_period: Duration,
}

impl Default for LeaseTimes {
    /// 60 s / 5 s = 12 writes a minute. A renewal that is due after 5 s has 5 s to succeed in, and 5 s lie between the
    /// end of a holder's right and the first moment that another takes it.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(5),
        }
    }
}

/// Times that would let two replicas lead, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "of the lease times, the duration must be whole seconds and above the renew deadline, that above the retry period, \
     and that above 0"
)]
pub struct LeaseTimesError;

impl LeaseTimes {
    /// Refuses times under which the election would not hold.
    pub fn validate(self) -> Result<Self, LeaseTimesError> {
        let ordered = self.duration > self.renew_deadline
            && self.renew_deadline > self.retry_period
            && !self.retry_period.is_zero();
        // The Lease speaks in whole seconds; others must not respect it for less than this process counts on.
        let expressible = self.duration.subsec_nanos() == 0 && i32::try_from(self.duration.as_secs()).is_ok();
        if ordered && expressible { Ok(self) } else { Err(LeaseTimesError) }
    }
}

/// Whether this replica leads. Cheap to clone; every clone tells the same.
#[derive(Clone, Debug)]
pub struct Leadership {
    shared: Arc<Shared>,
    changes: watch::Receiver<bool>,
}

/// What is known of the election at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElectionState {
    /// Who holds the lease, as last seen.
    pub holder: Option<String>,
    /// How often leadership was lost without being given back.
    pub losses: u64,
    /// Why the last look or renewal failed; gone when one succeeds.
    pub last_error: Option<String>,
}

#[derive(Debug)]
struct Shared {
    right: Mutex<Right>,
    state: Mutex<ElectionState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    Always,
    Never,
    Until(Instant),
}

impl Shared {
    fn new(right: Right) -> Arc<Self> {
        Arc::new(Self { right: Mutex::new(right), state: Mutex::default() })
    }

    // Both hold plain values: a panic elsewhere leaves nothing half done.
    fn right(&self) -> MutexGuard<'_, Right> {
        self.right.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, ElectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leadership {
    /// The leadership of the only replica there is.
    pub fn always() -> Self {
        // The sender is dropped at once: nothing will ever change.
        let (_, changes) = watch::channel(true);
        Self { shared: Shared::new(Right::Always), changes }
    }

    /// Whether this replica leads at this very moment. Asked before each write: a replica that slept through the end of
    /// its right (a stopped process, a starved machine) must not act on what it knew before.
    pub fn is_leader_now(&self) -> bool {
        match *self.shared.right() {
            Right::Always => true,
            Right::Never => false,
            Right::Until(end) => Instant::now() < end,
        }
    }

    /// [`Leadership::is_leader_now`] as a result, to stand before a write.
    pub fn check(&self) -> Result<(), CallError> {
        if self.is_leader_now() { Ok(()) } else { Err(CallError::NotLeading) }
    }

    /// Waits until leadership is gained or lost. Pending for ever where it cannot change.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this replica leads.
    pub async fn gained(&mut self) {
        while !self.is_leader_now() {
            self.changed().await;
        }
    }

    /// What is known of the election.
    pub fn state(&self) -> ElectionState {
        self.shared.state().clone()
    }
}

#[cfg(test)]
mod tests;
