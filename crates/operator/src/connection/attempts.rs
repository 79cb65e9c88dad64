//! How often in a row each connection failed its check, for the backoff. Losing it costs one early probe.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::key::ObjectKey;

/// Failed checks in a row, by connection.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<BTreeMap<ObjectKey, u32>>);

impl Attempts {
    /// Of `key`; none for one that is well.
    pub fn of(&self, key: &ObjectKey) -> u32 {
        self.lock().get(key).copied().unwrap_or_default()
    }

    /// One failed once more.
    pub fn keep(&self, key: &ObjectKey, attempts: u32) {
        self.lock().insert(key.clone(), attempts);
    }

    /// One is well, or gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectKey, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
