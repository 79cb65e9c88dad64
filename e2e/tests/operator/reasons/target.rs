//! The target, and who else has a say in it.

use ferrvault_api::FerrVaultSecret;
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self};
use ferrvault_e2e::scene::Scene;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::{Case, change, spec};

pub(super) fn cases() -> Vec<Case> {
    let case = |name, breaks, ready, says, heals| Case { name, breaks, ready, says, heals };
    let no = |reason| ("False", reason);
    vec![
        case(
            "kubernetes_refuses_the_key",
            change!(|scene| {
                scene.set(&[("not a key", "some value or other")]).await;
                scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"selector": null}})).await
            }),
            no("SecretWriteFailed"),
            &[r#""not a key""#, "transforms"],
            spec!({"transforms": [{"type": "rename", "from": "not a key", "to": "a.key"}]}),
        ),
        case(
            "the_content_is_too_large",
            change!(|scene| {
                let half = "x".repeat(600 * 1024);
                scene.set(&[("A", &half), ("B", &half)]).await;
            }),
            no("SecretWriteFailed"),
            &["1228800", "1048576"],
            change!(|scene| scene.set(&[("A", "small again"), ("B", "small again")]).await),
        ),
        case(
            "a_policy_refuses_the_write",
            change!(|scene| {
                scene.edit::<Secret>("db", json!({"metadata": {"labels": {objects::SEALED: "true"}}})).await;
                scene.set(&[("A", &fresh("sealed"))]).await;
            }),
            no("SecretWriteFailed"),
            &["writing Secret db"],
            change!(|scene| scene.edit::<Secret>("db", json!({"metadata": {"labels": {objects::SEALED: null}}})).await),
        ),
        case(
            "a_policy_refuses_a_new_target",
            spec!({"target": {"name": "sealed-db"}}),
            no("SecretWriteFailed"),
            &["writing Secret sealed-db"],
            spec!({"target": {"name": "db"}}),
        ),
        case(
            "the_target_is_nobodys",
            change!(|scene| {
                foreign(scene, "theirs", json!({})).await;
                scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"target": {"name": "theirs"}}})).await
            }),
            no("TargetConflict"),
            &[
                r#"Secret "theirs" exists and is not this operator's"#,
                "kubectl annotate secret theirs ferrvault.com/managed-by=ferrvault-operator",
            ],
            // As the message says.
            change!(|scene| scene
                .edit::<Secret>(
                    "theirs",
                    json!({"metadata": {"annotations":
                {"ferrvault.com/managed-by": "ferrvault-operator"}}})
                )
                .await),
        ),
        case(
            "the_target_is_somebody_elses",
            change!(|scene| {
                let owner = scene.create::<ConfigMap>(json!({"metadata": {"name": "owner"}})).await;
                let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid, "controller": true}]);
                foreign(scene, "theirs", json!({"ownerReferences": owners})).await;
                scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"target": {"name": "theirs"}}})).await
            }),
            no("TargetConflict"),
            &[r#"Secret "theirs" belongs to ConfigMap "owner" and is left alone"#],
            spec!({"target": {"name": "db"}}),
        ),
    ]
}

/// A Secret of somebody else's.
async fn foreign(scene: &Scene, name: &str, metadata: Value) {
    let mut secret = json!({"metadata": {"name": name}, "stringData": {"THEIRS": "not to be touched"}});
    objects::merge(&mut secret["metadata"], metadata);
    scene.create::<Secret>(secret).await;
}
