//! The API side of the server: reads a request to its end, counts it, applies the fault it meets, and answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use zeroize::Zeroizing;

use crate::api::answer::Answer;
use crate::api::call::Call;
use crate::api::{Service, refused_request};
use crate::faults::{Action, Faults, RetryAfter};
use crate::ledger::{Ledger, LoggedRequest};
use crate::transport::{Aborted, Cut, HalfEnd, Handler, Outgoing};

/// Largest body of a request: 2 MiB, twice of what a Kubernetes Secret holds, so that one that is too large can be set.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// Longest time a client may take to send it: 10 s, what a client gives a whole call.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// The API side.
pub(crate) struct Front {
    pub(crate) service: Arc<Service>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) ledger: Arc<Ledger>,
    /// Where the API begins: empty, or a path such as `/vault` without a slash at its end.
    pub(crate) base_path: String,
}

impl Handler for Front {
    async fn handle(self: Arc<Self>, request: Request<Incoming>, cut: Cut) -> Result<Response<Outgoing>, Aborted> {
        let (parts, body) = request.into_parts();
        let Some(path) = parts.uri.path().strip_prefix(self.base_path.as_str()).filter(|path| path.starts_with('/'))
        else {
            let message = format!("the API of this server begins at {}", self.base_path);
            return Ok(whole(refused_request("", StatusCode::NOT_FOUND, message)));
        };
        let body = match tokio::time::timeout(BODY_DEADLINE, read_body(body)).await {
            Ok(Ok(body)) => body,
            Ok(Err(BodyError::TooLarge)) => {
                let message = format!("the body is longer than the {MAX_BODY} bytes this server reads");
                return Ok(whole(refused_request(path, StatusCode::PAYLOAD_TOO_LARGE, message)));
            }
            Ok(Err(BodyError::Broken)) => return Err(Aborted),
            Err(_) => {
                let message = "the body did not arrive in time".to_owned();
                return Ok(whole(refused_request(path, StatusCode::REQUEST_TIMEOUT, message)));
            }
        };
        let call = Call::new(parts.method, path, parts.uri.query().unwrap_or_default(), &parts.headers, body);
        self.meet(call, cut).await
    }
}

impl Front {
    async fn meet(&self, call: Call, cut: Cut) -> Result<Response<Outgoing>, Aborted> {
        let service = Arc::clone(&self.service);
        // The store may have to be asked for the name of the vault, and it blocks.
        let looked_up = tokio::task::spawn_blocking(move || (service.vault_concerned(&call), call));
        let (vault, call) = looked_up.await.map_err(|_| Aborted)?;
        let action = self.faults.claim(call.method.as_str(), &call.path, vault.as_deref());
        let seq = self.ledger.arrived(entry(&call, vault, action.as_ref(), &self.service));
        let answered = |answer: &Answer| {
            self.ledger.answered(seq, answer.status.as_u16());
            tracing::debug!(seq, status = answer.status.as_u16(), "answered");
        };
        let is_cloud = call.path.starts_with("/api/");
        let Some(action) = action else {
            let answer = Arc::clone(&self.service).answer(call).await;
            answered(&answer);
            return Ok(whole(answer));
        };
        // First what keeps the call from being done.
        match &action {
            Action::Delay { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Action::Stall => std::future::pending::<()>().await,
            Action::Reset => {
                cut.cut();
                return Err(Aborted);
            }
            _ => {
                if let Some(answer) = invented(&action, is_cloud) {
                    answered(&answer);
                    return Ok(whole(answer));
                }
            }
        }
        // Then what spoils its answer.
        let mut answer = Arc::clone(&self.service).answer(call).await;
        match action {
            Action::ResetAfter => {
                cut.cut();
                return Err(Aborted);
            }
            Action::ResetBody if answer.body.is_empty() => {
                cut.cut();
                return Err(Aborted);
            }
            Action::ResetBody => return Ok(half(answer, HalfEnd::Reset(cut))),
            Action::StallBody => return Ok(half(answer, HalfEnd::Stall)),
            Action::Truncated => answer.body = answer.body.slice(..answer.body.len() / 2),
            _ => {}
        }
        answered(&answer);
        Ok(whole(answer))
    }
}

/// The answer of an action that does not do the call at all.
fn invented(action: &Action, is_cloud: bool) -> Option<Answer> {
    match action {
        Action::Respond { status, body, retry_after } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let key = if is_cloud { "message" } else { "error" };
            let body = match body {
                Some(text) => Bytes::from(text.clone()),
                None => Bytes::from(serde_json::json!({ key: "a fault rule answered this" }).to_string()),
            };
            let mut answer = Answer::json_bytes(status, body);
            let value = match retry_after {
                Some(RetryAfter::Seconds(seconds)) => Some(HeaderValue::from(*seconds)),
                Some(RetryAfter::Text(text)) => HeaderValue::from_str(text).ok(),
                None => None,
            };
            answer.headers.extend(value.map(|value| (RETRY_AFTER, value)));
            Some(answer)
        }
        Action::Nonsense => {
            Some(Answer::json_bytes(StatusCode::OK, Bytes::from_static(b"<html>\x00 this is not { JSON")))
        }
        Action::BigBody { bytes } => {
            let filler = "x".repeat(*bytes);
            let body = if is_cloud {
                format!(
                    r#"{{"secrets":{{"FILLER":"{filler}"}},"missing":[],"vault":{{"id":"0","name":"0","environment":""}}}}"#
                )
            } else {
                format!(
                    r#"{{"hits":[{{"name":"FILLER","value":"{filler}","version":1,"fetched_at":"1970-01-01T00:00:00Z"}}],"missing":[]}}"#
                )
            };
            Some(Answer::json_bytes(StatusCode::OK, Bytes::from(body)))
        }
        Action::Empty => Some(Answer { status: StatusCode::OK, headers: Vec::new(), body: Bytes::new() }),
        _ => None,
    }
}

fn entry(call: &Call, vault: Option<String>, action: Option<&Action>, service: &Service) -> LoggedRequest {
    LoggedRequest {
        seq: 0,
        at: service.clock.now(),
        method: call.method.to_string(),
        route: call.route.as_ref().map_or("unknown", |route| route.template()).to_owned(),
        vault,
        names: call.names_asked(),
        namespace: call.namespace.clone(),
        bearer: call.bearer.is_some(),
        fault: action.map(|action| action.name().to_owned()),
        status: None,
    }
}

/// The whole answer.
pub(crate) fn whole(answer: Answer) -> Response<Outgoing> {
    let body = Outgoing::whole(answer.body.clone());
    assemble(answer, body)
}

/// The answer up to the middle of its body.
fn half(answer: Answer, end: HalfEnd) -> Response<Outgoing> {
    let body = Outgoing::half(&answer.body, end);
    assemble(answer, body)
}

fn assemble(answer: Answer, body: Outgoing) -> Response<Outgoing> {
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    response.headers_mut().extend(answer.headers);
    response
}

pub(crate) enum BodyError {
    TooLarge,
    Broken,
}

/// Reads at most [`MAX_BODY`] bytes.
pub(crate) async fn read_body(mut body: Incoming) -> Result<Zeroizing<Vec<u8>>, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(MAX_BODY);
    // The announced room at once: a vector that grows leaves copies behind that nobody wipes.
    let mut read = Zeroizing::new(Vec::with_capacity(announced.min(MAX_BODY)));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        if read.len() + data.len() > MAX_BODY {
            return Err(BodyError::TooLarge);
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}
