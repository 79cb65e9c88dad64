//! What a check that failed means to the connection: what is wrong, then which field of it to change. The vault client tells
//! what FerrVault said; it knows neither resources nor fields.
//!
//! Never a token.

use ferrvault_api::FerrVaultConnection;
use ferrvault_core::refusal::Refusal;
use ferrvault_vault::VaultError;

use crate::ferrvault;

/// FerrVault did not say that it is well. The question carries no token and names no vault, so whatever is wrong is where it
/// was sent to, or lies on the way.
pub(super) fn by_health(error: &VaultError) -> Refusal {
    let mut refusal = ferrvault::refusal(error, "/health");
    match error {
        VaultError::NotFound { upstream } => {
            refusal.message = format!(
                "/health: not found (404{upstream}); correct spec.url: FerrVault is not at this path, or not at this host and port"
            );
        }
        VaultError::Unauthorized { upstream } => refusal.message = guarded(401, &upstream.to_string()),
        VaultError::Forbidden { upstream } => refusal.message = guarded(403, &upstream.to_string()),
        VaultError::Unreachable { why } => {
            refusal.message = format!(
                "/health: FerrVault cannot be reached: {why}; correct host and port of spec.url, or look at the cluster's \
                 DNS and network policies"
            );
        }
        VaultError::TimedOut { .. } => refusal.message.push_str(", and host and port of spec.url"),
        _ => {}
    }
    refusal
}

fn guarded(status: u16, upstream: &str) -> String {
    format!(
        "/health: refused ({status}{upstream}) although it takes no token; correct spec.url, or let the operator through \
         what guards FerrVault there"
    )
}

/// FerrVault does not accept the token of `connection`.
pub(super) fn by_identity(error: &VaultError, connection: &FerrVaultConnection) -> Refusal {
    match &connection.spec.token_secret_ref {
        Some(reference) => ferrvault::refusal(error, &format!("Secret {:?}, key {:?}", reference.name, reference.key)),
        None => ferrvault::refusal(error, "the token won for the pod's identity"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ferrvault_api::Reason;
    use ferrvault_vault::UpstreamText;

    use super::*;

    #[test]
    fn what_is_wrong_with_the_way_to_ferrvault_names_the_field_to_correct() {
        let upstream = UpstreamText::default;
        for (error, reason, message) in [
            (
                VaultError::NotFound { upstream: upstream() },
                Reason::VaultNotFound,
                "/health: not found (404); correct spec.url: FerrVault is not at this path, or not at this host and port",
            ),
            (
                VaultError::Unauthorized { upstream: upstream() },
                Reason::AuthFailed,
                "/health: refused (401) although it takes no token; correct spec.url, or let the operator through what \
                 guards FerrVault there",
            ),
            (
                VaultError::Forbidden { upstream: upstream() },
                Reason::AuthFailed,
                "/health: refused (403) although it takes no token; correct spec.url, or let the operator through what \
                 guards FerrVault there",
            ),
            (
                VaultError::Unreachable { why: "the host name cannot be resolved".to_owned() },
                Reason::Unreachable,
                "/health: FerrVault cannot be reached: the host name cannot be resolved; correct host and port of \
                 spec.url, or look at the cluster's DNS and network policies",
            ),
            (
                VaultError::TimedOut { limit: Duration::from_secs(10) },
                Reason::Unreachable,
                "/health: FerrVault did not answer completely within 10 s; check its load and the network in between, \
                 and host and port of spec.url",
            ),
            (
                VaultError::ServerError { status: 503, upstream: upstream() },
                Reason::Unreachable,
                "/health: FerrVault or a proxy before it is failing (503); the call is worth repeating later",
            ),
        ] {
            let refusal = by_health(&error);
            assert_eq!((refusal.reason, refusal.message.as_str()), (reason, message));
        }
    }

    #[test]
    fn a_token_that_is_not_accepted_is_named_by_where_it_is_kept() {
        let connection = |credentials| {
            let mut spec = serde_json::json!({ "url": "https://vault.example.com" });
            spec.as_object_mut().unwrap().extend([credentials]);
            FerrVaultConnection::new("main", serde_json::from_value(spec).unwrap())
        };
        for (credentials, start) in [
            (("tokenSecretRef", serde_json::json!({ "name": "t", "key": "k" })), "Secret \"t\", key \"k\": FerrVault "),
            (("oidc", serde_json::json!({ "clusterID": "c" })), "the token won for the pod's identity: FerrVault "),
        ] {
            let error = VaultError::Unauthorized { upstream: UpstreamText::default() };
            let refusal = by_identity(&error, &connection((credentials.0.to_owned(), credentials.1)));
            assert_eq!(refusal.reason, Reason::AuthFailed);
            assert!(refusal.message.starts_with(start), "{}", refusal.message);
        }
    }
}
