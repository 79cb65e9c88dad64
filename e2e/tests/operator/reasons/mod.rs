//! Each reason that a resource's Ready can have, brought about for real on a resource that was in order before: the reason
//! appears with words that help, the target keeps its content, and when the cause is gone all is well again.
//!
//! Two reasons need an operator of their own: `SecretReadFailed` is in `rights`, `ReconcileTimeout` in `oidc`.

mod credentials;
mod resource;
mod target;
mod upstream;

use ferrvault_api::condition;
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

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
use change;

/// A [`Change`] of the resource's spec.
macro_rules! spec {
    ($($patch:tt)+) => {
        change!(|scene| scene.edit::<FerrVaultSecret>("shop", json!({"spec": $($patch)+})).await)
    };
}
use spec;

/// A [`Change`] of the connection's spec.
macro_rules! connection_spec {
    ($($patch:tt)+) => {
        change!(|scene| scene.edit::<FerrVaultConnection>(CONNECTION, json!({"spec": $($patch)+})).await)
    };
}
use connection_spec;

/// A [`Change`] by the dev server's rules.
macro_rules! spoil {
    ($($action:tt)+) => {
        change!(|scene| scene.cluster.dev.spoil(&scene.name, json!($($action)+)).await)
    };
}
use spoil;

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

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    let scenario = |case: Case| {
        let name = format!("reasons::{}", case.name);
        by_default(name, move |scene| Box::pin(play(scene, case)))
    };
    let all = [upstream::cases(), credentials::cases(), resource::cases(), target::cases()];
    all.into_iter().flatten().map(scenario).collect()
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
