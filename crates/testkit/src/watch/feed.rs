//! The client's end of a watch: what it reads, in order, and how it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};
use tower::BoxError;

use super::line;
use crate::fault::Break;
use crate::kind::Kind;
use crate::object;
use crate::read;

/// Between two bookmarks.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// A last bookmark comes this long before the end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// The client's end of a watch.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(super) first: VecDeque<Bytes>,
    pub(super) events: UnboundedReceiver<(Instant, u64, Bytes)>,
    pub(super) breaks: UnboundedReceiver<Break>,
    pub(super) held: Option<(Instant, u64, Bytes)>,
    pub(super) kind: Arc<Kind>,
    pub(super) metadata_only: bool,
    pub(super) deadline: Instant,
    pub(super) bookmark: Option<Instant>,
    /// The revision up to which everything was sent.
    pub(super) revision: u64,
    pub(super) end: Option<Break>,
}

/// When the next bookmark of a watch is due that lasts until `deadline`.
pub(super) fn next_bookmark(deadline: Instant) -> Instant {
    let last = deadline - LAST_BOOKMARK;
    let regular = Instant::now() + BOOKMARK_PERIOD;
    if last > Instant::now() { regular.min(last) } else { regular }
}

impl Feed {
    pub(super) fn bookmark_line(&self, revision: u64, ends_initial: bool) -> Bytes {
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
