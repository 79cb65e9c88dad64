//! The HTTP API of FerrVault, in both of its modes, plus the calls behind the client verbs.
//!
//! From a `call::Call` to an `answer::Answer`: no socket, no fault and no counter is known here. What is answered as
//! done is durable.

mod access;
pub(crate) mod answer;
pub(crate) mod call;
mod cloud;
mod console;
mod exchange;
mod operator;
pub(crate) mod route;
pub mod wire;

use std::sync::Arc;

use http::StatusCode;
use jiff::SignedDuration;

use crate::clock::Clock;
use crate::limit::RateLimiter;
use crate::store::{Scope, Store};
use answer::{Answer, ErrorShape, Refusal};
use call::Call;
use route::{NoRoute, Route, shape_of_path};

/// What the calls work with.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) limiter: RateLimiter,
    /// How long a bearer from an OIDC exchange is accepted.
    pub(crate) bearer_lifetime: SignedDuration,
}

impl Service {
    /// Answers `call`. Refusals are answers too.
    pub(crate) async fn answer(self: Arc<Self>, call: Call) -> Answer {
        let shape = shape_of_path(&call.path);
        let result = match &call.route {
            Ok(Route::OidcExchange) => exchange::exchange(self, call).await,
            _ => blocking(move || self.dispatch(&call)).await,
        };
        result.unwrap_or_else(|refusal| refusal.into_answer(shape))
    }

    fn dispatch(&self, call: &Call) -> Result<Answer, Refusal> {
        let route = call.route.as_ref().map_err(|&no_route| refused_path(no_route, call))?;
        match route {
            Route::Health => Ok(Answer::json(StatusCode::OK, &serde_json::json!({ "status": "ok" }))),
            Route::Reveal => operator::reveal(self, call),
            Route::List => operator::list(self, call),
            Route::Me => operator::me(self, call),
            Route::CreateSecret => operator::create(self, call),
            Route::UpdateSecret { name } => operator::update(self, call, name),
            Route::DeleteSecret { name } => operator::delete(self, call, name),
            Route::CloudReveal { organization, project, vault } => {
                cloud::reveal(self, call, organization, project, vault)
            }
            // Handled before, because it awaits; here only so that the compiler counts the routes.
            Route::OidcExchange => Err(refused_path(NoRoute::NotFound, call)),
            Route::ListVaults => console::list_vaults(self, call),
            Route::CreateVault => console::create_vault(self, call),
            Route::DeleteVault { id } => console::delete_vault(self, call, id),
            Route::WriteSecrets { vault_id } => console::write_secrets(self, call, vault_id),
            Route::ListTokens => console::list_tokens(self, call),
            Route::CreateToken => console::create_token(self, call),
            Route::RevokeToken { id } => console::revoke_token(self, call, id),
            Route::ListClusters => console::list_clusters(self, call),
            Route::RegisterCluster => console::register_cluster(self, call),
            Route::RemoveCluster { id } => console::remove_cluster(self, call, id),
        }
    }

    /// The name of the vault that a call is about, for rules and counters: as the call says it or, where it says nothing,
    /// the one its token is bound to. An identifier is turned into the name. Grants nothing.
    pub(crate) fn vault_concerned(&self, call: &Call) -> Option<String> {
        if let Some(named) = call.named_vault() {
            let vault = self.store.vault(&named).ok().flatten();
            return Some(vault.map_or(named, |vault| vault.name));
        }
        if !matches!(call.route, Ok(Route::List | Route::Me | Route::DeleteSecret { .. })) {
            return None;
        }
        let token = self.store.token(call.bearer.as_ref()?.expose()).ok()??;
        let Scope::Vault { vault_id } = token.scope else { return None };
        self.store.vault(&vault_id).ok()?.map(|vault| vault.name)
    }
}

/// Runs `work`, which may wait for the disk, where waiting does not hold up other calls.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the call was given up; the server is stopping or has a bug",
        ))
    })
}

fn refused_path(no_route: NoRoute, call: &Call) -> Refusal {
    match no_route {
        NoRoute::NotFound => Refusal::not_found("there is no such path"),
        NoRoute::MethodNotAllowed => {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("this path does not take the method {}", call.method))
        }
        NoRoute::NotDecodable => Refusal::bad_request("the path is not UTF-8 after percent-decoding"),
    }
}

/// A request that is refused before it is a call.
pub(crate) fn refused_request(path: &str, status: StatusCode, message: String) -> Answer {
    let shape = if path.is_empty() { ErrorShape::Error } else { shape_of_path(path) };
    Refusal::new(status, message).into_answer(shape)
}
