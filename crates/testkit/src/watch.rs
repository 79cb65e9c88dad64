//! WATCH: the stream of changes of one kind, from some point on, until its time is up or somebody breaks it.
//!
//! A feed is pulled by its client and owns no task. Events reach it in the order of the changes; a late one holds up
//! everything behind it, as a connection does.

mod feed;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

pub(crate) use self::feed::Feed;
use self::feed::next_bookmark;
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

fn line(type_: &str, object: &Value) -> Bytes {
    let mut text = json!({ "type": type_, "object": object }).to_string();
    text.push('\n');
    Bytes::from(text)
}
