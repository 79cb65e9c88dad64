//! Since when this replica has been starting passes: while it leads, and only then.
//!
//! What waits in a queue of a standby waits for nobody here, and what waited there before it took over did not wait for
//! it. Whoever judges an age in a queue counts from the later of the two.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// The current term. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Term(Arc<Mutex<Option<Instant>>>);

impl Term {
    /// Passes are started from now on.
    pub fn begin(&self) {
        *self.lock() = Some(Instant::now());
    }

    /// No pass is started any more.
    pub fn end(&self) {
        *self.lock() = None;
    }

    /// When it began; `None` between terms.
    pub fn since(&self) -> Option<Instant> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
