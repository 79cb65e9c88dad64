//! How one watch is doing, for readiness, metrics and the watchdog.
//!
//! Written by the watch's own task, read by anybody at any time; holds no object.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Lists that are read instead of a watch are this close together at most: its period, the longest wait before a try and
/// the list itself, twice.
const MADE_GOOD: Duration = Duration::from_mins(4);

/// A handle on the state of one watch. Clones share it.
#[derive(Clone, Debug)]
pub struct WatchHealth(Arc<Mutex<WatchState>>);

/// What is known of a watch at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchState {
    /// What is watched: `ferrvaultsecrets.ferrvault.com`.
    pub name: String,
    /// Since when there is this watch.
    pub started: Instant,
    /// When the server last sent anything: a page of the list, an event or a bookmark; also when a watch last opened. Of a
    /// watch that is mute, openings do not count, and of lists only those that came to their end; of one that stands silent,
    /// its own words alone.
    pub last_heard: Option<Instant>,
    /// When the server last said anything at all, a refusal included.
    pub last_answer: Option<Instant>,
    /// Whether the watch, when it last stood, was given up or came to an end without a word of its own. From then on an
    /// opening is no sign that it works; only a word ends it.
    pub mute: bool,
    /// Since when that has been all that is wrong. None while it does not even open: then the server or the network is
    /// what is wrong, and what they answer tells.
    pub silent_since: Option<Instant>,
    /// Whether the list has been read to its end at least once.
    pub synced: bool,
    /// Failures since the watch last stood; of one that is mute, since its last word.
    pub failures: u32,
    /// Failures since the process started.
    pub failures_in_all: u64,
    /// The last of them, saying which verb on what; gone with them.
    pub last_error: Option<String>,
    /// How often the list has been read to its end.
    pub lists: u64,
    /// How often a standing watch was given up or broken off.
    pub losses: u64,
}

impl WatchState {
    /// How long nothing was heard, refusals not counting.
    pub fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last_heard.unwrap_or(self.started))
    }

    /// Whether lists, read again and again, make good what a watch does not tell that always ends before its first word: as
    /// behind a proxy that ends what is idle. Slower and dearer than a watch, and yet nothing is missed.
    pub fn is_made_good(&self, now: Instant) -> bool {
        self.mute && self.silent_since.is_none() && self.silence(now) < MADE_GOOD
    }

    /// How long the server has said nothing at all, not even no.
    pub fn without_answer(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.silent_since.or(self.last_answer).unwrap_or(self.started))
    }
}

impl WatchHealth {
    pub(super) fn new(name: String) -> Self {
        Self(Arc::new(Mutex::new(WatchState {
            name,
            started: Instant::now(),
            last_heard: None,
            last_answer: None,
            mute: false,
            silent_since: None,
            synced: false,
            failures: 0,
            failures_in_all: 0,
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

    /// A page of a list has come.
    pub(super) fn page(&self) {
        let now = Some(Instant::now());
        let mut state = self.lock();
        state.last_answer = now;
        if !state.mute {
            state.last_heard = now;
        }
    }

    /// The watch itself has sent an event or a bookmark, or has ended when it was asked to.
    pub(super) fn spoke(&self) {
        let now = Some(Instant::now());
        let mut state = self.lock();
        (state.last_heard, state.last_answer) = (now, now);
        (state.mute, state.silent_since) = (false, None);
        (state.failures, state.last_error) = (0, None);
    }

    /// The watch stood, and came to an end without a word, or with none but what the server had to say against it.
    pub(super) fn said_nothing(&self) {
        self.lock().mute = true;
    }

    /// The watch stood, and was given up without a word.
    pub(super) fn fell_silent(&self) {
        let mut state = self.lock();
        state.mute = true;
        // From the last answer and not from the last word: between the two there may have been an outage.
        let since = state.last_answer.unwrap_or(state.started);
        state.silent_since.get_or_insert(since);
    }

    /// What is wrong now is told by the server or by the network, and no longer by the silence of a watch that stands.
    pub(super) fn otherwise_wrong(&self) {
        self.lock().silent_since = None;
    }

    /// A list has been read to its end.
    pub(super) fn listed(&self) {
        let mut state = self.lock();
        if state.silent_since.is_none() {
            state.last_heard = Some(Instant::now());
        }
        state.synced = true;
        state.lists = state.lists.saturating_add(1);
    }

    /// The watch has opened. After an outage that is a sign of life; after a silence it has yet to prove to be more.
    pub(super) fn stands(&self) {
        let now = Some(Instant::now());
        let mut state = self.lock();
        if state.silent_since.is_none() {
            state.last_answer = now;
        }
        if !state.mute {
            state.last_heard = now;
            (state.failures, state.last_error) = (0, None);
        }
    }

    /// Notes a failure; whether it is another than the last one. `answered`: the server itself said so.
    pub(super) fn failed(&self, error: &str, stood: bool, answered: bool) -> bool {
        let mut state = self.lock();
        if answered {
            state.last_answer = Some(Instant::now());
        }
        state.failures = state.failures.saturating_add(1);
        state.failures_in_all = state.failures_in_all.saturating_add(1);
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
