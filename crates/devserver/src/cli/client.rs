//! One call to the server, and what can go wrong with it.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::{CliError, PlaceArgs};
use crate::api::wire::ErrorBody;
use crate::outbound;
use crate::secret_text::SecretText;
use crate::store::Vault;

/// Longest wait for an answer: 30 s, enough for a server that a fault rule slows down.
const DEADLINE: Duration = Duration::from_secs(30);

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No answer.
    #[error("cannot reach {url}: {reason}; is `ferrvault-dev serve` running there?")]
    Unreachable {
        /// The server.
        url: String,
        /// What the network says.
        reason: String,
    },
    /// A refusal.
    #[error("the server refused ({status}): {message}{}", advice(*status))]
    Refused {
        /// Its status.
        status: StatusCode,
        /// Its reason.
        message: String,
    },
    /// The answer is not the one that belongs to the call.
    #[error("the answer of {url} is not one of ferrvault-dev; check --server")]
    Answer {
        /// The server.
        url: String,
    },
}

/// A client of one server.
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    token: SecretText,
}

impl Client {
    pub(super) fn new(base: Url, token: SecretText, ca_pem: Option<&str>) -> Result<Self, CliError> {
        Ok(Self { http: outbound::client(ca_pem, DEADLINE)?, base, token })
    }

    /// `GET` of the path made of `segments`.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Result<T, CliError> {
        self.decoded(self.send(Method::GET, segments, query, None::<&()>).await?).await
    }

    /// A call with a body.
    pub(super) async fn send_json<T: DeserializeOwned>(
        &self,
        method: Method,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<T, CliError> {
        self.decoded(self.send(method, segments, &[], Some(body)).await?).await
    }

    /// `DELETE`, whose answer is empty.
    pub(super) async fn delete(&self, segments: &[&str], query: &[(&str, &str)]) -> Result<(), CliError> {
        self.send(Method::DELETE, segments, query, None::<&()>).await.map(|_| ())
    }

    /// The vault that is meant, among those that the token reaches. The identifier of one is taken too.
    pub(super) async fn find_vault(&self, name: &str, place: &PlaceArgs) -> Result<Vault, CliError> {
        let vaults: Vec<Vault> = self.get(&["dev", "v1", "vaults"], &[]).await?;
        let wanted = |part: &Option<String>, actual: &str| part.as_deref().is_none_or(|part| part == actual);
        let mut matching = vaults.into_iter().filter(|vault| {
            vault.id == name
                || vault.name == name
                    && wanted(&place.organization, &vault.organization)
                    && wanted(&place.project, &vault.project)
        });
        let Some(found) = matching.next() else { return Err(CliError::NoVault { name: name.to_owned() }) };
        let others: Vec<Vault> = matching.collect();
        if others.is_empty() {
            return Ok(found);
        }
        let places: Vec<String> = std::iter::once(&found)
            .chain(&others)
            .map(|vault| format!("{}/{}", vault.organization, vault.project))
            .collect();
        Err(CliError::ManyVaults { name: name.to_owned(), places: places.join(", ") })
    }

    async fn send(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        body: Option<&impl Serialize>,
    ) -> Result<reqwest::Response, CliError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.http.request(method, url).bearer_auth(self.token.expose());
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body: Option<ErrorBody> = response.json().await.ok();
        let message = body.and_then(|body| body.error.or(body.message)).unwrap_or_else(|| "no reason given".to_owned());
        Err(ClientError::Refused { status, message }.into())
    }

    async fn decoded<T: DeserializeOwned>(&self, response: reqwest::Response) -> Result<T, CliError> {
        let body = response.bytes().await.map_err(|error| self.unreachable(error))?;
        // The cause is left out: it may quote a value.
        serde_json::from_slice(&body).map_err(|_| ClientError::Answer { url: self.base.to_string() }.into())
    }

    fn unreachable(&self, error: reqwest::Error) -> ClientError {
        // reqwest says "error sending request"; the reason is at the end of its chain.
        let error = error.without_url();
        let mut reason: &dyn std::error::Error = &error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        ClientError::Unreachable { url: self.base.to_string(), reason: reason.to_string() }
    }
}

fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "; check --token, FERRVAULT_DEV_TOKEN or --data",
        StatusCode::FORBIDDEN => "; use a token of a higher role, such as the admin token in the data directory",
        _ => "",
    }
}
