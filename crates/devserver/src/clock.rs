//! The one source of "now" of the server.
//!
//! Expiry of tokens, validity of JWTs and the rate limit all ask here, so that a test moves time instead of waiting for it.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Tells the time; cheap to clone.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The clock of the machine.
    pub fn system() -> Self {
        Self(Arc::new(Timestamp::now))
    }

    /// A clock that stands still at `start` until its [`ManualClock`] moves it.
    pub fn manual(start: Timestamp) -> (Self, ManualClock) {
        let hands = ManualClock(Arc::new(Mutex::new(start)));
        let shown = hands.clone();
        (Self(Arc::new(move || shown.read())), hands)
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

/// Moves a manual [`Clock`].
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Timestamp>>);

impl ManualClock {
    /// Moves the time on by `step`; time that cannot be represented leaves the clock where it is.
    pub fn advance(&self, step: SignedDuration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(later) = now.checked_add(step) {
            *now = later;
        }
    }

    fn read(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
