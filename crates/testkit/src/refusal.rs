//! What the server says when it does not do what it was asked: a `Status` with the code, reason, message and details
//! that kube-apiserver sends for the same mistake.

mod field_error;

use serde_json::{Value, json};

pub(crate) use self::field_error::FieldError;
use crate::kind::Kind;

/// An answer that is not the object asked for.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    /// Also sent as a `Retry-After` header.
    pub(crate) retry_after: Option<u32>,
    /// Answered in plain text.
    pub(crate) is_text: bool,
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, retry_after: None, is_text: false }
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details = Some(details(name, &kind.group, &kind.plural));
        self
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.id);
        Self::new(404, "NotFound", message).about(kind, name)
    }

    /// The path leads nowhere: the kind is not installed. The real server answers this in plain text.
    pub(crate) fn no_such_path() -> Self {
        let mut refusal = Self::new(404, "NotFound", "404 page not found");
        refusal.is_text = true;
        refusal
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str, is_terminating: bool) -> Self {
        let prefix = if is_terminating { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} \"{name}\" already exists", kind.id);
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.id);
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// A precondition of a delete does not hold. Names the kind where other conflicts name the resource.
    pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let (qualified, what) = (kind.qualified(), "Operation cannot be fulfilled on");
        let mut refusal = Self::new(409, "Conflict", format!("{what} {qualified} \"{name}\": {why}"));
        refusal.details = Some(details(name, &kind.group, &kind.kind));
        refusal
    }

    /// The one mistake of a client that the real server takes for its own.
    pub(crate) fn revision_on_create() -> Self {
        Self::new(500, "", "resourceVersion should not be set on objects to be created")
    }

    /// The resourceVersion sent is not the current one.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// Server-side apply met fields that belong to others.
    pub(crate) fn apply_conflict(message: String, causes: Vec<(String, String)>) -> Self {
        let causes = causes
            .into_iter()
            .map(|(field, message)| json!({"reason": "FieldManagerConflict", "message": message, "field": field}));
        let mut refusal = Self::new(409, "Conflict", message);
        refusal.details = Some(json!({ "causes": causes.collect::<Vec<_>>() }));
        refusal
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        let mut lines: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
        lines.dedup();
        let list = match lines.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {list}", kind.qualified());
        let causes = errors.iter().map(|e| json!({"reason": e.reason, "message": e.message, "field": e.field}));
        let mut refusal = Self::new(422, "Invalid", message);
        let mut about = details(name, &kind.group, &kind.kind);
        crate::object::fields_mut(&mut about).insert("causes".to_owned(), causes.collect());
        refusal.details = Some(about);
        refusal
    }

    /// A PUT without a resourceVersion where one is demanded. Names the resource where other messages name the kind.
    pub(crate) fn revision_missing(kind: &Kind, name: &str) -> Self {
        let error = FieldError::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
        let message = format!("{} \"{name}\" is invalid: {}: {}", kind.id, error.field, error.message);
        let mut refusal = Self::new(422, "Invalid", message).about(kind, name);
        if let Some(about) = &mut refusal.details {
            let cause = json!({"reason": error.reason, "message": error.message, "field": error.field});
            crate::object::fields_mut(about).insert("causes".to_owned(), json!([cause]));
        }
        refusal
    }

    /// An applied object that cannot be read as its kind.
    pub(crate) fn unreadable_apply(kind: &Kind, object: &Value, why: &str) -> Self {
        let (namespace, name) = (crate::object::namespace(object), crate::object::name(object));
        let version = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
        let message = format!(
            "failed to convert new object ({namespace}/{name}; {version}) to proper version: unable to convert \
             unstructured object to {version}: error decoding from json: {why}"
        );
        Self::new(500, "", message)
    }

    /// A patch that could not be applied, or whose result is no object of the kind.
    ///
    /// The real server repeats the whole patched object in this message, data included. So does the model: it is the
    /// one way to find out whether a message goes where it must not.
    pub(crate) fn unusable_patch(patched: &Value, why: &str) -> Self {
        let shown = Value::String(patched.to_string());
        let message = format!(" \"\" is invalid: patch: Invalid value: {shown}: {why}");
        let mut refusal = Self::new(422, "Invalid", message);
        let cause = json!({"reason": "FieldValueInvalid", "message": format!("Invalid value: {shown}: {why}"), "field": "patch"});
        refusal.details = Some(json!({ "causes": [cause] }));
        refusal
    }

    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut refusal = Self::new(422, "Invalid", message);
        refusal.details = Some(json!({}));
        refusal
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.id);
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    /// Forbidden because the namespace is going away.
    pub(crate) fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut refusal = Self::forbidden(kind, name, &why);
        if let Some(about) = &mut refusal.details {
            let cause = json!({
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            });
            crate::object::fields_mut(about).insert("causes".to_owned(), json!([cause]));
        }
        refusal
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// List options that contradict each other.
    pub(crate) fn invalid_options(error: &FieldError) -> Self {
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {}: {}", error.field, error.message);
        let mut refusal = Self::new(422, "Invalid", message);
        let cause = json!({"reason": error.reason, "message": error.message, "field": error.field});
        refusal.details = Some(json!({ "group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause] }));
        refusal
    }

    /// A resourceVersion that this server has not reached yet.
    pub(crate) fn too_large_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let mut refusal = Self::new(504, "Timeout", message);
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        refusal.details = Some(json!({ "causes": [cause], "retryAfterSeconds": 1 }));
        refusal
    }

    /// No patch at all, by its content type.
    pub(crate) fn unknown_media() -> Self {
        let mut refusal = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        refusal.details = Some(json!({}));
        refusal
    }

    /// A kind of patch that this kind of object does not take.
    pub(crate) fn unsupported_media(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut refusal = Self::new(405, "MethodNotAllowed", message);
        refusal.details = Some(json!({}));
        refusal
    }

    /// A refusal chosen by a fault plan, worded as the real server words the code.
    pub(crate) fn of_code(code: u16, kind: Option<&Kind>, name: &str, retry_after: Option<u32>) -> Self {
        let (reason, message) = match code {
            400 => ("BadRequest", "the server rejected our request for an unknown reason"),
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "forbidden by the fault plan"),
            404 => ("NotFound", "the server could not find the requested resource"),
            409 => (
                "Conflict",
                "the object has been modified; please apply your changes to the latest version and try again",
            ),
            410 => ("Expired", "too old resource version"),
            413 => ("RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
            422 => ("Invalid", "the server rejected our request due to an error in our request"),
            429 => ("TooManyRequests", "Too many requests, please try again later."),
            500 => ("InternalError", "Internal error occurred: etcdserver: request failed"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "Timeout: request did not complete within requested timeout"),
            _ => ("", "the server responded without further information"),
        };
        let mut refusal = Self::new(code, reason, message);
        if let Some(kind) = kind {
            refusal = refusal.about(kind, name);
        }
        refusal.retry_after = retry_after.or((code == 429).then_some(1));
        refusal
    }

    /// What it says.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The body of the answer.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            crate::object::fields_mut(&mut status).insert("reason".to_owned(), self.reason.into());
        }
        let mut details = self.details.clone();
        if let Some(seconds) = self.retry_after {
            let about = details.get_or_insert_with(|| json!({}));
            crate::object::fields_mut(about).insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        if let Some(details) = details {
            crate::object::fields_mut(&mut status).insert("details".to_owned(), details);
        }
        status
    }
}

fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut details = json!({ "kind": kind });
    let fields = crate::object::fields_mut(&mut details);
    if !name.is_empty() {
        fields.insert("name".to_owned(), name.into());
    }
    if !group.is_empty() {
        fields.insert("group".to_owned(), group.into());
    }
    details
}
