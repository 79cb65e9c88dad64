//! A scripted API server for this crate's unit tests: a closure answers, every request is recorded, nothing is listened on.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::stream::StreamExt;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

/// A request as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) accept: String,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    /// The value of a query parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let pairs = url::form_urlencoded::parse(self.query.as_bytes());
        pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

/// How a request is answered.
pub(crate) enum Reply {
    /// With this status and body.
    Json(u16, Value),
    /// With 200 and a body that comes line by line.
    Lines(mpsc::UnboundedReceiver<Line>),
    /// With that, once the notice comes.
    Held(Arc<tokio::sync::Notify>, Box<Reply>),
    /// Not at all.
    Never,
    /// With a broken connection.
    Broken,
}

/// A piece of a body.
pub(crate) enum Line {
    /// A line of JSON.
    Json(Value),
    /// The connection breaks.
    Broken,
}

/// The writing end of [`Reply::Lines`].
pub(crate) type Lines = mpsc::UnboundedSender<Line>;

impl Reply {
    /// A refusal in the API server's own form.
    pub(crate) fn refusal(code: u16, reason: &str) -> Self {
        let message = format!("refused: {reason}");
        Self::Json(
            code,
            json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}),
        )
    }

    /// A body to be written to later.
    pub(crate) fn lines() -> (Lines, Self) {
        let (sender, receiver) = mpsc::unbounded();
        (sender, Self::Lines(receiver))
    }
}

/// What was asked so far. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<Seen>>>);

impl Requests {
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// A client whose every request `answer` answers.
pub(crate) fn api(answer: impl FnMut(&Seen) -> Reply + Send + 'static) -> (Client, Requests) {
    let requests = Requests::default();
    let recorded = requests.clone();
    let answer = Arc::new(Mutex::new(answer));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (recorded, answer) = (recorded.clone(), Arc::clone(&answer));
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let seen = Seen {
                method: parts.method,
                path: parts.uri.path().to_owned(),
                query: parts.uri.query().unwrap_or_default().to_owned(),
                accept: parts.headers.get("accept").map_or("", |value| value.to_str().unwrap()).to_owned(),
                body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            };
            recorded.0.lock().unwrap().push(seen.clone());
            let reply = (*answer.lock().unwrap())(&seen);
            respond(reply).await
        }
    });
    (Client::new(service, "default"), requests)
}

async fn respond(mut reply: Reply) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
    while let Reply::Held(notice, held) = reply {
        notice.notified().await;
        reply = *held;
    }
    let broken = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let (code, body) = match reply {
        Reply::Json(code, body) => {
            (code, Full::new(Bytes::from(body.to_string())).map_err(BoxError::from).boxed_unsync())
        }
        Reply::Lines(lines) => {
            let frames = lines.map(move |line| match line {
                Line::Json(value) => Ok(Frame::data(Bytes::from(format!("{value}\n")))),
                Line::Broken => Err(BoxError::from(broken())),
            });
            (200, StreamBody::new(frames).boxed_unsync())
        }
        Reply::Broken => return Err(broken().into()),
        Reply::Never | Reply::Held(..) => std::future::pending().await,
    };
    Ok(Response::builder().status(code).body(body)?)
}
