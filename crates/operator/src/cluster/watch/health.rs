//! How one watch is doing, for readiness, metrics and the watchdog.
//!
//! Written by the watch's own task, read by anybody at any time; holds no object.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// A handle on the state of one watch. Clones share it.
#[derive(Clone, Debug)]
pub struct WatchHealth(Arc<Mutex<WatchState>>);

/// What is known of a watch at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchState {
    /// What is watched: `ferrvaultsecrets.ferrvault.com`.
    pub name: String,
    /// When the server last sent anything: a page of the list, an event or a bookmark.
    pub last_heard: Option<Instant>,
    /// Whether the list has been read to its end at least once.
    pub synced: bool,
    /// Failures since the watch last stood.
    pub failures: u32,
    /// The last of them, saying which verb on what; gone when the watch stands again.
    pub last_error: Option<String>,
    /// How often the list has been read to its end.
    pub lists: u64,
    /// How often a standing watch was given up or broken off.
    pub losses: u64,
}

impl WatchHealth {
    pub(super) fn new(name: String) -> Self {
        Self(Arc::new(Mutex::new(WatchState {
            name,
            last_heard: None,
            synced: false,
            failures: 0,
            last_error: None,
            lists: 0,
            losses: 0,
        })))
    }

    /// What is known now.
    pub fn snapshot(&self) -> WatchState {
        self.lock().clone()
    }

    /// Whether the list has been read to its end at least once.
    pub fn is_synced(&self) -> bool {
        self.lock().synced
    }

    pub(super) fn heard(&self) {
        self.lock().last_heard = Some(Instant::now());
    }

    pub(super) fn listed(&self) {
        let mut state = self.lock();
        state.synced = true;
        state.lists = state.lists.saturating_add(1);
    }

    pub(super) fn stands(&self) {
        let mut state = self.lock();
        state.last_heard = Some(Instant::now());
        state.failures = 0;
        state.last_error = None;
    }

    /// Notes a failure; whether it is another than the last one.
    pub(super) fn failed(&self, error: &str, stood: bool) -> bool {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        state.losses = state.losses.saturating_add(u64::from(stood));
        let is_news = state.last_error.as_deref() != Some(error);
        if is_news {
            state.last_error = Some(error.to_owned());
        }
        is_news
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        // Plain fields: a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
