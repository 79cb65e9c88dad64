//! A sign of life of a loop that is meant to come round again and again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// When a loop last came round. Clones share it.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<Mutex<Instant>>);

impl Default for Pulse {
    /// It has just come round.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Pulse {
    /// It comes round.
    pub fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long ago it came round.
    pub fn silence(&self) -> Duration {
        Instant::now().saturating_duration_since(*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
