//! What a call ends with: an answer, or a refusal that says what to change.
//!
//! Refusals never quote a body, a value or a token; what failed inside goes to the log, not to the caller.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::credential::NoRandomness;
use crate::store::StoreError;

/// A complete answer, before any fault changes it.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

impl Answer {
    /// `body` as JSON.
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => Self::json_bytes(status, Bytes::from(bytes)),
            // Only a map with keys that are no strings or a failing `Serialize` ends here; neither is ever passed in.
            Err(_) => Self { status: StatusCode::INTERNAL_SERVER_ERROR, headers: Vec::new(), body: Bytes::new() },
        }
    }

    /// `body`, claimed to be JSON.
    pub(crate) fn json_bytes(status: StatusCode, body: Bytes) -> Self {
        Self { status, headers: vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body }
    }

    /// 204.
    pub(crate) fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: Bytes::new() }
    }
}

/// Why a call was not done.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: String,
    retry_after: Option<u64>,
}

/// The two shapes an error has on the wire: one API says `error`, the other `message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorShape {
    Error,
    Message,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(crate) fn throttled(seconds: u64) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            message: format!("too many requests with this token; try again in {seconds} s"),
            retry_after: Some(seconds),
        }
    }

    fn internal(what: &'static str, error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "{what}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, what)
    }

    /// The refusal as it goes out.
    pub(crate) fn into_answer(self, shape: ErrorShape) -> Answer {
        let key = match shape {
            ErrorShape::Error => "error",
            ErrorShape::Message => "message",
        };
        let mut answer = Answer::json(self.status, &serde_json::json!({ key: self.message }));
        if let Some(seconds) = self.retry_after {
            answer.headers.push((RETRY_AFTER, HeaderValue::from(seconds)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            answer.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        answer
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Exists => Self::conflict("it exists already"),
            StoreError::Missing => Self::not_found("it does not exist"),
            other => Self::internal("the store failed; the server's log says why", &other),
        }
    }
}

impl From<NoRandomness> for Refusal {
    fn from(error: NoRandomness) -> Self {
        Self::internal("no random bytes", &error)
    }
}
