//! Each reason that a resource's Ready can have, brought about for real on a resource that was in order before: the reason
//! appears with words that help, the target keeps its content, and when the cause is gone all is well again.
//!
//! Two reasons need an operator of their own: see `own_operator`.

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, condition};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self, CONNECTION, TOKEN, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::register::by_default;

/// Changes something in a scene where resource `shop` keeps Secret `db` with the keys `A` and `B`.
type Change = for<'s> fn(&'s Scene) -> LocalBoxFuture<'s, ()>;

struct Case {
    name: &'static str,
    breaks: Change,
    /// Status and reason of Ready afterwards.
    ready: (&'static str, &'static str),
    /// What its message says, besides not saying any value.
    says: &'static [&'static str],
    heals: Change,
}

/// An async block as a [`Change`].
macro_rules! change {
    (|$scene:ident| $act:expr) => {
        |$scene| {
            Box::pin(async move {
                $act;
            })
        }
    };
}

/// A [`Change`] of the resource's spec.
macro_rules! spec {
    ($($patch:tt)+) => {
        change!(|scene| scene.edit::<FerrVaultSecret>("shop", json!({"spec": $($patch)+})).await)
    };
}

/// A [`Change`] of the connection's spec.
macro_rules! connection_spec {
    ($($patch:tt)+) => {
        change!(|scene| scene.edit::<FerrVaultConnection>(CONNECTION, json!({"spec": $($patch)+})).await)
    };
}

/// A [`Change`] by the dev server's rules.
macro_rules! spoil {
    ($($action:tt)+) => {
        change!(|scene| scene.cluster.dev.spoil(&scene.name, json!($($action)+)).await)
    };
}

const HEAL: Change = change!(|scene| scene.cluster.dev.heal(&scene.name).await);

/// A refused token is tried again after five minutes, and at once when the token's Secret changes.
const HEAL_AND_RENEW_TOKEN: Change = change!(|scene| {
    scene.cluster.dev.heal(&scene.name).await;
    renew_token(scene).await;
});

async fn renew_token(scene: &Scene) {
    let token = scene.cluster.dev.token(&scene.vault()).await;
    scene.put_token(&token.token).await;
}

fn cases() -> Vec<Case> {
    let case = |name, breaks, ready, says, heals| Case { name, breaks, ready, says, heals };
    let no = |reason| ("False", reason);
    let still = |reason| ("True", reason);
    vec![
        // The answer.
        case(
            "a_wanted_key_is_missing",
            change!(|scene| scene.unset("B").await),
            no("MissingKeys"),
            &["does not have: B", "keeps its last content"],
            change!(|scene| scene.set(&[("B", "back again")]).await),
        ),
        case(
            "nothing_is_left_of_the_vault",
            change!(|scene| {
                scene.unset("A").await;
                scene.unset("B").await;
                scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"selector": null}})).await;
            }),
            no("EmptyAnswer"),
            &["gave no key at all", "keeps its last content"],
            change!(|scene| scene.set(&[("A", "back again")]).await),
        ),
        // The connection.
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
        // The token.
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
        // FerrVault.
        case(
            "ferrvault_says_503",
            spoil!({"kind": "respond", "status": 503}),
            still("Unreachable"),
            &["is failing (503", "last synced at"],
            HEAL,
        ),
        case(
            "ferrvault_hangs_up",
            spoil!({"kind": "reset"}),
            still("Unreachable"),
            &["cannot be reached", "last synced at"],
            HEAL,
        ),
        case(
            "ferrvault_hangs_up_in_its_answer",
            spoil!({"kind": "reset_body"}),
            still("Unreachable"),
            &["last synced at"],
            HEAL,
        ),
        case(
            "ferrvault_never_answers",
            spoil!({"kind": "stall"}),
            still("Unreachable"),
            &["did not answer completely within 10", "last synced at"],
            HEAL,
        ),
        case(
            "the_answer_is_no_json",
            spoil!({"kind": "nonsense"}),
            still("Unreachable"),
            &["is not understood", "last synced at"],
            HEAL,
        ),
        case(
            "the_answer_is_cut_short",
            spoil!({"kind": "truncated"}),
            still("Unreachable"),
            &["is not understood", "last synced at"],
            HEAL,
        ),
        case(
            "the_answer_has_no_body",
            spoil!({"kind": "empty"}),
            still("Unreachable"),
            &["is not understood", "last synced at"],
            HEAL,
        ),
        case(
            "the_answer_is_too_large",
            spoil!({"kind": "big_body"}),
            no("InvalidSpec"),
            &["is larger than 4194304 bytes", "split the vault"],
            HEAL,
        ),
        case(
            "ferrvault_asks_for_fewer_calls",
            spoil!({"kind": "respond", "status": 429, "retry_after": 2}),
            still("RateLimited"),
            &["asks for fewer calls (429", "last synced at"],
            HEAL,
        ),
        case(
            "ferrvault_says_401",
            spoil!({"kind": "respond", "status": 401}),
            no("AuthFailed"),
            &["(401"],
            HEAL_AND_RENEW_TOKEN,
        ),
        case(
            "ferrvault_says_403",
            spoil!({"kind": "respond", "status": 403}),
            no("AuthFailed"),
            &["(403"],
            HEAL_AND_RENEW_TOKEN,
        ),
        case(
            "ferrvault_says_418",
            spoil!({"kind": "respond", "status": 418}),
            no("InvalidConnection"),
            &["rejects the call (418"],
            HEAL,
        ),
        // The resource.
        case(
            "the_target_type_grants_rights",
            spec!({"target": {"type": "kubernetes.io/service-account-token"}}),
            no("InvalidSpec"),
            &["spec.target.type kubernetes.io/service-account-token is refused"],
            spec!({"target": {"type": null}}),
        ),
        case(
            "the_target_type_is_another_than_before",
            spec!({"target": {"type": "example.com/other"}}),
            no("InvalidSpec"),
            &["does not let a type change", "set spec.target.type to Opaque"],
            spec!({"target": {"type": "Opaque"}}),
        ),
        case(
            "the_target_has_an_impossible_name",
            spec!({"target": {"name": "Not A Name"}}),
            no("InvalidSpec"),
            &["is no name for a Secret", "lower-case letters"],
            spec!({"target": {"name": "db"}}),
        ),
        case(
            "a_selector_name_is_empty",
            spec!({"selector": {"names": ["A", ""]}}),
            no("InvalidSpec"),
            &["spec.selector.names[1] is empty", "remove the entry"],
            spec!({"selector": {"names": ["A"]}}),
        ),
        // Transforms.
        case(
            "a_value_is_no_base64",
            spec!({"transforms": [{"type": "base64Decode", "keys": ["A"]}]}),
            no("TransformError"),
            &["transforms[0] (base64Decode)", r#"key "A""#, "neither standard nor URL-safe base64"],
            spec!({"transforms": null}),
        ),
        case(
            "a_value_is_no_json",
            spec!({"transforms": [{"type": "prefix", "value": "X_"}, {"type": "jsonExpand", "key": "X_A"}]}),
            no("TransformError"),
            &["transforms[1] (jsonExpand)", r#"key "X_A""#, "is not JSON"],
            spec!({"transforms": null}),
        ),
        case(
            "a_value_is_json_and_no_object",
            change!(|scene| {
                scene.set(&[("J", "[1, 2, 3, 4, 5]")]).await;
                scene
                    .edit::<FerrVaultSecret>(
                        "shop",
                        json!({"spec": {
                    "selector": {"names": ["J"]}, "transforms": [{"type": "jsonExpand", "key": "J"}]}}),
                    )
                    .await
            }),
            no("TransformError"),
            &["transforms[0] (jsonExpand)", r#"key "J""#, "JSON but not an object"],
            spec!({"transforms": null, "selector": {"names": ["A", "B"]}}),
        ),
        case(
            "two_keys_become_one",
            spec!({"transforms": [{"type": "rename", "from": "A", "to": "B"}]}),
            no("TransformError"),
            &["transforms[0] (rename)", "would be written twice; rename one of the two"],
            spec!({"transforms": null}),
        ),
        // The target.
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

async fn back_to_dev(scene: &Scene, path: &str) {
    let url = format!("{}{path}", scene.cluster.dev.url());
    scene.edit::<FerrVaultConnection>(CONNECTION, json!({"spec": {"url": url}})).await;
}

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    let scenario = |case: Case| {
        let name = format!("reasons::{}", case.name);
        by_default(name, move |scene| Box::pin(play(scene, case)))
    };
    cases().into_iter().map(scenario).collect()
}

async fn play(scene: &Scene, case: Case) {
    scene.connect().await;
    scene.workload("Deployment", "web").await;
    let (a, b) = (fresh("a"), fresh("b"));
    scene.set(&[("A", &a), ("B", &b)]).await;
    let spec = json!({"target": {"name": "db"}, "selector": {"names": ["A", "B"]},
                      "rolloutRestart": [restart("Deployment", "web")]});
    scene.resource("shop", spec).await;
    let resource = scene.synced("shop").await;
    let wanted: [(&str, &[u8]); 2] = [("A", a.as_bytes()), ("B", b.as_bytes())];
    let version = scene.target("db", &resource, &wanted).await;
    let synced_generation = resource.status.as_ref().unwrap().observed_generation;

    (case.breaks)(scene).await;
    let (status, reason) = case.ready;
    let broken = scene.until_condition("shop", condition::READY, status, reason).await;
    let ready = objects::condition(objects::conditions(&broken), condition::READY).unwrap();
    for words in case.says {
        assert!(ready.message.contains(words), "{words:?} is not in: {}", ready.message);
    }
    assert_eq!(scene.cluster.canaries.found_in(&ready.message), None);
    if status == "False" && resource.metadata.generation != broken.metadata.generation {
        let observed = broken.status.as_ref().unwrap().observed_generation;
        assert!(observed <= broken.metadata.generation && observed >= synced_generation);
        assert_ne!(observed, broken.metadata.generation, "a failure never advances observedGeneration");
    }
    if reason == "MissingKeys" {
        assert_eq!(broken.status.as_ref().unwrap().missing_keys, ["B"]);
    }
    // Nothing was lost, nothing restarted, and what is somebody else's is as it was.
    assert_eq!(scene.target("db", &resource, &wanted).await, version);
    assert_eq!(scene.restarts("Deployment", "web").await.0, 0);
    if let Some(theirs) = scene.find::<Secret>("theirs").await {
        ferrvault_e2e::scene::same_data(&theirs, &[("THEIRS", b"not to be touched")]).unwrap();
    }

    (case.heals)(scene).await;
    let healed = scene.synced("shop").await;
    assert!(healed.status.unwrap().missing_keys.is_empty());
}
