//! The server behind every client: numbers requests, puts faults on them, answers them, tells watches and hooks.

mod telling;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::Response;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tower::BoxError;

use crate::access::{Access, Attempt};
use crate::call::{Call, Fate, Record};
use crate::clock::Clock;
use crate::fault::{Break, Fault};
use crate::hooks::{Hooks, lock};
use crate::object;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::route::Content;
use crate::state::State;
use crate::watch::Watch;

/// Body of every answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A process that has clients. When it ends, none of its calls returns.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) who: String,
    ended: tokio::sync::watch::Sender<bool>,
}

impl Process {
    pub(crate) fn new(who: &str) -> Arc<Self> {
        let (ended, _) = tokio::sync::watch::channel(false);
        Arc::new(Self { who: who.to_owned(), ended })
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// Everything that a server is.
pub(crate) struct Inner {
    pub(crate) clock: Clock,
    /// Garbage is collected this long after a delete; never by itself if there is none.
    pub(crate) collect_after: Option<Duration>,
    pub(crate) state: Mutex<State>,
    pub(crate) watches: Mutex<Vec<Watch>>,
    pub(crate) processes: Mutex<BTreeMap<String, Arc<Process>>>,
    pub(crate) journal: Mutex<Vec<Record>>,
    pub(crate) hooks: Hooks,
    pub(crate) collecting: Mutex<bool>,
}

/// An answer before it is bytes.
pub(crate) struct Answer {
    code: u16,
    retry_after: Option<u32>,
    content: Content,
}

impl Answer {
    fn of(result: Result<(u16, Content), Refusal>) -> Self {
        match result {
            Ok((code, content)) => Self { code, retry_after: None, content },
            Err(refusal) => Self {
                code: refusal.code,
                retry_after: refusal.retry_after,
                content: if refusal.is_text {
                    Content::Text(refusal.message().to_owned())
                } else {
                    Content::Json(refusal.status())
                },
            },
        }
    }
}

/// The error of a connection that the other side broke.
pub(crate) fn reset() -> BoxError {
    std::io::Error::new(std::io::ErrorKind::ConnectionReset, "connection reset by peer").into()
}

impl Inner {
    /// One request of one process, from its arrival to its answer.
    pub(crate) async fn serve(
        self: Arc<Self>,
        process: Arc<Process>,
        request: http::Request<kube::client::Body>,
    ) -> Result<Response<Body>, BoxError> {
        if process.has_ended() {
            return std::future::pending().await;
        }
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await.map_err(BoxError::from)?.to_bytes();
        let request = Request::parse(&parts, &bytes);
        let call = self.arrive(&process, &request);
        let fault = self.hooks.fault_for(&call);
        self.note(call.number, |record| record.fault = fault.to_string());
        let number = call.number;
        let answer = match fault {
            Fault::LostRequest => std::future::pending().await,
            Fault::LostAnswer => {
                self.handle(&call, &request, None);
                std::future::pending().await
            }
            Fault::ResetBefore => Err(reset()),
            Fault::ResetAfter => {
                self.handle(&call, &request, None);
                Err(reset())
            }
            Fault::CutBefore => {
                self.end(&process);
                std::future::pending().await
            }
            Fault::CutAfter => {
                self.handle(&call, &request, None);
                self.end(&process);
                std::future::pending().await
            }
            Fault::Refuse(code) => Ok(self.respond(self.refuse(&request, code, None), false)),
            Fault::RefuseFor(code, seconds) => Ok(self.respond(self.refuse(&request, code, Some(seconds)), false)),
            Fault::Nonsense(code, text) => {
                let answer = Answer { code, retry_after: None, content: Content::Text(text) };
                Ok(self.respond(answer, false))
            }
            Fault::ResetMidBody => Ok(self.respond(self.handle(&call, &request, None), true)),
            Fault::None => Ok(self.respond(self.handle(&call, &request, None), false)),
            Fault::Stale(back) => {
                let as_of = lock(&self.state).store.revision().saturating_sub(back);
                Ok(self.respond(self.handle(&call, &request, Some(as_of)), false))
            }
            Fault::StaleAt(revision) => Ok(self.respond(self.handle(&call, &request, Some(revision)), false)),
            Fault::Slow(by) => {
                let answer = self.respond(self.handle(&call, &request, None), false);
                tokio::time::sleep(by).await;
                Ok(answer)
            }
            Fault::Late(by) => {
                // A task of its own: the request is under way, whether or not its sender still waits.
                let server = Arc::clone(&self);
                let arriving = tokio::spawn(async move {
                    tokio::time::sleep(by).await;
                    let answer = server.handle(&call, &request, None);
                    server.respond(answer, false)
                });
                arriving.await.map_err(BoxError::from)
            }
        };
        if process.has_ended() {
            return std::future::pending().await;
        }
        let fate = answer.as_ref().map_or(Fate::Broken, |answer| Fate::Answered(answer.status().as_u16()));
        self.note(number, |record| record.fate = fate);
        answer
    }

    fn arrive(&self, process: &Process, request: &Request) -> Call {
        let mut journal = lock(&self.journal);
        let body = request.body.as_ref().cloned().unwrap_or_default();
        let named = if request.name.is_empty() { object::name(&body) } else { &request.name };
        let call = Call {
            number: journal.len() + 1,
            who: process.who.clone(),
            verb: request.verb,
            group: request.group.clone(),
            resource: if request.plural.is_empty() { request.path.clone() } else { request.plural.clone() },
            subresource: request.subresource.clone(),
            namespace: request.namespace.clone(),
            name: named.to_owned(),
            patch: request.patch,
            body,
            at: self.clock.elapsed(),
        };
        journal.push(Record { call: call.clone(), fault: String::new(), handled: false, fate: Fate::Pending });
        call
    }

    fn note(&self, number: usize, change: impl FnOnce(&mut Record)) {
        let mut journal = lock(&self.journal);
        if let Some(record) = number.checked_sub(1).and_then(|at| journal.get_mut(at)) {
            change(record);
        }
    }

    /// Carries a request out, and tells everybody whom it concerns.
    fn handle(self: &Arc<Self>, call: &Call, request: &Request, as_of: Option<u64>) -> Answer {
        let result = {
            let mut state = lock(&self.state);
            let allowed = authorize(&state, call, request);
            allowed.and_then(|()| state.route(call, request, as_of)).map(|(code, content, watch)| {
                lock(&self.watches).extend(watch);
                (code, content)
            })
        };
        self.note(call.number, |record| record.handled = true);
        self.tell();
        Answer::of(result)
    }

    fn refuse(&self, request: &Request, code: u16, retry_after: Option<u32>) -> Answer {
        let kind = lock(&self.state).kind(&request.group, &request.version, &request.plural).ok();
        Answer::of(Err(Refusal::of_code(code, kind.as_deref(), &request.name, retry_after)))
    }

    fn respond(self: &Arc<Self>, answer: Answer, breaks_off: bool) -> Response<Body> {
        let (content_type, body) = match answer.content {
            Content::Json(value) => ("application/json", whole(value.to_string(), breaks_off)),
            Content::Text(text) => ("text/plain", whole(text, breaks_off)),
            Content::Feed(feed) => {
                let server = Arc::downgrade(self);
                let revision =
                    move || server.upgrade().map(|server| lock(&server.state).store.revision()).unwrap_or_default();
                let stream = feed.into_stream(revision);
                let body = if breaks_off {
                    StreamBody::new(futures::stream::once(async { Err(reset()) })).boxed_unsync()
                } else {
                    StreamBody::new(stream).boxed_unsync()
                };
                ("application/json", body)
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = http::StatusCode::from_u16(answer.code).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
        if let Some(seconds) = answer.retry_after {
            headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from(seconds));
        }
        response
    }

    /// Ends a process: its watches fall silent, its calls never return.
    pub(crate) fn end(&self, process: &Process) {
        process.ended.send_replace(true);
        for watch in lock(&self.watches).iter().filter(|watch| watch.who == process.who) {
            watch.break_off(Break::Silent);
        }
    }
}

fn authorize(state: &State, call: &Call, request: &Request) -> Result<(), Refusal> {
    let Ok(kind) = state.kind(&request.group, &request.version, &request.plural) else {
        // Unknown paths are answered as such: rules about them would hide the better message.
        return Ok(());
    };
    let resource = if request.subresource.is_empty() {
        request.plural.clone()
    } else {
        format!("{}/{}", request.plural, request.subresource)
    };
    let attempt = Attempt {
        verb: call.verb.as_str(),
        group: &request.group,
        resource: &resource,
        namespace: &request.namespace,
        name: &request.name,
    };
    // Everybody may ask what they may do.
    if kind.id.starts_with("selfsubjectaccessreviews") || state.access.allows(&call.who, &attempt) {
        return Ok(());
    }
    Err(Refusal::forbidden(&kind, &request.name, &Access::refusal_text(&call.who, &attempt)))
}

fn whole(text: String, breaks_off: bool) -> Body {
    if !breaks_off {
        return Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    }
    let half = Bytes::from(text.as_bytes().get(..text.len() / 2).unwrap_or_default().to_vec());
    let frames = futures::stream::iter([Ok(Frame::data(half)), Err(reset())]);
    StreamBody::new(frames.boxed()).boxed_unsync()
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApiServer with {} calls so far", lock(&self.journal).len())
    }
}
