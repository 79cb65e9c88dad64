//! The OIDC exchange: a service account's JWT in, a bearer of about fifteen minutes out.

use std::sync::Arc;

use http::StatusCode;

use super::answer::{Answer, Refusal};
use super::call::Call;
use super::console::{issue, later};
use super::wire::{ExchangeAnswer, ExchangeRequest};
use super::{Service, blocking};
use crate::credential::new_uuid;
use crate::oidc::{self, Expected};
use crate::store::{Role, Scope, Token, TokenKind};

/// Async as a whole, because the keys of the cluster may have to be fetched; what touches the store does so aside.
pub(super) async fn exchange(service: Arc<Service>, call: Call) -> Result<Answer, Refusal> {
    let request: ExchangeRequest = call.read_json(r#"{"cluster_id":"UUID","token":"JWT"}"#)?;
    let cluster_id = request.cluster_id.to_ascii_lowercase();
    let looked_up = Arc::clone(&service);
    let cluster = blocking(move || Ok(looked_up.store.cluster(&cluster_id)?)).await?.ok_or_else(|| {
        Refusal::not_found(format!("there is no cluster {:?}; register it first", request.cluster_id))
    })?;
    let keys = oidc::fetch_keys(cluster.keys).await.map_err(|error| {
        tracing::warn!(%error, cluster = cluster.id, "no keys for an exchange");
        Refusal::new(StatusCode::BAD_GATEWAY, error.to_string())
    })?;
    blocking(move || {
        let now = service.clock.now();
        let expected = Expected { issuer: &cluster.issuer, audience: &cluster.audience, now };
        let claims = oidc::verify(request.token.expose(), &keys, expected)
            .map_err(|rejected| Refusal::unauthorized(rejected.to_string()))?;
        service.store.purge_expired_tokens(now)?;
        let expires_at = later(now, service.bearer_lifetime)?;
        let created = issue(
            &service,
            Token {
                id: new_uuid()?,
                kind: TokenKind::Cluster,
                role: Role::Viewer,
                label: claims.sub.unwrap_or_else(|| "cluster".to_owned()),
                scope: Scope::Organization { organization: cluster.organization },
                created_at: now,
                expires_at: Some(expires_at),
            },
        )?;
        let answer = ExchangeAnswer { access_token: created.token, expires_at, token_type: "Bearer".to_owned() };
        Ok(Answer::json(StatusCode::OK, &answer))
    })
    .await
}
