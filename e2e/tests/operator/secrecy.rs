//! No value and no token is said anywhere: not in a log, an event, a status or a metric, whatever went wrong in this run.

use std::rc::Rc;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::cluster::Cluster;
use ferrvault_e2e::objects::{self, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::register::{apart, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    let mut all = scenarios![apart: nothing_is_said_at_the_level_of_debug_either];
    all.push(Scenario::new("secrecy::nothing_that_was_used_in_this_run_was_said", nothing_was_said).last());
    all
}

/// Everything that could tempt an operator to quote what it holds.
async fn go_wrong(scene: &Scene) {
    let cluster = &scene.cluster;
    let token = scene.connect().await;
    scene.workload("Deployment", "web").await;
    let value = fresh("value");
    let json_value = format!(r#"{{"broken": "{}"#, fresh("json"));
    scene.set(&[("K", &value), ("J", &json_value)]).await;
    scene.resource("shop", json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    scene.synced("shop").await;
    let edit = async |spec| drop(scene.edit::<FerrVaultSecret>("shop", json!({"spec": spec})).await);
    for (spec, reason) in [
        (json!({"transforms": [{"type": "base64Decode"}]}), "TransformError"),
        (json!({"transforms": [{"type": "jsonExpand", "key": "J"}]}), "TransformError"),
        (json!({"transforms": [{"type": "prefix", "value": "not a key "}]}), "SecretWriteFailed"),
    ] {
        edit(spec).await;
        scene.until_condition("shop", "Ready", "False", reason).await;
    }
    edit(json!({"transforms": null})).await;
    scene.synced("shop").await;
    // A server that repeats the token it was given, in words and in a header's place.
    let echo = json!({"error": format!("the token {} is not known", token.token)}).to_string();
    for (status, reason) in [(500, "Unreachable"), (418, "InvalidConnection"), (401, "AuthFailed")] {
        cluster.dev.spoil(&scene.name, json!({"kind": "respond", "status": status, "body": echo})).await;
        // Any edit makes a pass due at once, also after a refused token.
        edit(json!({"selector": {"names": ["K"]}})).await;
        scene
            .until_it("shop", reason, |now: &FerrVaultSecret| {
                let ready = objects::condition(objects::conditions(now), "Ready").unwrap();
                if ready.reason == reason { Ok(()) } else { Err(ready.reason.clone()) }
            })
            .await;
        cluster.dev.heal(&scene.name).await;
        edit(json!({"selector": null})).await;
        scene.synced("shop").await;
    }
    // A token Secret whose content is no token.
    scene.put_token(&format!("two words: {}", fresh("token"))).await;
    scene.until_condition("shop", "Ready", "False", "TokenUnreadable").await;
    scene.put_token(&token.token).await;
    scene.synced("shop").await;
    scene.edit::<Secret>("shop", json!({"stringData": {"K": fresh("by-hand")}})).await;
    let next = fresh("next");
    scene.set(&[("K", &next)]).await;
    scene.passes("shop", 2).await;
}

async fn nothing_is_said_at_the_level_of_debug_either(own: &ferrvault_e2e::own::Own) {
    let mut release = own.release.clone();
    let pod = release.deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    let args = pod.containers[0].args.as_mut().unwrap();
    args.extend(["--log-level=trace".to_owned(), "--log-format=json".to_owned()]);
    let cluster = &own.scene.cluster;
    let operator = cluster.start_operator(&release, "a").await;
    own.scene.log(operator.process().log());
    operator.ready().await.unwrap();
    go_wrong(&own.scene).await;
    let log = std::fs::read_to_string(operator.process().log()).unwrap();
    assert!(log.lines().count() > 20 && log.contains("\"level\":\"DEBUG\""), "{log}");
    assert_eq!(cluster.canaries.found_in(&log), None);
    assert_eq!(cluster.canaries.found_in(&operator.metrics().await.unwrap()), None);
}

async fn nothing_was_said(world: Rc<World>) {
    let installed = world.installed().await;
    let scene = Scene::new(&installed.cluster, "secrecy").await;
    scene.log(installed.operator.process().log());
    go_wrong(&scene).await;
    let page = installed.operator.metrics().await.unwrap();
    assert!(page.contains("ferrvault_secret_sync_duration_seconds_count"), "{page}");
    assert_eq!(installed.cluster.canaries.found_in(&page), None, "in the metrics");
    let clusters = [Some(Rc::clone(&installed.cluster)), world.apart_if_started()];
    for cluster in clusters.into_iter().flatten() {
        look_through(&cluster).await;
    }
    // That something would have been found if it were there: a Secret holds it.
    let secrets = all::<Secret>(&installed.cluster).await;
    assert!(installed.cluster.canaries.found_in(&secrets).is_some());
    scene.close().await;
}

async fn look_through(cluster: &Cluster) {
    assert!(cluster.canaries.count() > 0);
    for (what, text) in [
        ("events", all::<Event>(cluster).await),
        ("resources", all::<FerrVaultSecret>(cluster).await),
        ("connections", all::<FerrVaultConnection>(cluster).await),
        ("deployments", all::<Deployment>(cluster).await),
        ("leases", all::<Lease>(cluster).await),
    ] {
        assert_eq!(cluster.canaries.found_in(&text), None, "in {what}");
    }
    let logs = cluster.logs();
    assert!(!logs.is_empty());
    for log in logs {
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(cluster.canaries.found_in(&text), None, "in {}", log.display());
    }
}

/// Every object of a kind, as text.
async fn all<K>(cluster: &Cluster) -> String
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let objects = Api::<K>::all(cluster.client.clone()).list(&ListParams::default()).await.unwrap();
    assert!(!objects.items.is_empty());
    serde_json::to_string_pretty(&objects).unwrap()
}
