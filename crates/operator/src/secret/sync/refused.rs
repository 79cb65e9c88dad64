//! What a call that failed means to the resource: what is wrong, then what to change in it, in one voice whoever said no.
//!
//! Never a value, never a token.

use ferrvault_api::connection::Mode;
use ferrvault_api::{FerrVaultConnectionSpec, FerrVaultSecret, Reason};
use ferrvault_core::refusal::Refusal;
use ferrvault_vault::VaultError;

use crate::cluster::error::{CallError, Class};
use crate::ferrvault;

/// FerrVault did not give the values that `resource` wants.
pub(super) fn by_ferrvault(
    error: &VaultError,
    resource: &FerrVaultSecret,
    connection: &FerrVaultConnectionSpec,
) -> Refusal {
    let vault = &resource.spec.vault;
    let mut refusal = ferrvault::refusal(error, &format!("vault {vault:?}"));
    match error {
        VaultError::Forbidden { upstream } => {
            refusal.message = format!(
                "vault {vault:?}: the token may not do this (403{upstream}); correct spec.vault, or use a token that was \
                 made for this vault and may read it"
            );
        }
        VaultError::NotFound { upstream } if connection.mode == Mode::Cloud => {
            let named = |field: &Option<String>| field.clone().unwrap_or_default();
            refusal.message = format!(
                "vault {vault:?}: not found in project {:?} of organization {:?} (404{upstream}); correct spec.vault, \
                 spec.project, or spec.organization of the connection",
                named(&resource.spec.project),
                named(&connection.organization)
            );
        }
        VaultError::NotFound { upstream } => {
            refusal.message = format!(
                "vault {vault:?}: not found (404{upstream}); correct spec.vault, or the URL's path on the connection"
            );
        }
        _ => {}
    }
    refusal
}

/// The API server did not do what was `tried`.
pub(super) fn by_the_api_server(reason: Reason, tried: &str, error: &CallError) -> Refusal {
    let class = error.class();
    let remedy = match class {
        Class::User => "mend that; it is tried again until it works",
        _ => "it is tried again",
    };
    let refusal = Refusal::passing(reason, format!("{}; {remedy}", error.user_message_for(tried)));
    match class {
        Class::Throttled { after } => refusal.after(after),
        _ => refusal,
    }
}

#[cfg(test)]
mod tests {
    use ferrvault_vault::UpstreamText;

    use super::*;

    fn resource() -> FerrVaultSecret {
        let spec = serde_json::json!({ "connectionRef": { "name": "main" }, "vault": "prod", "project": "shop" });
        FerrVaultSecret::new("db", serde_json::from_value(spec).unwrap())
    }

    fn connection(mode: &str) -> FerrVaultConnectionSpec {
        let spec = serde_json::json!({ "url": "https://vault.example.com", "mode": mode, "organization": "acme" });
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn a_vault_that_is_not_to_be_had_says_which_field_to_correct() {
        let upstream = UpstreamText::default;
        for (error, mode, reason, message) in [
            (
                VaultError::Forbidden { upstream: upstream() },
                "ferrvault",
                Reason::AuthFailed,
                "vault \"prod\": the token may not do this (403); correct spec.vault, or use a token that was made for \
                 this vault and may read it",
            ),
            (
                VaultError::NotFound { upstream: upstream() },
                "ferrvault",
                Reason::VaultNotFound,
                "vault \"prod\": not found (404); correct spec.vault, or the URL's path on the connection",
            ),
            (
                VaultError::NotFound { upstream: upstream() },
                "cloud",
                Reason::VaultNotFound,
                "vault \"prod\": not found in project \"shop\" of organization \"acme\" (404); correct spec.vault, \
                 spec.project, or spec.organization of the connection",
            ),
        ] {
            let refusal = by_ferrvault(&error, &resource(), &connection(mode));
            assert_eq!((refusal.reason, refusal.message.as_str()), (reason, message));
        }
    }

    #[test]
    fn what_can_be_mended_is_told_apart_from_what_passes() {
        let forbidden = CallError::Forbidden { message: "cannot patch secrets in the namespace shop".to_owned() };
        let throttled = CallError::Throttled { after: None };
        for (error, message) in [
            (
                forbidden,
                "writing Secret db: forbidden: cannot patch secrets in the namespace shop; mend that; it is tried again \
                 until it works",
            ),
            (CallError::TimedOut, "writing Secret db: no answer within the deadline; it is tried again"),
            (throttled, "writing Secret db: the API server is throttling requests; it is tried again"),
        ] {
            let refusal = by_the_api_server(Reason::SecretWriteFailed, "writing Secret db", &error);
            assert_eq!(refusal.message, message);
        }
    }
}
