//! The connection and its token.

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_e2e::objects::{CONNECTION, TOKEN};
use ferrvault_e2e::scene::Scene;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::{Case, change, connection_spec, renew_token, spec};

pub(super) fn cases() -> Vec<Case> {
    let case = |name, breaks, ready, says, heals| Case { name, breaks, ready, says, heals };
    let no = |reason| ("False", reason);
    vec![
        case(
            "the_connection_is_unknown",
            spec!({"connectionRef": {"name": "nowhere"}}),
            no("ConnectionNotFound"),
            &[r#"no FerrVaultConnection "nowhere" in namespace"#, "create it or correct spec.connectionRef"],
            spec!({"connectionRef": {"name": CONNECTION}}),
        ),
        case(
            "plain_http_leaves_the_cluster",
            connection_spec!({"url": "http://vault.example.com"}),
            no("InvalidConnection"),
            &["plain http", "use https, or set allowInsecureHTTP"],
            change!(|scene| back_to_dev(scene, "").await),
        ),
        case(
            "the_url_holds_credentials",
            connection_spec!({"url": "https://me:canary-in-url@vault.example.com"}),
            no("InvalidConnection"),
            &["contains a user name or password", "put the token into a Secret"],
            change!(|scene| back_to_dev(scene, "").await),
        ),
        case(
            "the_url_has_a_path_that_leads_nowhere",
            change!(|scene| back_to_dev(scene, "/prefix/").await),
            no("VaultNotFound"),
            &["(404", "the URL's path"],
            change!(|scene| back_to_dev(scene, "/").await),
        ),
        case(
            "mode_cloud_lacks_the_project",
            connection_spec!({"mode": "cloud", "organization": "default"}),
            no("MissingCloudScope"),
            &["spec.project is required"],
            spec!({"project": "default"}),
        ),
        case(
            "the_token_secret_is_deleted",
            change!(|scene| scene.delete::<Secret>(TOKEN).await),
            no("TokenUnreadable"),
            &[r#"no Secret "main-token" in namespace"#, "correct tokenSecretRef.name"],
            change!(|scene| renew_token(scene).await),
        ),
        case(
            "the_token_is_empty",
            change!(|scene| scene.put_token(" \n").await),
            no("TokenUnreadable"),
            &[r#"Secret "main-token", key "token""#, "empty"],
            change!(|scene| renew_token(scene).await),
        ),
        case(
            "the_token_is_under_another_key",
            connection_spec!({"tokenSecretRef": {"key": "tokne"}}),
            no("TokenKeyMissing"),
            &[r#"Secret "main-token" has no key "tokne""#, "correct tokenSecretRef.key"],
            connection_spec!({"tokenSecretRef": {"key": "token"}}),
        ),
        case(
            "the_token_is_unknown",
            change!(|scene| scene.put_token("fvsat_nobody_made_this_one").await),
            no("AuthFailed"),
            &["does not accept the token (401", "neither expired nor revoked"],
            change!(|scene| renew_token(scene).await),
        ),
        case(
            "the_token_is_for_another_vault",
            spec!({"vault": "of-somebody-else"}),
            no("AuthFailed"),
            &["may not do this (403", "made for this vault"],
            change!(|scene| {
                let vault = scene.name.clone();
                scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"vault": vault}})).await
            }),
        ),
        case(
            "there_is_no_such_vault",
            change!(|scene| {
                // A token that may read every vault, so that it is the vault that is missing and not the right.
                let token = scene.cluster.dev.organization_token("default").await;
                scene.put_token(&token.token).await;
                scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"vault": "no-such-vault"}})).await
            }),
            no("VaultNotFound"),
            &["no-such-vault", "(404"],
            change!(|scene| {
                let vault = scene.name.clone();
                scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"vault": vault}})).await
            }),
        ),
    ]
}

async fn back_to_dev(scene: &Scene, path: &str) {
    let url = format!("{}{path}", scene.cluster.dev.url());
    scene.edit::<FerrVaultConnection>(CONNECTION, json!({"spec": {"url": url}})).await;
}
