//! Each way a call to FerrVault can fail, one variant per way that somebody handles or reads differently.
//!
//! An error holds names, numbers and cleaned texts only, and has no source: the errors of the layers below print
//! addresses and bytes of answers. So an error may be shown on a status, logged with `{:?}` and shared between callers.

use std::time::Duration;

use thiserror::Error;

pub use crate::upstream::UpstreamText;

/// Why FerrVault gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VaultError {
    /// 401.
    #[error(
        "FerrVault does not accept the token (401{upstream}); check that it is complete and neither expired nor revoked"
    )]
    Unauthorized {
        /// What FerrVault said.
        upstream: UpstreamText,
    },
    /// 403: the token is known and may not do this. A service account asked for another vault than its own is this, too.
    #[error("the token may not do this (403{upstream}); check its role and that it was made for this vault")]
    Forbidden {
        /// What FerrVault said.
        upstream: UpstreamText,
    },
    /// 404.
    #[error(
        "FerrVault does not have this (404{upstream}); check the names of organization, project and vault, and the URL's path"
    )]
    NotFound {
        /// What FerrVault said.
        upstream: UpstreamText,
    },
    /// 429.
    #[error("FerrVault asks for fewer calls (429{upstream}){}; read less often or share tokens less", wait(*after))]
    Throttled {
        /// How long it wants to be left alone, where it says so.
        after: Option<Duration>,
        /// What FerrVault said.
        upstream: UpstreamText,
    },
    /// Any other 4xx.
    #[error(
        "FerrVault rejects the call ({status}{upstream}); check that the URL belongs to FerrVault and that both speak the same version"
    )]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// What FerrVault said.
        upstream: UpstreamText,
    },
    /// 5xx, at every attempt.
    #[error("FerrVault or a proxy before it is failing ({status}{upstream}); the call is worth repeating later")]
    ServerError {
        /// The HTTP status.
        status: u16,
        /// What FerrVault said.
        upstream: UpstreamText,
    },
    /// The TLS handshake failed for a reason that repeating does not change.
    #[error("TLS with FerrVault is refused: {why}")]
    RefusedByTls {
        /// What was refused and what to change.
        why: String,
    },
    /// No connection, or it broke before the answer was complete.
    #[error("FerrVault cannot be reached: {why}; check the URL, DNS and network policies")]
    Unreachable {
        /// What the network said.
        why: String,
    },
    /// An address that no connection is made to, as it is written or as the name was resolved. Nothing was sent.
    #[error(
        "the URL's host is an address of the node or its cloud (link-local or a metadata service), which is not called; \
         correct the URL, or have the operator started with --allow-origin for it if FerrVault is there"
    )]
    AddressRefused,
    /// The answer was not complete in time.
    #[error("FerrVault did not answer completely within {}; check its load and the network in between", seconds(*limit))]
    TimedOut {
        /// The time one attempt has.
        limit: Duration,
    },
    /// The answer is a large one, and other large ones took all the memory there is for them.
    #[error(
        "FerrVault's answer is a large one and finds no room beside the other large ones that are being worked on; it is \
         tried again, and a small one needs no room: name the keys that are needed, or split the vault"
    )]
    NoRoom,
    /// An answer that is not what the API promises.
    #[error(
        "FerrVault's answer is not understood: {what}; check that the URL belongs to FerrVault and that no proxy changes answers"
    )]
    BrokenAnswer {
        /// What is wrong with it.
        what: String,
    },
    /// An answer beyond the limit, counted after decompression.
    #[error("FerrVault's answer is larger than {limit} bytes; name the keys that are needed or split the vault")]
    TooLarge {
        /// The most that is read.
        limit: usize,
    },
    /// 3xx. Redirects are never followed: they would carry the token to wherever they point.
    #[error("FerrVault's URL answers with a redirect ({status}{}), which is not followed; use the final address as URL", towards(to.as_deref()))]
    RedirectRefused {
        /// The HTTP status.
        status: u16,
        /// Scheme, host and port it points to.
        to: Option<String>,
    },
    /// A key that this call cannot carry. Nothing was sent.
    #[error("the key \"{key}\" cannot be asked for: {why}; rename it in FerrVault or leave it out")]
    UnencodableKey {
        /// The key, escaped and cut.
        key: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A name other than a key that this call cannot carry. Nothing was sent.
    #[error("the {field} \"{name}\" cannot be sent: {why}; correct it")]
    UnencodableName {
        /// Which name: `vault`, `organization`, `project`, `namespace` or `cluster id`.
        field: &'static str,
        /// The name, escaped and cut.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A value that is not text, which the write side cannot carry. Nothing was sent.
    #[error(
        "the value of key \"{key}\" is not UTF-8 text, which is all FerrVault stores; encode it, for example as base64"
    )]
    UnencodableValue {
        /// The key, escaped and cut.
        key: String,
    },
    /// More names than fit into one address. Nothing was sent.
    #[error(
        "the names of all wanted keys make an address of {bytes} bytes, of which servers take {limit}; ask for every \
         key of the vault (no names) or split the list"
    )]
    TooManyNames {
        /// Length of the address.
        bytes: usize,
        /// The most that is sent.
        limit: usize,
    },
}

impl VaultError {
    /// Whether the same call may succeed within moments: transport errors and 5xx, nothing else.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::ServerError { .. } | Self::Unreachable { .. } | Self::TimedOut { .. })
    }

    /// An answer that is not what the API promises.
    pub(crate) fn broken(what: impl Into<String>) -> Self {
        Self::BrokenAnswer { what: what.into() }
    }
}

/// `30 s`, `0.25 s`.
fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

fn wait(after: Option<Duration>) -> String {
    after.map(|after| format!(", after {}", seconds(after))).unwrap_or_default()
}

fn towards(to: Option<&str>) -> String {
    to.map(|to| format!(" to {to}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transport_errors_and_server_errors_are_worth_repeating() {
        let upstream = UpstreamText::default();
        for (error, retryable) in [
            (VaultError::Unreachable { why: "connection refused".into() }, true),
            (VaultError::TimedOut { limit: Duration::from_secs(1) }, true),
            (VaultError::ServerError { status: 500, upstream: upstream.clone() }, true),
            (VaultError::Unauthorized { upstream: upstream.clone() }, false),
            (VaultError::Forbidden { upstream: upstream.clone() }, false),
            (VaultError::NotFound { upstream: upstream.clone() }, false),
            (VaultError::Throttled { after: None, upstream: upstream.clone() }, false),
            (VaultError::Rejected { status: 400, upstream }, false),
            (VaultError::RefusedByTls { why: "expired".into() }, false),
            (VaultError::AddressRefused, false),
            (VaultError::broken("no JSON"), false),
            (VaultError::TooLarge { limit: 1 }, false),
            (VaultError::NoRoom, false),
            (VaultError::RedirectRefused { status: 302, to: None }, false),
            (VaultError::UnencodableKey { key: "A,B".into(), why: "comma" }, false),
            (VaultError::UnencodableName { field: "vault", name: String::new(), why: "empty" }, false),
            (VaultError::UnencodableValue { key: "A".into() }, false),
            (VaultError::TooManyNames { bytes: 2, limit: 1 }, false),
        ] {
            assert_eq!(error.is_retryable(), retryable, "{error}");
        }
    }

    #[test]
    fn texts_read_as_sentences() {
        let upstream = UpstreamText::new("slow down", &[]);
        for (error, text) in [
            (
                VaultError::Throttled { after: Some(Duration::from_secs(30)), upstream },
                "FerrVault asks for fewer calls (429, saying \"slow down\"), after 30 s; read less often or share tokens less",
            ),
            (
                VaultError::TimedOut { limit: Duration::from_millis(250) },
                "FerrVault did not answer completely within 0.25 s; check its load and the network in between",
            ),
            (
                VaultError::RedirectRefused { status: 308, to: Some("https://vault.example.com".into()) },
                "FerrVault's URL answers with a redirect (308 to https://vault.example.com), which is not followed; \
                 use the final address as URL",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
