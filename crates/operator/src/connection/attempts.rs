//! Which connections this process has checked, and how often in a row each failed, for the backoff. Losing it costs one
//! early probe.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::key::ObjectKey;

/// Failed checks in a row, by connection that was checked.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<BTreeMap<ObjectKey, Record>>);

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    failed: u32,
    /// Whether a doubt was looked into since the last scheduled check. One that found nothing is not repeated for each
    /// pass that is still refused.
    doubted: bool,
}

impl Attempts {
    /// Of `key`; none for one that is well.
    pub fn of(&self, key: &ObjectKey) -> u32 {
        self.lock().get(key).map_or(0, |record| record.failed)
    }

    /// Whether `key` was checked, so that its next check is on its way.
    pub fn knows(&self, key: &ObjectKey) -> bool {
        self.lock().contains_key(key)
    }

    /// One was checked and failed so many times in a row by now.
    pub fn keep(&self, key: &ObjectKey, attempts: u32) {
        self.lock().entry(key.clone()).or_default().failed = attempts;
    }

    /// Whether a doubt about `key` is worth a check of its own: none was looked into yet, and none is on its way.
    pub fn may_be_doubted(&self, key: &ObjectKey) -> bool {
        self.lock().get(key).is_some_and(|record| record.failed == 0 && !record.doubted)
    }

    /// A check of `key` begins, `out_of_doubt` or not.
    pub fn begin(&self, key: &ObjectKey, out_of_doubt: bool) {
        if let Some(record) = self.lock().get_mut(key) {
            record.doubted = out_of_doubt;
        }
    }

    /// One is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
