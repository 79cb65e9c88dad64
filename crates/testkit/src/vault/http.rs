//! The scripted FerrVault over HTTP: the calls that an operator makes, in the shapes of the real API.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use ferrvault_core::content::Answer;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Passed, ScriptedVault, VaultFailure};
use crate::clock::EPOCH_SECONDS;
use crate::hooks::lock;

/// One byte more than the 4 MiB that a client reads at most.
const TOO_MANY_BYTES: usize = 4 * 1024 * 1024 + 1;

/// A FerrVault that listens on loopback, until it is dropped.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Listening {
    /// Where it listens, as a connection names it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Deserialize)]
struct Wanted {
    vault: String,
    #[serde(default)]
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    names: String,
}

impl ScriptedVault {
    /// Listens on a free port of the loopback address.
    pub async fn listen(&self) -> std::io::Result<Listening> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let router = self.router();
        let task = tokio::spawn(async move {
            // Ends with its task; an error here shows as refused connections in the test.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Listening { address, task })
    }

    /// The routes.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/health", get(health))
            .route("/api/v1/orgs/{org}/projects/{project}/vaults/by-name/{vault}/secrets/reveal", get(reveal_cloud))
            .route("/v1/operator/secrets/reveal", post(reveal_own))
            .route("/v1/operator/secrets/list", get(list))
            .route("/v1/operator/me", get(me))
            .route("/api/v1/clusters/oidc-exchange", post(exchange))
            .with_state(self.clone())
    }

    /// A reveal over HTTP, with the answer shaped by `shape`.
    async fn reveal_as(
        &self,
        headers: &HeaderMap,
        wanted: Wanted,
        shape: impl Fn(&Self, &Answer) -> Value,
    ) -> Response {
        let token = bearer(headers).unwrap_or_default();
        match self.reveal(Some(token.as_bytes()), &wanted.vault, &wanted.names).await {
            Ok(answer) => shape(self, &answer).to_string().into_json(),
            Err(failure) => failed(failure),
        }
    }

    /// Name and version of every key of a vault.
    fn versions(&self, vault: &str) -> Vec<(String, i32)> {
        let model = lock(&self.model);
        let entries = model.vaults.get(vault).into_iter().flatten();
        entries.map(|(key, entry)| (key.clone(), entry.version)).collect()
    }

    /// The vault that a token is bound to; the only vault there is for one that is bound to none.
    fn vault_of(&self, token: &str) -> Result<String, VaultFailure> {
        let model = lock(&self.model);
        let known = model.tokens.iter().find(|(known, _)| known.expose() == token.as_bytes());
        match known {
            None if !model.tokens.is_empty() => Err(VaultFailure::Status(401, None)),
            Some((_, Some(vault))) => Ok(vault.clone()),
            _ => Ok(model.vaults.keys().next().cloned().unwrap_or_default()),
        }
    }
}

trait IntoJson {
    fn into_json(self) -> Response;
}

impl IntoJson for String {
    fn into_json(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self).into_response()
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

fn failed(failure: VaultFailure) -> Response {
    match failure {
        VaultFailure::Status(code, after) => {
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let reason = code.canonical_reason().unwrap_or("refused");
            let mut response = json!({ "error": reason }).to_string().into_json();
            *response.status_mut() = code;
            if let Some(seconds) = after {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
        VaultFailure::Nonsense => "<html>not FerrVault</html>".into_response(),
        VaultFailure::TooLarge => "x".repeat(TOO_MANY_BYTES).into_json(),
        // The nearest that a handler can come to no connection: one that breaks within the body.
        VaultFailure::Unreachable => {
            let broken = futures::stream::once(async { Err::<String, _>(std::io::Error::other("broken off")) });
            Body::from_stream(broken).into_response()
        }
    }
}

async fn health(State(vault): State<ScriptedVault>) -> Response {
    match vault.health().await {
        Ok(()) => json!({ "status": "ok" }).to_string().into_json(),
        Err(failure) => failed(failure),
    }
}

async fn reveal_own(State(vault): State<ScriptedVault>, headers: HeaderMap, body: String) -> Response {
    let Ok(wanted) = serde_json::from_str::<Wanted>(&body) else {
        return failed(VaultFailure::Status(400, None));
    };
    let name = wanted.vault.clone();
    let stamp = stamp();
    let shape = |vault: &ScriptedVault, answer: &Answer| {
        let versions = vault.versions(&name);
        let version = |key: &String| versions.iter().find(|(known, _)| known == key).map_or(1, |(_, version)| *version);
        let hits = answer.content.0.iter().map(|(key, value)| {
            let value = String::from_utf8_lossy(value.expose());
            json!({ "name": key, "value": value, "version": version(key), "fetched_at": stamp })
        });
        json!({ "hits": hits.collect::<Vec<_>>(), "missing": answer.missing })
    };
    vault.reveal_as(&headers, wanted, shape).await
}

async fn reveal_cloud(
    State(vault): State<ScriptedVault>,
    Path((_, _, name)): Path<(String, String, String)>,
    Query(query): Query<Names>,
    headers: HeaderMap,
) -> Response {
    if !headers.contains_key("x-ferrvault-namespace") {
        return failed(VaultFailure::Status(400, None));
    }
    let names = query.names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let wanted = Wanted { vault: name.clone(), names };
    let shape = |_: &ScriptedVault, answer: &Answer| {
        let secrets: serde_json::Map<String, Value> = answer
            .content
            .0
            .iter()
            .map(|(key, value)| (key.clone(), String::from_utf8_lossy(value.expose()).into()))
            .collect();
        let about = json!({ "id": name, "name": name, "environment": "test" });
        json!({ "secrets": secrets, "missing": answer.missing, "vault": about })
    };
    vault.reveal_as(&headers, wanted, shape).await
}

async fn list(State(vault): State<ScriptedVault>, headers: HeaderMap) -> Response {
    named(&vault, &headers, "list", |name| {
        let versions = vault.versions(name).into_iter();
        versions.map(|(name, version)| json!({ "name": name, "version": version, "updated_at": stamp() })).collect()
    })
    .await
}

async fn me(State(vault): State<ScriptedVault>, headers: HeaderMap) -> Response {
    named(&vault, &headers, "me", |name| {
        json!({
            "token_id": "token-1", "vault_id": name, "vault_slug": name, "role": "viewer",
            "token_label": "test", "expires_at": null,
        })
    })
    .await
}

/// A call about the vault that the token is bound to.
async fn named(
    vault: &ScriptedVault,
    headers: &HeaderMap,
    what: &'static str,
    shape: impl Fn(&str) -> Value,
) -> Response {
    let bound = vault.vault_of(bearer(headers).unwrap_or_default());
    let passed = vault.pass(what, bound.as_deref().unwrap_or_default(), &[]).await;
    if let Ok(Passed::AnswerTakes(by)) = &passed {
        tokio::time::sleep(*by).await;
    }
    match passed.and(bound) {
        Ok(name) => shape(&name).to_string().into_json(),
        Err(failure) => failed(failure),
    }
}

/// Any JWT is good: what it is worth is the dev server's business.
async fn exchange(State(vault): State<ScriptedVault>) -> Response {
    match vault.pass("exchange", "", &[]).await {
        Ok(_) => {
            // A bearer of 15 minutes, in the time of the simulation, made up by counting.
            let number = vault.calls().len();
            let expires = lock(&vault.model).clock.now() + jiff::SignedDuration::from_mins(15);
            let token = format!("fvsat_exchanged_{number}");
            if !lock(&vault.model).tokens.is_empty() {
                vault.accept(token.as_str(), None);
            }
            json!({ "access_token": token, "expires_at": expires, "token_type": "Bearer" }).to_string().into_json()
        }
        Err(failure) => failed(failure),
    }
}

fn stamp() -> String {
    jiff::Timestamp::from_second(EPOCH_SECONDS).unwrap_or_default().to_string()
}
