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
//! That clock is `CLOCK_MONOTONIC`: nobody can set it, and it goes on while the process is stopped (`SIGSTOP`, a frozen
//! cgroup). It stands still while the whole machine is suspended, during which the others go on counting; so a holder
//! subtracts from its right what `CLOCK_BOOTTIME` has moved on beyond it ([`sleep`]). A standby does not: whoever waits
//! longer than he has to is late, and never wrong.
//!
//! Losing the lease ends nothing but leadership: no write is begun past it ([`Leadership::check`]), the process stays and
//! stands by. A write that is under way when leadership ends cannot be called back; writes carry resource versions.

mod elector;
mod sleep;
mod times;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use self::sleep::Sleeps;
use crate::cluster::error::CallError;

pub use self::elector::{Candidate, Elector};
pub use self::times::LeaseTimes;

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
    sleeps: Sleeps,
    right: Mutex<Right>,
    state: Mutex<ElectionState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    Always,
    Never,
    Until {
        end: Instant,
        /// How long the machine had slept by then, to tell what it has slept since.
        slept: Duration,
    },
}

impl Shared {
    fn new(right: Right) -> Arc<Self> {
        Arc::new(Self { sleeps: Sleeps::default(), right: Mutex::new(right), state: Mutex::default() })
    }

    /// The end of the right to lead as it stands now, if it has one: earlier by what the machine has slept meanwhile.
    fn end(&self) -> Option<Instant> {
        match *self.right() {
            Right::Until { end, slept } => {
                // An end before this clock began is over as well.
                Some(end.checked_sub(self.sleeps.since(slept)).unwrap_or_else(Instant::now))
            }
            Right::Always | Right::Never => None,
        }
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
        if *self.shared.right() == Right::Always {
            return true;
        }
        self.shared.end().is_some_and(|end| Instant::now() < end)
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
