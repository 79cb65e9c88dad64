//! FerrVault as the passes see it: a few questions, each answered or refused within its own bound.
//!
//! A trait, so that a simulation can answer in place of the network while the passes stay the same; the real thing is
//! [`Http`]. What a failure means to a resource is decided here and nowhere else.

mod credentials;
mod held;
mod http;
mod jwt;
mod listener;
mod reads;

use ferrvault_api::connection::Mode;
use ferrvault_api::{FerrVaultConnectionSpec, FerrVaultSecret, Reason};
use ferrvault_core::content::Answer;
use ferrvault_core::refusal::Refusal;
use ferrvault_vault::{Bearer, BearerGrant, Endpoint, RevealRequest, Scope, VaultError};
use futures::future::BoxFuture;

pub use self::credentials::{Credentials, OidcLimits};
pub(crate) use self::held::{nothing_is_left, token_was_refused, until_the_end};
pub use self::http::Http;
pub(crate) use self::listener::Listener;

/// The questions a pass asks.
pub trait FerrVault: Send + Sync + 'static {
    /// Asks for values.
    fn reveal<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        bearer: &'a Bearer,
        request: &'a RevealRequest,
    ) -> BoxFuture<'a, Result<Answer, VaultError>>;

    /// Asks whether it is well. No token is sent.
    fn health<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>>;

    /// Asks whose token it is, which it does not tell of one that it does not accept. In a script that has no answer
    /// ready every token is somebody's.
    fn me<'a>(&'a self, _endpoint: &'a Endpoint, _bearer: &'a Bearer) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Exchanges the JWT of a service account for a bearer.
    fn exchange<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        cluster_id: &'a str,
        jwt: &'a Bearer,
    ) -> BoxFuture<'a, Result<BearerGrant, VaultError>>;
}

/// The address of a connection, or why it is not used.
pub fn endpoint(spec: &FerrVaultConnectionSpec) -> Result<Endpoint, Refusal> {
    let invalid = |message: String| Refusal::new(Reason::InvalidConnection, message);
    let endpoint = Endpoint::parse(&spec.url).map_err(|error| invalid(format!("the connection's url: {error}")))?;
    let allowed = spec.allow_insecure_http == Some(true);
    if endpoint.is_plain_http() && !endpoint.host_is_local() && !allowed {
        return Err(invalid(
            "the connection's url is plain http to a host outside the cluster, which would send the token unencrypted; \
             use https, or set allowInsecureHTTP to true if the network is trusted"
                .to_owned(),
        ));
    }
    Ok(endpoint)
}

/// The question for the values that `resource` wants.
pub fn reveal_request(resource: &FerrVaultSecret, spec: &FerrVaultConnectionSpec) -> RevealRequest {
    let scope = match spec.mode {
        Mode::Ferrvault => Scope::FerrVault,
        Mode::Cloud => Scope::Cloud {
            organization: spec.organization.clone().unwrap_or_default(),
            project: resource.spec.project.clone().unwrap_or_default(),
            namespace: resource.metadata.namespace.clone().unwrap_or_default(),
        },
    };
    // A token of a Secret is bound to one vault. The operator's own identity is the same in every namespace, so FerrVault is
    // told for which of them it asks.
    let namespace = spec.oidc.as_ref().and_then(|_| resource.metadata.namespace.clone());
    RevealRequest { scope, vault: resource.spec.vault.clone(), names: resource.wanted_names().to_vec(), namespace }
}

/// What a failed call means to the resource or connection that made it.
pub fn refusal(error: &VaultError, asked_for: &str) -> Refusal {
    let message = format!("{asked_for}: {error}");
    let reason = match error {
        VaultError::Unauthorized { .. } | VaultError::Forbidden { .. } => Reason::AuthFailed,
        VaultError::NotFound { .. } => Reason::VaultNotFound,
        VaultError::Throttled { after, .. } => return Refusal::new(Reason::RateLimited, message).after(*after),
        // The server is there and says that the question is wrong: only a person can change that.
        VaultError::Rejected { status: 408, .. } => Reason::Unreachable,
        VaultError::Rejected { .. } | VaultError::RedirectRefused { .. } | VaultError::AddressRefused => {
            Reason::InvalidConnection
        }
        VaultError::UnencodableKey { .. }
        | VaultError::UnencodableName { .. }
        | VaultError::UnencodableValue { .. }
        | VaultError::TooManyNames { .. }
        | VaultError::TooLarge { .. } => Reason::InvalidSpec,
        // Nothing is wrong with FerrVault: this process did not come to the end of its own work in time.
        VaultError::NoRoom => Reason::ReconcileTimeout,
        VaultError::ServerError { .. }
        | VaultError::RefusedByTls { .. }
        | VaultError::Unreachable { .. }
        | VaultError::TimedOut { .. }
        | VaultError::BrokenAnswer { .. } => Reason::Unreachable,
    };
    Refusal::new(reason, message)
}

#[cfg(test)]
mod tests {
    use ferrvault_api::FerrVaultConnectionSpec;

    use super::*;

    fn spec(url: &str, allow: Option<bool>) -> FerrVaultConnectionSpec {
        FerrVaultConnectionSpec {
            url: url.to_owned(),
            mode: Mode::Ferrvault,
            organization: None,
            token_secret_ref: None,
            oidc: None,
            allow_insecure_http: allow,
        }
    }

    #[test]
    fn plain_http_leaves_the_cluster_only_when_told_to() {
        let cases = [
            ("https anywhere", "https://vault.example.com", None, true),
            ("http to loopback", "http://127.0.0.1:8200", None, true),
            ("http to a service", "http://vault.tools.svc:80/base/", None, true),
            ("http to a service, long form", "http://vault.tools.svc.cluster.local", None, true),
            ("http elsewhere", "http://vault.example.com", None, false),
            ("http elsewhere, refused in so many words", "http://vault.example.com", Some(false), false),
            ("http elsewhere, allowed", "http://vault.example.com", Some(true), true),
            ("credentials in the URL", "https://me:pw@vault.example.com", None, false),
            ("no URL", "vault.example.com", None, false),
        ];
        for (case, url, allow, accepted) in cases {
            let found = endpoint(&spec(url, allow));
            assert_eq!(found.is_ok(), accepted, "{case}");
            if let Err(refusal) = found {
                assert_eq!(refusal.reason, Reason::InvalidConnection, "{case}");
                assert!(!refusal.message.contains("pw"), "{case}: {}", refusal.message);
            }
        }
    }
}
