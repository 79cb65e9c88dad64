//! One task per watch: lists, then follows, and starts again by itself whatever happens.
//!
//! ```text
//!            page refused, late or unreadable: back off
//!              ┌────┐
//!   start ──▶ LIST ─┴─ last page ──▶ FOLLOW ── ended by the server in good time ──▶ FOLLOW
//!              ▲                       │ broken, silent, refused: back off ────────▶ FOLLOW
//!              └───────────────────────┘ history gone, refused three times, wordless twice, or the list is an hour old
//! ```
//!
//! The loop is ours and not the library's watcher, which shows no bookmarks (so nobody could tell a quiet watch from a
//! dead one), bounds neither a page of the list nor the opening of a watch, and hands a list of guarded Secrets out in
//! full. Here every wait has an end, each watch backs off for itself, and an object that cannot be read is reported and
//! passed over instead of stopping the rest.

mod failure;
mod health;
mod kinds;

use std::time::Duration;

use futures::{Stream, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ListParams, WatchParams};
use kube::core::WatchEvent;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::failure::{Ended, Failure, Kind, Place, broken, failure, place_after, resource_name, silent, wordless};
use self::kinds::Watched;
use super::backoff::Backoff;
use super::error::{CallError, deadline, refusal};
use super::message::{SHOWN, printable};
use crate::entropy::Entropy;

pub use self::health::{WatchHealth, WatchState};
pub(super) use self::kinds::slim_custom;
pub use self::kinds::{Scope, Started, spawn_connections, spawn_resources, spawn_secrets};

/// How long the server is asked to keep a watch open. Short, so that a right that was withdrawn and a connection that is
/// dead are both noticed within a minute; long enough that three watches make four requests a minute. A bookmark comes
/// 2 s before the end, so the next one starts from a resource version that is still in the server's history (5 min by
/// default).
const WATCH_PERIOD_SECONDS: u32 = 45;

/// A watch on which nothing came for this long is dead: the server would have ended it after 45 s, and 10 s are for the
/// way. Well below the 240 s after which load balancers drop idle connections without telling anyone.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(WATCH_PERIOD_SECONDS as u64 + 10);

/// Longest wait for one page of a list: 500 objects of about 3 kB are 1.5 MB, seconds even for a loaded server.
pub const LIST_PAGE_DEADLINE: Duration = Duration::from_secs(30);

/// Longest wait for a watch to open: only headers have to come.
const OPEN_DEADLINE: Duration = Duration::from_secs(15);

/// Objects per page, as the reference client asks for.
const PAGE: u32 = 500;

/// A watch that ended sooner was not ended in good time; following at once again would be a tight loop. Long enough
/// also for the failures before it to be forgotten: it is the longest backoff.
const GOOD_TIME: Duration = Duration::from_secs(30);

/// A list older than this is made anew when its watch next ends, in whatever way. A watch promises every event and has
/// been seen to break that promise; so nothing stays unseen for longer than an hour, at the price of about 10 MB an hour
/// in a cluster of 10,000 Secrets (1 kB of metadata each).
const LIST_AGE: Duration = Duration::from_hours(1);

/// A list older than this is made anew where its watch has not had a word to say for as long, although it always ends as it
/// should: nothing changes, or nothing is told. Where etcd tells of its progress, as it does every ten minutes at least,
/// there is a word.
const QUIET_LIST_AGE: Duration = Duration::from_mins(15);

/// A watch that stood for so long and ends was ended as it was asked to: its period, less what clocks and the way take.
const ASKED_FOR: Duration = Duration::from_secs(WATCH_PERIOD_SECONDS as u64 - 3);

/// After this many refusals in a row to follow from where we were, list again: the server may never know that place.
const REFUSALS_BEFORE_LIST: u32 = 3;

/// After this many watches that opened and ended without a word before their time, list again, and from then on after each
/// until there is a word: whatever takes their words away may take every event. So what is new waits for two minutes, and
/// not until a restart.
const SILENCES_BEFORE_LIST: u32 = 2;

/// Where the objects of a watch go. Called from the watch's task, one call after the other; must not block.
pub trait Sink<K>: Send + 'static {
    /// A complete list follows. May come again before [`Sink::relist_done`]: then the list starts over.
    fn relist_started(&mut self);
    /// The object exists and looks like this. Objects may come unchanged, and again.
    fn applied(&mut self, object: K);
    /// The object that bore this metadata is gone. Metadata only: an object that cannot be read can go, too.
    fn deleted(&mut self, gone: &ObjectMeta);
    /// The list is complete: what did not come since [`Sink::relist_started`] is gone.
    fn relist_done(&mut self);
    /// The object exists but cannot be read by this version.
    fn undecodable(&mut self, namespace: &str, name: &str, why: &str);
}

struct Watch<W: Watched, S> {
    api: Api<W>,
    sink: S,
    health: WatchHealth,
    backoff: Backoff,
    /// The resource version to follow from; none before the list is complete.
    from: Option<String>,
    /// When that list was complete.
    listed_at: Instant,
    /// Refusals in a row to follow from there.
    refusals: u32,
    /// Watches since the last word that opened and ended without one, and not when they were asked to.
    silences: u32,
    /// When there was the last word.
    heard_at: Instant,
}

impl<W: Watched, S: Sink<W::Object>> Watch<W, S> {
    fn new(api: Api<W>, sink: S, health: WatchHealth, entropy: Entropy) -> Self {
        Self {
            api,
            sink,
            health,
            backoff: Backoff::new(entropy),
            from: None,
            listed_at: Instant::now(),
            refusals: 0,
            silences: 0,
            heard_at: Instant::now(),
        }
    }

    async fn run(mut self, stop: CancellationToken) {
        // The futures dropped at the stop hold nothing but the connection.
        let _stopped = stop.run_until_cancelled(self.forever()).await;
    }

    async fn forever(&mut self) {
        loop {
            let ended = self.round().await;
            if self.listed_at.elapsed() >= LIST_AGE {
                self.from = None;
            }
            if let Ended::Failed(failure) = ended {
                self.note_place(failure.place);
                self.note_kind(failure.kind);
                let wait = self.backoff.next_wait();
                let retry_in_ms = wait.as_millis();
                if self.health.failed(&failure.error, failure.stood, failure.answered) {
                    tracing::warn!(error = failure.error, retry_in_ms, "watch failed");
                } else {
                    tracing::debug!(error = failure.error, retry_in_ms, "watch still fails");
                }
                tokio::time::sleep(wait).await;
            }
        }
    }

    async fn round(&mut self) -> Ended {
        let from = match self.list_if_needed().await {
            Ok(from) => from,
            Err(failure) => return Ended::Failed(failure),
        };
        let params = WatchParams::default().timeout(WATCH_PERIOD_SECONDS);
        let stream = match deadline(OPEN_DEADLINE, self.api.watch(&params, &from)).await {
            Ok(stream) => stream,
            Err(error) => return Ended::Failed(failure::<W>("watch", &error, place_after(&error), false)),
        };
        self.health.stands();
        let opened = Instant::now();
        let mut said = false;
        let ended = self.follow(stream, opened, &mut said).await;
        let ended = if said { ended } else { self.without_a_word(ended, opened) };
        if opened.elapsed() >= GOOD_TIME {
            self.backoff.reset();
        }
        ended
    }

    /// The end of a watch that stood and said nothing. Where nothing changes there is nothing to say: a bookmark is sent only
    /// for a version later than the one that was asked from. So an end when it was asked for is in order, and every other
    /// one may be of many like it, behind something that accepts watches and passes none of their words on.
    fn without_a_word(&mut self, ended: Ended, opened: Instant) -> Ended {
        match ended {
            Ended::InGoodTime if opened.elapsed() >= ASKED_FOR => {
                self.health.spoke();
                if self.heard_at.elapsed() >= QUIET_LIST_AGE && self.listed_at.elapsed() >= QUIET_LIST_AGE {
                    self.from = None;
                }
                Ended::InGoodTime
            }
            Ended::InGoodTime => wordless::<W>(),
            // The one is no fault of the watch, as what comes next is a list; the other is known for what it is.
            Ended::Failed(failure) if matches!(failure.kind, Kind::History | Kind::Silence) => Ended::Failed(failure),
            // The server said what is wrong. That is an answer, and yet no word of the watch.
            Ended::Failed(failure) if failure.answered => {
                self.health.said_nothing();
                self.count_silence();
                Ended::Failed(failure)
            }
            Ended::Failed(failure) => Ended::Failed(Failure { kind: Kind::Wordless, ..failure }),
        }
    }

    fn note_place(&mut self, place: Place) {
        self.refusals = if place == Place::Refused { self.refusals.saturating_add(1) } else { 0 };
        if place == Place::Lost || self.refusals >= REFUSALS_BEFORE_LIST {
            self.from = None;
            self.refusals = 0;
        }
    }

    /// The resource version to follow from, after a complete list where there is none yet.
    async fn list_if_needed(&mut self) -> Result<String, Failure> {
        if let Some(from) = &self.from {
            return Ok(from.clone());
        }
        let mut params = ListParams::default().limit(PAGE);
        let mut first = true;
        loop {
            let listed = deadline(LIST_PAGE_DEADLINE, self.api.list(&params)).await;
            let page = listed.map_err(|error| failure::<W>("list", &error, Place::Lost, false))?;
            self.health.page();
            if first {
                self.sink.relist_started();
                first = false;
            }
            for object in page.items {
                self.hand_on(object);
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_some() {
                continue;
            }
            let Some(from) = page.metadata.resource_version.filter(|version| !version.is_empty()) else {
                let error = CallError::Undecodable { what: "a list without a resource version".to_owned() };
                return Err(failure::<W>("list", &error, Place::Lost, false));
            };
            self.from = Some(from.clone());
            self.listed_at = Instant::now();
            self.sink.relist_done();
            self.health.listed();
            return Ok(from);
        }
    }

    /// Hands on what the watch tells until it ends. `said` becomes true with its first word: an event or a bookmark.
    async fn follow(
        &mut self,
        stream: impl Stream<Item = kube::Result<WatchEvent<W>>>,
        opened: Instant,
        said: &mut bool,
    ) -> Ended {
        let mut stream = std::pin::pin!(stream);
        loop {
            let event = match tokio::time::timeout(SILENCE_LIMIT, stream.try_next()).await {
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None)) if opened.elapsed() >= GOOD_TIME => return Ended::InGoodTime,
                Ok(Ok(None)) => return broken::<W>("ended by the API server soon after it began"),
                Ok(Err(error)) => return Ended::Failed(failure::<W>("watch", &error.into(), Place::Kept, true)),
                Err(_) => return silent::<W>(),
            };
            if !matches!(event, WatchEvent::Error(_)) {
                *said = true;
                self.spoke();
            }
            let version = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let version = object.meta().resource_version.clone();
                    self.hand_on(object);
                    version
                }
                WatchEvent::Deleted(object) => {
                    let version = object.meta().resource_version.clone();
                    self.sink.deleted(object.meta());
                    version
                }
                WatchEvent::Bookmark(bookmark) => Some(bookmark.metadata.resource_version),
                WatchEvent::Error(status) => {
                    let error = refusal(&status);
                    return Ended::Failed(failure::<W>("watch", &error, place_after(&error), true));
                }
            };
            self.refusals = 0;
            if let Some(version) = version.filter(|version| !version.is_empty()) {
                self.from = Some(version);
            }
        }
    }

    fn spoke(&mut self) {
        self.silences = 0;
        self.heard_at = Instant::now();
        self.health.spoke();
    }

    /// A watch that ended without a word is first opened again from where it was, as after a connection that died: that
    /// is all there is to most of them.
    fn note_kind(&mut self, kind: Kind) {
        match kind {
            Kind::Silence => {
                self.health.fell_silent();
                self.count_silence();
            }
            Kind::Wordless => {
                self.health.said_nothing();
                self.health.otherwise_wrong();
                self.count_silence();
            }
            Kind::History => {}
            Kind::Other => self.health.otherwise_wrong(),
        }
    }

    fn count_silence(&mut self) {
        self.silences = self.silences.saturating_add(1);
        if self.silences >= SILENCES_BEFORE_LIST {
            self.from = None;
        }
    }

    fn hand_on(&mut self, object: W) {
        match object.open() {
            Ok(object) => self.sink.applied(object),
            Err(unreadable) => {
                let namespace = unreadable.metadata.namespace.unwrap_or_default();
                let name = unreadable.metadata.name.unwrap_or_default();
                let why = printable(&unreadable.error, SHOWN);
                tracing::warn!(kind = resource_name::<W>(), namespace, name, why, "object cannot be read");
                self.sink.undecodable(&namespace, &name, &why);
            }
        }
    }
}

#[cfg(test)]
mod tests;
