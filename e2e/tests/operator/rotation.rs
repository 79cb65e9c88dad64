//! The story of the demo and its neighbours: a value reaches its Secret, and what uses it restarts once per rotation.

use ferrvault_api::{FerrVaultConnection, condition};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use serde_json::json;

use crate::register::{by_default, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    scenarios![by_default:
        a_rotation_restarts_each_kind_of_workload_once,
        in_mode_cloud_too,
    ]
}

const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

async fn a_rotation_restarts_each_kind_of_workload_once(scene: &Scene) {
    scene.connect().await;
    scene.until_connection(objects::CONNECTION, "True", "Reachable").await;
    rotate(scene, json!({})).await;
}

async fn in_mode_cloud_too(scene: &Scene) {
    let dev = &scene.cluster.dev;
    let organization = format!("org of {}", scene.name);
    let vault = dev.vault_in(&organization, "a/b", &scene.name).await;
    let token = dev.organization_token(&organization).await;
    scene.put_token(&token.token).await;
    let mut connection = objects::connection(dev.url());
    objects::merge(&mut connection, json!({"spec": {"mode": "cloud", "organization": organization}}));
    scene.create::<FerrVaultConnection>(connection).await;
    scene.use_vault(&vault);
    rotate(scene, json!({"project": "a/b"})).await;
    let asked = dev.asked(0).await;
    let mut reveals = asked
        .iter()
        .filter(|asked| asked.route.starts_with("/api/v1/orgs/") && asked.vault.as_ref() == Some(&scene.name));
    assert!(reveals.clone().count() > 0);
    assert!(reveals.all(|asked| asked.namespace.as_ref() == Some(&scene.name)), "the namespace is told with each call");
}

async fn rotate(scene: &Scene, spec: serde_json::Value) {
    for kind in KINDS {
        scene.workload(kind, "web").await;
    }
    let (user, first) = (fresh("user"), fresh("first"));
    scene.set(&[("DB_USER", &user), ("DB_PASSWORD", &first)]).await;
    let mut spec = spec;
    objects::merge(
        &mut spec,
        json!({"target": {"name": "db"}, "rolloutRestart": KINDS.map(|kind| restart(kind, "web"))}),
    );
    scene.resource("shop", spec).await;
    let resource = scene.synced("shop").await;
    let before =
        scene.target("db", &resource, &[("DB_USER", user.as_bytes()), ("DB_PASSWORD", first.as_bytes())]).await;
    scene.passes("shop", 3).await;
    for kind in KINDS {
        assert_eq!(scene.restarts(kind, "web").await.0, 0, "{kind}: nothing changed");
    }

    let mut versions = vec![before];
    // There and back: the same content once more is a change like any other.
    for (round, value) in [fresh("second"), first].iter().enumerate() {
        scene.set(&[("DB_PASSWORD", value)]).await;
        let held =
            scene.target("db", &resource, &[("DB_USER", user.as_bytes()), ("DB_PASSWORD", value.as_bytes())]).await;
        assert!(!versions.contains(&held), "{held} was a version before: {versions:?}");
        for kind in KINDS {
            scene.restarted(kind, "web", round + 1, &resource, &held).await;
        }
        let now = scene.until_condition("shop", condition::ROLLOUT_RESTARTED, "True", "Restarted").await;
        let now = if now.status.as_ref().unwrap().last_rollout_hash.as_deref() == Some(&held) {
            now
        } else {
            scene.passes("shop", 1).await
        };
        let status = now.status.unwrap();
        assert_eq!(status.last_rollout_hash.as_deref(), Some(&*held));
        assert_eq!(status.content_hash.as_deref(), Some(&*held));
        assert_eq!(status.synced_keys, ["DB_PASSWORD", "DB_USER"]);
        assert!(status.rollouts.iter().all(|entry| entry.hash == held), "{:?}", status.rollouts);
        scene.passes("shop", 3).await;
        for kind in KINDS {
            assert_eq!(scene.restarts(kind, "web").await.0, round + 1, "{kind}: restarted once per rotation");
        }
        versions.push(held);
    }
}
