//! The token of a connection: won for whoever asks with it, and asked about by the check.
//!
//! What FerrVault says of a token decides here and nowhere else whether the connection is to blame. Never prints one.

use ferrvault_api::connection::Mode;
use ferrvault_api::{FerrVaultConnection, Reason};
use ferrvault_core::connection::TokenCheck;
use ferrvault_core::refusal::Refusal;
use ferrvault_vault::{Bearer, Endpoint, VaultError};

use super::refused;
use crate::context::Context;

/// The bearer to ask with.
pub async fn bearer(ctx: &Context, connection: &FerrVaultConnection, endpoint: &Endpoint) -> Result<Bearer, Refusal> {
    let won = ctx.credentials.bearer(&ctx.cluster, connection, endpoint).await;
    won.map_err(|refusal| exchange_refused(connection, refusal))
}

/// An exchange that FerrVault refuses is about the cluster's identity: no vault was asked for yet.
fn exchange_refused(connection: &FerrVaultConnection, mut refusal: Refusal) -> Refusal {
    let Some(oidc) = &connection.spec.oidc else { return refusal };
    match refusal.reason {
        Reason::VaultNotFound => Refusal::new(
            Reason::AuthFailed,
            format!(
                "exchanging the pod's identity: FerrVault knows no cluster {:?} (404); correct spec.oidc.clusterID of the \
                 connection, or register the cluster in FerrVault",
                oidc.cluster_id
            ),
        ),
        Reason::AuthFailed => {
            refusal.message.push_str("; check spec.oidc.clusterID and spec.oidc.audience of the connection");
            refusal
        }
        _ => refusal,
    }
}

/// Asks FerrVault who the token is. Refused is it only by a plain no: a user's token, or a FerrVault without the question,
/// gives no answer that could be held against it, and a failure on the way says nothing of the token.
pub(super) async fn check(
    ctx: &Context,
    connection: &FerrVaultConnection,
    endpoint: &Endpoint,
    first: Bearer,
) -> Result<TokenCheck, Refusal> {
    if connection.spec.mode != Mode::Ferrvault {
        return Ok(TokenCheck::NotTold);
    }
    let mut answer = ctx.ferrvault.me(endpoint, &first).await;
    if let Err(error) = &answer
        && ctx.credentials.is_stale(connection, error)
    {
        let second = bearer(ctx, connection, endpoint).await?;
        answer = ctx.ferrvault.me(endpoint, &second).await;
    }
    match answer {
        Ok(()) => Ok(TokenCheck::Accepted),
        Err(error @ VaultError::Unauthorized { .. }) => Err(refused::by_identity(&error, connection)),
        Err(_) => Ok(TokenCheck::NotTold),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_that_is_refused_names_the_cluster_and_no_vault() {
        let connection = |credentials| {
            let mut spec = serde_json::json!({ "url": "https://vault.example.com" });
            spec.as_object_mut().unwrap().extend([credentials]);
            FerrVaultConnection::new("main", serde_json::from_value(spec).unwrap())
        };
        let id = "6f1c8a52-7d0e-4a55-9c52-3f6b1d2e4f60";
        let oidc = connection(("oidc".to_owned(), serde_json::json!({ "clusterID": id })));
        let token = connection(("tokenSecretRef".to_owned(), serde_json::json!({ "name": "t", "key": "k" })));
        for (case, connection, reason, expected, says) in [
            ("an unknown cluster", &oidc, Reason::VaultNotFound, Reason::AuthFailed, "correct spec.oidc.clusterID"),
            ("an identity refused", &oidc, Reason::AuthFailed, Reason::AuthFailed, "why; check spec.oidc.clusterID"),
            ("no answer", &oidc, Reason::Unreachable, Reason::Unreachable, "why"),
            ("no exchange", &token, Reason::VaultNotFound, Reason::VaultNotFound, "why"),
        ] {
            let refusal = exchange_refused(connection, Refusal::new(reason, "why"));
            assert_eq!(refusal.reason, expected, "{case}");
            assert!(refusal.message.contains(says), "{case}: {}", refusal.message);
        }
    }
}
