//! Gets the public keys of a cluster from where it was registered with.
//!
//! A URL is asked at every exchange: exchanges are rare, and rotated keys are seen at once. Nothing here trusts the system
//! roots; a server is trusted by the certificates given at registration.

use std::time::Duration;

use crate::outbound::{self, NotBuilt};
use crate::store::KeySource;

/// Longest wait for the document: half of the ten seconds that a client gives its exchange.
const DEADLINE: Duration = Duration::from_secs(5);

/// Largest document: 1 MiB, hundreds of keys.
const MAX_DOCUMENT: usize = 1024 * 1024;

/// The keys could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysUnavailable {
    #[error("the keys of the cluster could not be fetched: {0}")]
    Client(#[from] NotBuilt),
    #[error("the keys of the cluster could not be fetched: {0}")]
    Request(reqwest::Error),
    #[error("the URL of the cluster's keys answered with {0}")]
    Status(reqwest::StatusCode),
    #[error("the URL of the cluster's keys answered with something that is no JSON of at most {MAX_DOCUMENT} bytes")]
    Document,
}

/// The JWKS document of a cluster.
pub(crate) async fn fetch_keys(source: KeySource) -> Result<serde_json::Value, KeysUnavailable> {
    let (url, ca_pem) = match source {
        KeySource::Document(document) => return Ok(document),
        KeySource::Url { url, ca_pem } => (url, ca_pem),
    };
    let client = outbound::client(ca_pem.as_deref(), DEADLINE)?;
    let mut answer = client.get(url).send().await.map_err(KeysUnavailable::Request)?;
    if !answer.status().is_success() {
        return Err(KeysUnavailable::Status(answer.status()));
    }
    let mut document = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(KeysUnavailable::Request)? {
        if document.len() + chunk.len() > MAX_DOCUMENT {
            return Err(KeysUnavailable::Document);
        }
        document.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&document).map_err(|_| KeysUnavailable::Document)
}
