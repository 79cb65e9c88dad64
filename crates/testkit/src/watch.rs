//! WATCH: the stream of changes of one kind, from some point on, until its time is up or somebody breaks it.
//!
//! A feed is pulled by its client and owns no task. Events reach it in the order of the changes; a late one holds up
//! everything behind it, as a connection does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use tower::BoxError;

use crate::fault::Break;
use crate::kind::Kind;
use crate::object;
use crate::read::{self, ListRequest};
use crate::refusal::{FieldError, Refusal};
use crate::request::Request;
use crate::selector::Selector;
use crate::state::State;
use crate::store::Change;

/// How long a watch lasts when the client does not say: the real server's minimum.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
/// Between two bookmarks.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// A last bookmark comes this long before the end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// What a watch sees of a kind.
#[derive(Clone, Debug)]
pub(crate) struct View {
    kind: Arc<Kind>,
    namespace: String,
    selector: Selector,
    metadata_only: bool,
}

impl View {
    /// The event that `change` is to this view, if any: type and object.
    fn event(&self, change: &Change) -> Option<(&'static str, Value)> {
        if change.key.kind != self.kind.id || !(self.namespace.is_empty() || self.namespace == change.key.namespace) {
            return None;
        }
        let seen = |object: &Option<Arc<Value>>| object.clone().filter(|object| self.selector.selects(object));
        match (seen(&change.old), seen(&change.new)) {
            (None, None) => None,
            (None, Some(new)) => Some(("ADDED", read::shown(&new, self.metadata_only))),
            (Some(_), Some(new)) => Some(("MODIFIED", read::shown(&new, self.metadata_only))),
            (Some(old), None) => {
                // What it was last, under the revision at which it went.
                let mut gone = read::shown(&old, self.metadata_only);
                object::set_metadata(&mut gone, "resourceVersion", change.revision.to_string());
                Some(("DELETED", gone))
            }
        }
    }
}

/// The server's end of a watch.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Number of the call that opened it.
    pub(crate) call: usize,
    pub(crate) who: String,
    pub(crate) view: View,
    seen: u64,
    events: UnboundedSender<(Instant, u64, Bytes)>,
    breaks: UnboundedSender<Break>,
}

impl Watch {
    /// Kind of what it watches: plural and group.
    pub(crate) fn resource(&self) -> &str {
        &self.view.kind.id
    }

    /// Whether somebody still reads it.
    pub(crate) fn is_open(&self) -> bool {
        !self.events.is_closed()
    }

    /// The event that `change` is to it, unless it knows it already.
    pub(crate) fn event(&mut self, change: &Change) -> Option<(&'static str, Bytes)> {
        if change.revision <= self.seen {
            return None;
        }
        self.seen = change.revision;
        let (type_, object) = self.view.event(change)?;
        Some((type_, line(type_, &object)))
    }

    /// Sends an event, to arrive after `delay`.
    pub(crate) fn send(&self, delay: Duration, revision: u64, line: Bytes) {
        // A closed watch needs no event.
        let _ = self.events.send((Instant::now() + delay, revision, line));
    }

    /// Breaks the stream.
    pub(crate) fn break_off(&self, how: Break) {
        let _ = self.breaks.send(how);
    }
}

/// The client's end of a watch.
#[derive(Debug)]
pub(crate) struct Feed {
    first: VecDeque<Bytes>,
    events: UnboundedReceiver<(Instant, u64, Bytes)>,
    breaks: UnboundedReceiver<Break>,
    held: Option<(Instant, u64, Bytes)>,
    kind: Arc<Kind>,
    metadata_only: bool,
    deadline: Instant,
    bookmark: Option<Instant>,
    /// The revision up to which everything was sent.
    revision: u64,
    end: Option<Break>,
}

impl State {
    /// Opens a watch. Without an error the second half is to be registered; without it the feed has said all it will.
    pub(crate) fn watch(
        &self,
        kind: &Arc<Kind>,
        request: &Request,
        who: &str,
        call: usize,
        as_of: Option<u64>,
    ) -> Result<(Feed, Watch), Refusal> {
        let selector = Selector::parse(kind, request.param("labelSelector"), request.param("fieldSelector"))?;
        let view = View {
            kind: Arc::clone(kind),
            namespace: request.namespace.clone(),
            selector,
            metadata_only: request.metadata_only,
        };
        let (wanted, initial) = self.start_of(request)?;
        let seconds = request.param("timeoutSeconds").parse().ok().filter(|seconds| *seconds > 0);
        let deadline = Instant::now() + seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let (events, from_server) = unbounded_channel();
        let (breaks, broken) = unbounded_channel();
        let current = self.store.revision();
        let mut feed = Feed {
            first: VecDeque::new(),
            events: from_server,
            breaks: broken,
            held: None,
            kind: Arc::clone(kind),
            metadata_only: request.metadata_only,
            deadline,
            bookmark: request.flag("allowWatchBookmarks").then(|| next_bookmark(deadline)),
            revision: current,
            end: None,
        };
        let start = as_of.unwrap_or(current).min(current).max(wanted);
        if initial {
            let all = ListRequest { namespace: view.namespace.clone(), ..ListRequest::default() };
            for object in self.store.list_at(&kind.id, &all.namespace, start) {
                if view.selector.selects(object) {
                    feed.first.push_back(line("ADDED", &read::shown(object, view.metadata_only)));
                }
            }
            if request.flag("sendInitialEvents") {
                feed.first.push_back(feed.bookmark_line(start, true));
            }
        } else if wanted < self.store.compacted() {
            let refusal = read::too_old(wanted, self.store.compacted());
            feed.first.push_back(line("ERROR", &refusal.status()));
            feed.end = Some(Break::Close);
        }
        let from = if initial { start } else { wanted };
        if feed.end.is_none() {
            for change in self.store.changes_after(&kind.id, from) {
                if let Some((type_, object)) = view.event(change) {
                    feed.first.push_back(line(type_, &object));
                }
            }
        }
        let watch = Watch { call, who: who.to_owned(), view, seen: current.max(wanted), events, breaks };
        Ok((feed, watch))
    }

    /// From where, and whether what is there already comes first.
    fn start_of(&self, request: &Request) -> Result<(u64, bool), Refusal> {
        let wanted = read::parse_revision(request.param("resourceVersion"))?;
        let version_match = request.param("resourceVersionMatch");
        if request.flag("sendInitialEvents") {
            if version_match != "NotOlderThan" {
                return Err(Refusal::invalid_options(&FieldError::forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                )));
            }
            if !request.flag("allowWatchBookmarks") {
                return Err(Refusal::invalid_options(&FieldError::forbidden(
                    "allowWatchBookmarks",
                    "sendInitialEvents requires setting allowWatchBookmarks to true",
                )));
            }
            if wanted > self.store.revision() {
                return Err(Refusal::too_large_version(wanted, self.store.revision()));
            }
            return Ok((wanted, true));
        }
        if !version_match.is_empty() {
            return Err(Refusal::invalid_options(&FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )));
        }
        Ok((wanted, wanted == 0 && !request.query.contains_key("sendInitialEvents")))
    }
}

fn next_bookmark(deadline: Instant) -> Instant {
    let last = deadline - LAST_BOOKMARK;
    let regular = Instant::now() + BOOKMARK_PERIOD;
    if last > Instant::now() { regular.min(last) } else { regular }
}

fn line(type_: &str, object: &Value) -> Bytes {
    let mut text = json!({ "type": type_, "object": object }).to_string();
    text.push('\n');
    Bytes::from(text)
}

impl Feed {
    fn bookmark_line(&self, revision: u64, ends_initial: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if ends_initial {
            let mark = json!({ "k8s.io/initial-events-end": "true" });
            object::fields_mut(&mut metadata).insert("annotations".to_owned(), mark);
        }
        let (api_version, kind) = if self.metadata_only {
            ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata")
        } else {
            (self.kind.api_version(), self.kind.kind.as_str())
        };
        line("BOOKMARK", &json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata }))
    }

    /// The body of the answer. `revision` tells how far the server is, for bookmarks.
    pub(crate) fn into_stream(
        self,
        revision: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send {
        futures::stream::unfold((self, revision), |(mut feed, revision)| async move {
            let item = feed.next(&revision).await?;
            Some((item.map(Frame::data), (feed, revision)))
        })
    }

    async fn next(&mut self, revision: &(impl Fn() -> u64 + Send + Sync)) -> Option<Result<Bytes, BoxError>> {
        loop {
            match self.end {
                Some(Break::Silent) => std::future::pending().await,
                Some(Break::Reset) => {
                    self.end = Some(Break::Close);
                    return Some(Err(crate::server::reset()));
                }
                Some(Break::Expire) => {
                    self.end = Some(Break::Close);
                    return Some(Ok(line("ERROR", &read::too_old(self.revision, revision()).status())));
                }
                Some(Break::Close) if self.first.is_empty() => return None,
                Some(Break::Close) | None => {}
            }
            if let Some(line) = self.first.pop_front() {
                return Some(Ok(line));
            }
            let held_until = self.held.as_ref().map_or(self.deadline, |(at, _, _)| *at);
            let bookmark = self.bookmark.unwrap_or(self.deadline);
            let is_free = self.held.is_none();
            tokio::select! {
                biased;
                Some(how) = self.breaks.recv() => self.end = Some(how),
                Some((at, of, line)) = self.events.recv(), if is_free => {
                    if at <= Instant::now() {
                        self.revision = of;
                        return Some(Ok(line));
                    }
                    self.held = Some((at, of, line));
                }
                () = sleep_until(held_until), if !is_free => {
                    if let Some((_, at, line)) = self.held.take() {
                        self.revision = at;
                        return Some(Ok(line));
                    }
                }
                () = sleep_until(bookmark), if is_free && self.bookmark.is_some() => {
                    self.bookmark = Some(next_bookmark(self.deadline));
                    // Nothing is under way, so everything up to the server's own revision was sent.
                    self.revision = revision();
                    return Some(Ok(self.bookmark_line(self.revision, false)));
                }
                () = sleep_until(self.deadline) => return None,
            }
        }
    }
}
