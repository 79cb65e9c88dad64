//! Where a pass is, so that one cut at its deadline can say what it hung in.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ferrvault_core::sync::Fate;

/// The step a pass is at, and what it has seen that its end must not pass over.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    step: String,
    lost: Option<String>,
}

impl Progress {
    /// The pass is at `step` from now on, in words that complete "cut while ...".
    pub fn at(&self, step: impl Into<String>) {
        self.lock().step = step.into();
    }

    /// Where it is.
    pub fn step(&self) -> String {
        self.lock().step.clone()
    }

    /// The pass has seen what became of the target.
    pub fn target_is(&self, fate: Fate<'_>) {
        self.lock().lost = fate.is_lost().then(|| fate.to_string());
    }

    /// The target was put right.
    pub fn target_is_right(&self) {
        self.lock().lost = None;
    }

    /// What was seen of a target that is not what the last success put there.
    pub fn lost(&self) -> Option<String> {
        self.lock().lost.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
