//! The story of the demo and its neighbours: a value reaches its Secret, and what uses it restarts once per rotation.

use std::collections::BTreeSet;
use std::rc::Rc;

use ferrvault_api::{FerrVaultConnection, condition};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::cluster::Cluster;
use ferrvault_e2e::objects::{self, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::json;

use crate::register::{by_default, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    let mut all = vec![Scenario::new("rotation::pods_are_replaced_once", async |_: Rc<World>| {
        Box::pin(pods_are_replaced_once()).await;
    })];
    all.extend(scenarios![by_default:
        a_rotation_restarts_each_kind_of_workload_once,
        in_mode_cloud_too,
    ]);
    all
}

/// The pods themselves, on a cluster that runs some: a Deployment's replica sets tell how often they were replaced.
async fn pods_are_replaced_once() {
    const PODS: usize = 3;
    let cluster = Rc::new(Cluster::full().await);
    let release = cluster.install("ferrvault-operator", json!({})).await;
    let operator = cluster.start_operator(&release, "a").await;
    operator.ready().await.unwrap();
    let scene = Scene::new(&cluster, "pods").await;
    scene.log(operator.process().log());
    scene.connect().await;
    scene.set(&[("K", &fresh("first"))]).await;
    scene.resource("shop", json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    let resource = scene.synced("shop").await;
    let mut web = objects::workload("Deployment", "web");
    web["spec"]["replicas"] = json!(PODS);
    scene.create::<Deployment>(web).await;
    let running = async |what: &str| {
        scene
            .until(what, async || {
                let status = scene.get::<Deployment>("web").await;
                let (generation, status) = (status.metadata.generation, status.status.unwrap_or_default());
                let counts = [status.replicas, status.updated_replicas, status.ready_replicas];
                let complete = status.observed_generation == generation && counts == [i32::try_from(PODS).ok(); 3];
                let pods = scene.api::<Pod>().list(&ListParams::default()).await.unwrap();
                let staying = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
                let uids: BTreeSet<String> = staying.filter_map(|pod| pod.metadata.uid).collect();
                if complete && uids.len() == PODS { Ok(uids) } else { Err(format!("{counts:?}, {} pods", uids.len())) }
            })
            .await
    };
    let before = running("three pods run").await;
    let next = fresh("next");
    scene.set(&[("K", &next)]).await;
    let version = scene.target("shop", &resource, &[("K", next.as_bytes())]).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;
    let after = running("three other pods run").await;
    assert!(before.is_disjoint(&after), "each pod is another one");
    scene.passes("shop", 3).await;
    assert_eq!(running("they still run").await, after);
    let sets = scene.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
    assert_eq!(sets.items.len(), 2, "one before and one after");
    operator.stop().await.unwrap();
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
