//! How a call to the Kubernetes API can fail, in the few ways that somebody treats differently, and the deadline that
//! every such call runs under.
//!
//! A [`CallError`] never holds an object, nor a sentence that could quote one (see [`super::message`]), so it may be
//! logged and written into a status as it is.

use std::time::Duration;

use kube::core::Status;

use super::message::{LINE, Quote, SHOWN, printable, shown};

/// Longest wait for one answer of the API server.
///
/// A loaded server answers a write in well under a second; ten leave room for an election of its store (about 5 s). The
/// shortest pass deadline that settings admit is one call to FerrVault (30.6 s); the default of 2 min holds it and eight
/// calls that all run to their end: 120 s - 30.6 s = 89.4 s > 8 x 10 s.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// What became of a call that did not give what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no such object, and the API server itself says so.
    #[error("not found")]
    NotFound,
    /// The object is not the one that was read: read again and decide again.
    #[error("changed since it was read")]
    Conflict,
    /// A create found the name taken.
    #[error("exists already")]
    AlreadyExists,
    /// Authorization, admission or a quota said no.
    #[error("forbidden: {message}")]
    Forbidden {
        /// What was denied.
        message: String,
    },
    /// The object would not be valid.
    #[error("invalid: {message}")]
    Invalid {
        /// Which fields are wrong.
        message: String,
    },
    /// The resource version or list position asked for has expired.
    #[error("no longer in the history of the API server")]
    Gone,
    /// The API server asks to come back later.
    #[error("the API server is throttling requests")]
    Throttled {
        /// How long it asks to wait, if it says.
        after: Option<Duration>,
    },
    /// Refused with another status.
    #[error("refused with status {code}: {message}")]
    Refused {
        /// HTTP status; 500 where the server gave none.
        code: u16,
        /// What it said.
        message: String,
    },
    /// No answer within the deadline. The call may or may not have been carried out.
    #[error("no answer within the deadline")]
    TimedOut,
    /// The API server could not be talked to. The call may or may not have been carried out.
    #[error("the API server cannot be reached: {message}")]
    Unreachable {
        /// The innermost cause.
        message: String,
    },
    /// The answer is not what this version understands.
    #[error("the answer of the API server cannot be read: {what}")]
    Undecodable {
        /// Where in the answer, never what stood there.
        what: String,
    },
    /// This replica does not lead (any more), so the call was not made.
    #[error("this replica is not the leader")]
    NotLeading,
}

/// What kind of reaction a failed call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Goes away by itself: back off and try again.
    Transient,
    /// Try again, but not before this.
    Throttled {
        /// How long the server asks to wait, if it says.
        after: Option<Duration>,
    },
    /// Something has to appear first.
    Waiting,
    /// A person has to change something.
    User,
    /// The request itself is wrong: ours to mend.
    Bug,
}

impl CallError {
    /// The failure of a write that carried the values of a Secret: nothing of the server's sentence is kept but names.
    pub fn from_secret_write(error: kube::Error) -> Self {
        classify(error, Quote::NamesOnly)
    }

    /// Whether the object was missing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound)
    }

    /// Whether somebody else wrote in between. A fresh read is the whole answer; it is not counted as an error.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict | Self::AlreadyExists)
    }

    /// Whether the call may have been carried out although no answer says so.
    pub fn is_unknown_outcome(&self) -> bool {
        match self {
            Self::TimedOut | Self::Unreachable { .. } | Self::Undecodable { .. } => true,
            Self::Refused { code, .. } => *code >= 500,
            _ => false,
        }
    }

    /// What kind of reaction it asks for.
    pub fn class(&self) -> Class {
        match self {
            Self::NotFound => Class::Waiting,
            Self::Forbidden { .. } | Self::Invalid { .. } => Class::User,
            Self::Throttled { after } => Class::Throttled { after: *after },
            Self::Conflict
            | Self::AlreadyExists
            | Self::Gone
            | Self::TimedOut
            | Self::Unreachable { .. }
            | Self::NotLeading
            // 401: the account's token was rotated; the client reads it anew within a minute. 404: not about an object.
            | Self::Refused { code: 401 | 404 | 408 | 500.., .. } => Class::Transient,
            Self::Refused { .. } | Self::Undecodable { .. } => Class::Bug,
        }
    }

    /// For a status, an event or a log: one printable line of at most [`LINE`] characters.
    pub fn user_message(&self) -> String {
        printable(&self.to_string(), LINE)
    }

    /// The same, opening with what was tried: `patch Secret db: forbidden: …`.
    pub fn user_message_for(&self, tried: &str) -> String {
        printable(&format!("{tried}: {self}"), LINE)
    }
}

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> Self {
        classify(error, Quote::Sentence)
    }
}

/// Waits for `call`, at most `limit`.
///
/// A cut-off call may still be carried out by the server; whoever writes says with a resource version what it is based on.
pub async fn deadline<T, E: Into<CallError>>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(CallError::TimedOut),
    }
}

/// The variant for a refusal by the API server.
pub(super) fn refusal(status: &Status) -> CallError {
    refused(status, Quote::Sentence)
}

fn classify(error: kube::Error, quote: Quote) -> CallError {
    match error {
        kube::Error::Api(status) => refused(&status, quote),
        // serde's own words quote what it stumbled over; position and category are enough to find it.
        kube::Error::SerdeError(error) => CallError::Undecodable {
            what: format!("{:?} error at line {} column {}", error.classify(), error.line(), error.column()),
        },
        kube::Error::FromUtf8(_) => CallError::Undecodable { what: "not UTF-8".to_owned() },
        kube::Error::LinesCodecMaxLineLengthExceeded => CallError::Undecodable { what: "no end of line".to_owned() },
        // What a credential plugin printed may hold the credential.
        kube::Error::Auth(_) => {
            CallError::Unreachable { message: "the credentials for the API server cannot be obtained".to_owned() }
        }
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            CallError::Refused { code: 400, message: "the request cannot be built".to_owned() }
        }
        other => transport(&other),
    }
}

fn refused(status: &Status, quote: Quote) -> CallError {
    let message = shown(status, quote);
    match (status.reason.as_str(), status.code) {
        // By the reason alone: the 404 of some proxy on the way does not say that an object is gone.
        ("NotFound", _) => CallError::NotFound,
        ("AlreadyExists", _) => CallError::AlreadyExists,
        (_, 409) => CallError::Conflict,
        (_, 403) => CallError::Forbidden { message },
        (_, 422) => CallError::Invalid { message },
        (_, 410) => CallError::Gone,
        (_, 429) => {
            let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            CallError::Throttled { after: (seconds > 0).then(|| Duration::from_secs(u64::from(seconds))) }
        }
        // A body of `{}` parses as a status without a code; the answer was an error all the same.
        (_, 0) => CallError::Refused { code: 500, message },
        (_, code) => CallError::Refused { code, message },
    }
}

fn transport(error: &kube::Error) -> CallError {
    let mut innermost: &(dyn std::error::Error + 'static) = error;
    loop {
        let io = innermost.downcast_ref::<std::io::Error>();
        if io.is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
            || innermost.is::<tower::timeout::error::Elapsed>()
        {
            return CallError::TimedOut;
        }
        // An I/O error hands out the source of what it wraps, and would leave out the wrapped error itself.
        let wrapped = io.and_then(std::io::Error::get_ref).map(|error| error as &(dyn std::error::Error + 'static));
        match wrapped.or_else(|| innermost.source()) {
            Some(inner) => innermost = inner,
            None => return CallError::Unreachable { message: printable(&innermost.to_string(), SHOWN / 2) },
        }
    }
}

#[cfg(test)]
mod tests;
