//! A man in the middle between an operator and its API server, who changes what is said.
//!
//! So an operator can be broken in any rule without a hook in its code: to it, a rule that is undone on the way is a rule
//! that it never had.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

use crate::check::SYSTEM;

/// A request on its way.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    uri: http::Uri,
    headers: http::HeaderMap,
    /// Plural of what it is about.
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    is_watch: bool,
    pub(crate) body: Value,
}

/// What is made of an answer.
pub(crate) enum After {
    /// It goes on as it is.
    Keep,
    /// This is asked first, and its answer goes on.
    Again(Box<Sent>),
    /// This goes on instead.
    Instead(Value),
}

/// What a man in the middle does. Everything he leaves out stays as it is.
pub(crate) trait Lie: Send + Sync + 'static {
    /// Before a request goes out. An answer given here is one that the server never saw.
    fn sent(&self, _sent: &mut Sent) -> Option<Value> {
        None
    }

    /// After it was answered: with a status, or not at all.
    fn after(&self, _sent: &Sent, _status: Option<u16>) -> After {
        After::Keep
    }

    /// An object on its way to the operator: of an answer, a list or a watch. `false` keeps an event of a watch back.
    fn seen(&self, _resource: &str, _object: &mut Value, _of_watch: bool) -> bool {
        true
    }
}

impl Sent {
    /// Whether it is a write of this resource (`secrets`, `ferrvaultsecrets/status`).
    pub(crate) fn writes(&self, resource: &str) -> bool {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let is_write = [Method::PATCH, Method::POST, Method::PUT].contains(&self.method);
        is_write && self.resource == plural && self.subresource == subresource
    }

    /// Whether it restarts a workload.
    pub(crate) fn restarts(&self) -> bool {
        self.method == Method::PATCH && WORKLOADS.contains(&self.resource.as_str())
    }

    /// Whether it records a debt and nothing else.
    pub(crate) fn is_debt(&self) -> bool {
        let fields = self.body.pointer("/status").and_then(Value::as_object);
        self.writes("ferrvaultsecrets/status")
            && fields.is_some_and(|fields| fields.len() == 1 && fields.contains_key("lastRolloutHash"))
    }

    /// Whether it carries times only.
    pub(crate) fn is_heartbeat(&self) -> bool {
        self.writes("ferrvaultsecrets/status") && self.body.pointer("/metadata/resourceVersion").is_none()
    }

    /// Whether only metadata is asked for.
    pub(crate) fn wants_metadata(&self) -> bool {
        let accept = self.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        accept.contains("PartialObjectMetadata")
    }

    /// Takes the precondition out.
    pub(crate) fn without_version(&mut self) {
        if let Some(metadata) = self.body.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
    }

    /// The same in another namespace.
    pub(crate) fn moved_to(&mut self, namespace: &str) {
        let here = format!("/namespaces/{}/", self.namespace);
        let moved = self.uri.to_string().replace(&here, &format!("/namespaces/{namespace}/"));
        if let Ok(uri) = moved.parse() {
            self.uri = uri;
            namespace.clone_into(&mut self.namespace);
        }
    }

    async fn read(request: Request<Body>) -> Result<Self, BoxError> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let segments: Vec<&str> = parts.uri.path().split('/').filter(|part| !part.is_empty()).collect();
        // /api/v1/… or /apis/<group>/<version>/…
        let rest = segments.get(if segments.first() == Some(&"api") { 2 } else { 3 }..).unwrap_or_default();
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
        Ok(Self {
            is_watch: parts.uri.query().is_some_and(|query| query.contains("watch=true")),
            resource: part(0),
            name: part(1),
            subresource: part(2),
            namespace: namespace.to_owned(),
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
            method: parts.method,
            uri: parts.uri,
            headers: parts.headers,
        })
    }

    fn request(&self) -> Result<Request<Body>, BoxError> {
        let body = if self.body.is_null() { Vec::new() } else { self.body.to_string().into_bytes() };
        let mut request = Request::builder().method(&self.method).uri(&self.uri).body(Body::from(body))?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }
}

pub(super) const WORKLOADS: [&str; 3] = ["deployments", "statefulsets", "daemonsets"];

/// A client of the same API server, with `lie` in between.
pub(super) fn between(client: kube::Client, lie: Arc<dyn Lie>) -> kube::Client {
    let service = tower::service_fn(move |request| {
        let (client, lie) = (client.clone(), Arc::clone(&lie));
        async move { pass_on(client, lie, request).await }
    });
    kube::Client::new(service, SYSTEM)
}

type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

fn whole(bytes: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

async fn pass_on(client: kube::Client, lie: Arc<dyn Lie>, request: Request<Body>) -> Result<Answered, BoxError> {
    let mut sent = Sent::read(request).await?;
    if let Some(answer) = lie.sent(&mut sent) {
        return Ok(Response::new(whole(answer.to_string())));
    }
    let mut answered = client.send(sent.request()?).await;
    match lie.after(&sent, answered.as_ref().ok().map(|answer| answer.status().as_u16())) {
        After::Keep => {}
        After::Again(again) => answered = client.send(again.request()?).await,
        After::Instead(answer) => return Ok(Response::new(whole(answer.to_string()))),
    }
    let answered = answered.map_err(BoxError::from)?;
    if !answered.status().is_success() {
        return Ok(answered.map(|body| body.map_err(BoxError::from).boxed_unsync()));
    }
    let resource = sent.resource.clone();
    if sent.is_watch {
        let (parts, body) = answered.into_parts();
        // The server sends one event per frame.
        let body = body.map_frame(move |frame| match frame.into_data() {
            Ok(data) => http_body::Frame::data(event(&*lie, &resource, data)),
            Err(frame) => frame,
        });
        return Ok(Response::from_parts(parts, body.map_err(BoxError::from).boxed_unsync()));
    }
    let (parts, body) = answered.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let Ok(mut answer) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(Response::from_parts(parts, whole(bytes)));
    };
    match answer.pointer_mut("/items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(|item| {
            lie.seen(&resource, item, false);
        }),
        None => {
            lie.seen(&resource, &mut answer, false);
        }
    }
    Ok(Response::from_parts(parts, whole(answer.to_string())))
}

fn event(lie: &dyn Lie, resource: &str, data: Bytes) -> Bytes {
    let Ok(mut event) = serde_json::from_slice::<Value>(&data) else { return data };
    let is_change = event.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "BOOKMARK" && kind != "ERROR");
    let Some(object) = event.get_mut("object").filter(|_| is_change) else { return data };
    if !lie.seen(resource, object, true) {
        // An event that says nothing, so that the stream is alive.
        let version = object.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        let (api, kind) = (object.get("apiVersion").cloned(), object.get("kind").cloned());
        event = json!({ "type": "BOOKMARK", "object": {
            "apiVersion": api, "kind": kind, "metadata": { "resourceVersion": version },
        }});
    }
    let mut text = event.to_string();
    text.push('\n');
    Bytes::from(text)
}
