//! One call: held against the rules, sent on, and its answer handed back piece by piece.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::sync::watch;

use super::rule::{self, Call, Fault, Rules};

/// What an answer's body can fail with: the server's own connection broke, and so does the caller's.
pub(super) type Broken = std::io::Error;

type Body = UnsyncBoxBody<Bytes, Broken>;

/// Sends calls on.
pub(super) struct Forwarder {
    server: String,
    client: reqwest::Client,
    rules: watch::Receiver<Rules>,
}

impl Forwarder {
    pub(super) fn new(server: &str, client: reqwest::Client, rules: watch::Receiver<Rules>) -> Self {
        Self { server: server.trim_end_matches('/').to_owned(), client, rules }
    }

    pub(super) async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(Broken::other)?.to_bytes();
        let call = Call::new(&head.method, head.uri.path(), head.uri.query());
        let swallow = match self.held_back(&call).await {
            Some(Fault::Refuse(status)) => return Ok(refusal(status)),
            Some(Fault::Delay(delay)) => {
                tokio::time::sleep(delay).await;
                false
            }
            fault => fault == Some(Fault::Swallow),
        };
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        let mut headers = head.headers;
        for own in [header::HOST, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
            headers.remove(own);
        }
        let sent = self.client.request(head.method, format!("{}{target}", self.server)).headers(headers).body(body);
        // Without an answer the connection is closed, as the server's own would be.
        let answer = sent.send().await.map_err(Broken::other)?;
        if swallow {
            self.until(|rules| rule::fault_for(rules, &call) != Some(Fault::Swallow)).await;
        }
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        for own in [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
            headers.remove(own);
        }
        let pieces = gated(answer.bytes_stream().map_err(Broken::other), call, self.rules.clone());
        let mut response = Response::new(UnsyncBoxBody::new(StreamBody::new(pieces.map_ok(Frame::data))));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Waits as long as `call` is not to be sent on; what else is to happen to it then.
    async fn held_back(&self, call: &Call) -> Option<Fault> {
        let held = |rules: &Rules| matches!(rule::fault_for(rules, call), Some(Fault::Hang | Fault::BlackHole));
        self.until(|rules| !held(rules)).await;
        rule::fault_for(&self.rules.borrow(), call)
    }

    async fn until(&self, judge: impl Fn(&Rules) -> bool) {
        // An error: the proxy is gone, and its calls with it.
        let _ = self.rules.clone().wait_for(|rules| judge(rules)).await;
    }
}

/// The pieces of an answer, each handed on as soon as the rules let it.
fn gated(
    pieces: impl Stream<Item = Result<Bytes, Broken>> + Send + 'static,
    call: Call,
    rules: watch::Receiver<Rules>,
) -> impl Stream<Item = Result<Bytes, Broken>> + Send {
    let pieces = Box::pin(pieces);
    futures::stream::unfold((pieces, call, rules), |(mut pieces, call, mut rules)| async move {
        let piece = pieces.next().await;
        // The end of the answer is a piece as well: who hears nothing does not hear that either.
        let _ = rules.wait_for(|rules| !rule::body_stands_still(rules, &call)).await;
        piece.map(|piece| (piece, (pieces, call, rules)))
    })
}

/// As the API server refuses.
fn refusal(status: StatusCode) -> Response<Body> {
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused on request","code":{}}}"#,
        status.as_u16()
    );
    let mut response = Response::new(UnsyncBoxBody::new(Full::from(text).map_err(|never| match never {})));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
