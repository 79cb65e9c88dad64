//! Where a pass is, so that one cut at its deadline can say what it hung in.

use std::sync::{Mutex, PoisonError};

/// The step a pass is at, in words that complete "cut while ...".
#[derive(Debug, Default)]
pub struct Progress(Mutex<String>);

impl Progress {
    /// The pass is at `step` from now on.
    pub fn at(&self, step: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = step.into();
    }

    /// Where it is.
    pub fn step(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
