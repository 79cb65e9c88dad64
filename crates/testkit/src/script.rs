//! One script of requests, for the model and for a real kube-apiserver alike: both must give the same transcript.
//!
//! This is how the model is checked. A step is a raw request, so that nothing between the script and the server can
//! hide a difference; what differs between any two servers (UIDs, revisions, times, generated names) is replaced by
//! its order of appearance. `tests/model_matches_reality.rs` compares the model with the recorded transcript of a real
//! server, `examples/record.rs` records one.

mod transcript;

#[allow(clippy::needless_pass_by_value, reason = "a table of requests reads better without a reference on each body")]
mod custom;
mod reads;
#[allow(clippy::needless_pass_by_value, reason = "as above")]
mod secrets;
#[allow(clippy::needless_pass_by_value, reason = "as above")]
mod ssa;
#[allow(clippy::needless_pass_by_value, reason = "as above")]
mod workloads;

use http::Request;
use serde_json::Value;

pub use self::transcript::run;

/// How a body is labelled.
#[derive(Clone, Copy, Debug)]
enum Content {
    Json,
    Merge,
    Strategic,
    JsonPatch,
    Apply,
    Unknown,
}

impl Content {
    fn mime(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
            Self::Apply => "application/apply-patch+yaml",
            Self::Unknown => "application/x-unheard-of",
        }
    }
}

/// Which part of an answer is compared.
#[derive(Clone, Copy, Debug)]
enum Show {
    /// All of it.
    All,
    /// Without managed fields and without what defaults of the kind add to `spec`.
    Metadata,
    /// Code and reason alone, where messages are worded by something the model does not contain.
    Reason,
}

/// One request.
#[derive(Clone, Debug)]
struct Step {
    what: &'static str,
    method: &'static str,
    /// With `{ns}` for the namespace of the run.
    path: String,
    content: Content,
    accept: &'static str,
    body: Value,
    show: Show,
}

/// The metadata-only form of one object.
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The metadata-only form of a list.
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

impl Step {
    fn new(what: &'static str, method: &'static str, path: impl Into<String>, content: Content, body: Value) -> Self {
        Self { what, method, path: path.into(), content, accept: "application/json", body, show: Show::All }
    }

    fn get(what: &'static str, path: impl Into<String>) -> Self {
        Self::new(what, "GET", path, Content::Json, Value::Null)
    }

    fn post(what: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self::new(what, "POST", path, Content::Json, body)
    }

    fn put(what: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self::new(what, "PUT", path, Content::Json, body)
    }

    fn merge(what: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self::new(what, "PATCH", path, Content::Merge, body)
    }

    fn patch(what: &'static str, path: impl Into<String>, content: Content, body: Value) -> Self {
        Self::new(what, "PATCH", path, content, body)
    }

    fn delete(what: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self::new(what, "DELETE", path, Content::Json, body)
    }

    fn accepting(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    fn showing(mut self, show: Show) -> Self {
        self.show = show;
        self
    }

    /// The request, once placeholders are filled in.
    fn request(&self, path: &str, body: &Value) -> Result<Request<kube::client::Body>, http::Error> {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        Request::builder()
            .method(self.method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, self.content.mime())
            .header(http::header::ACCEPT, self.accept)
            .body(kube::client::Body::from(bytes))
    }
}

/// Every step, in order.
fn steps() -> Vec<Step> {
    let mut steps = secrets::steps();
    steps.extend(ssa::steps());
    steps.extend(custom::steps());
    steps.extend(workloads::steps());
    steps.extend(reads::steps());
    steps
}
