//! Which connections this process has checked, and how often in a row each failed, for the backoff. Losing it costs one
//! early probe.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::key::ObjectKey;

/// Failed checks in a row, by connection that was checked.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<BTreeMap<ObjectKey, u32>>);

impl Attempts {
    /// Of `key`; none for one that is well.
    pub fn of(&self, key: &ObjectKey) -> u32 {
        self.lock().get(key).copied().unwrap_or_default()
    }

    /// Whether `key` was checked, so that its next check is on its way.
    pub fn knows(&self, key: &ObjectKey) -> bool {
        self.lock().contains_key(key)
    }

    /// One was checked and failed so many times in a row by now.
    pub fn keep(&self, key: &ObjectKey, attempts: u32) {
        self.lock().insert(key.clone(), attempts);
    }

    /// One is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectKey, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
