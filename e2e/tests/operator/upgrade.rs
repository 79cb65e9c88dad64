//! The day an operator is replaced: objects as the Go operator leaves them are taken over, and nothing restarts.

use std::rc::Rc;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, condition, marks};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::cluster::Cluster;
use ferrvault_e2e::eventually::SOON;
use ferrvault_e2e::objects::{self, CONNECTION, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, CustomResourceExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use xtask::repository;

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        Scenario::new(
            "upgrade::from_the_go_operator_nothing_restarts_and_no_secret_is_written",
            async |_: Rc<World>| {
                Box::pin(from_go()).await;
            },
        ),
        Scenario::new("upgrade::without_definitions_it_waits_and_says_which", async |_: Rc<World>| {
            Box::pin(without_definitions()).await;
        }),
    ]
}

/// The Go operator's hash: unkeyed SHA-256 over the keys in order.
fn go_hash(data: &[(&str, &str)]) -> String {
    let mut data = data.to_vec();
    data.sort_unstable();
    let mut hash = Sha256::new();
    for (key, value) in data {
        hash.update(key.as_bytes());
        hash.update([0]);
        hash.update(value.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn go_definitions() -> Vec<CustomResourceDefinition> {
    let folder = repository::root().join("e2e/fixtures/go-schema");
    ["ferrvaultconnections.yaml", "ferrvaultsecrets.yaml"]
        .map(|file| serde_saphyr::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap())
        .into()
}

/// Creates an object the way the Go operator and its users did: without the types of this repository in between, and its
/// status by an update of the whole.
async fn stored(scene: &Scene, kind: &str, metadata: Value, spec: Value, status: Value) -> DynamicObject {
    let resource = match kind {
        "FerrVaultSecret" => FerrVaultSecret::api_resource(),
        _ => FerrVaultConnection::api_resource(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(scene.cluster.client.clone(), &scene.name, &resource);
    let object = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
    let go = PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() };
    let mut made = api.create(&go, &objects::typed(object)).await.unwrap();
    made.data["status"] = status;
    let name = made.metadata.name.clone().unwrap();
    api.replace_status(&name, &go, &made).await.unwrap()
}

/// A resource of the Go operator's with its Secret: `last` is its `lastRolloutHash`.
async fn go_resource(scene: &Scene, name: &str, data: &[(&str, &str)], spec: Value, last: Option<&str>) -> String {
    let hash = go_hash(data);
    let mut whole = json!({"connectionRef": {"name": CONNECTION}, "vault": scene.name, "refreshInterval": "1s"});
    objects::merge(&mut whole, spec);
    let ready = json!({"type": "Ready", "status": "True", "reason": "Synced", "message": "synced",
                       "lastTransitionTime": "2026-03-01T10:00:00Z", "observedGeneration": 1});
    let keys: Vec<&str> = data.iter().map(|(key, _)| *key).collect();
    let mut status = json!({"conditions": [ready], "lastSyncedAt": "2026-03-01T10:00:00Z", "syncedKeys": keys,
                            "missingKeys": null, "observedGeneration": 1});
    if let Some(last) = last {
        status["lastRolloutHash"] = json!(last);
    }
    let metadata = json!({"name": name, "finalizers": [marks::LEGACY_SECRET_FINALIZER]});
    let made = stored(scene, "FerrVaultSecret", metadata, whole, status).await;
    let owner = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret", "name": name,
                       "uid": made.metadata.uid, "controller": true, "blockOwnerDeletion": true});
    let text: serde_json::Map<String, Value> =
        data.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    scene
        .create::<Secret>(json!({
            "metadata": {
                "name": name,
                "annotations": {marks::MANAGED_BY: marks::MANAGER, marks::CONTENT_HASH: hash},
                "ownerReferences": [owner],
            },
            "type": "Opaque",
            "stringData": text,
        }))
        .await;
    hash
}

async fn from_go() {
    let cluster = Rc::new(Cluster::bare().await);
    cluster.install_definitions(go_definitions()).await;
    let scene = Scene::new(&cluster, "upgrade").await;
    let (a, b) = (fresh("a"), fresh("b"));
    scene.set(&[("A", &a), ("B", &b)]).await;
    let token = cluster.dev.token(&scene.vault()).await;
    scene.put_token(&token.token).await;
    let reachable = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Reachable", "message": "",
                           "lastTransitionTime": "2026-03-01T10:00:00Z"}], "lastCheckedAt": "2026-03-01T10:00:00Z"});
    let spec = objects::connection(cluster.dev.url())["spec"].clone();
    let held = json!({"name": CONNECTION, "finalizers": [marks::CONNECTION_FINALIZER]});
    stored(&scene, "FerrVaultConnection", held, spec.clone(), reachable.clone()).await;
    let mut both = spec;
    both["oidc"] = json!({"clusterID": "0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f60"});
    stored(&scene, "FerrVaultConnection", json!({"name": "both"}), both, reachable).await;

    // Never rotated: no lastRolloutHash. Rotated once: a hash on record and on the template. Rotated, and the record lost.
    for name in ["fresh", "rotated", "unrecorded"] {
        let mut workload = objects::workload("Deployment", name);
        if name != "fresh" {
            workload["spec"]["template"]["metadata"]["annotations"] =
                json!({marks::RESTARTED_AT: "2026-03-01T10:00:00Z"});
        }
        scene.create::<Deployment>(workload).await;
    }
    let data = [("A", a.as_str()), ("B", b.as_str())];
    let hash = go_hash(&data);
    let listing = |name: &str| json!({"rolloutRestart": [restart("Deployment", name)]});
    go_resource(&scene, "fresh", &data, listing("fresh"), None).await;
    go_resource(&scene, "rotated", &data, listing("rotated"), Some(&hash)).await;
    go_resource(&scene, "unrecorded", &data, listing("unrecorded"), None).await;
    // Stored before anybody judged intervals, and through a connection with two credentials.
    go_resource(&scene, "negative", &data, json!({"refreshInterval": "-1s"}), None).await;
    go_resource(&scene, "no-duration", &data, json!({"refreshInterval": "abc"}), None).await;
    go_resource(&scene, "ambiguous", &data, json!({"connectionRef": {"name": "both"}}), None).await;
    let names = ["fresh", "rotated", "unrecorded", "negative", "no-duration", "ambiguous"];
    let mut before = Vec::new();
    for name in names {
        before.push(scene.get::<Secret>(name).await.metadata.resource_version);
    }
    let bytes: [(&str, &[u8]); 2] = [("A", a.as_bytes()), ("B", b.as_bytes())];

    let release = cluster.install("ferrvault-operator", json!({})).await;
    let operator = cluster.start_operator(&release, "new").await;
    scene.log(operator.process().log());
    operator.ready().await.unwrap();
    for name in ["fresh", "rotated", "unrecorded"] {
        let last = scene
            .until_it(name, "has a baseline", |now: &FerrVaultSecret| {
                let status = now.status.clone().unwrap_or_default();
                status.last_rollout_hash.filter(|_| status.last_attempted_at.is_some()).ok_or("none".to_owned())
            })
            .await;
        assert_eq!(last, hash, "{name}: what the Secret holds is what the pods run on");
        let now = scene.passes(name, 2).await;
        let status = now.status.as_ref().unwrap();
        assert_eq!(status.content_hash.as_deref(), Some(&*hash), "{name}");
        assert_eq!(now.metadata.finalizers, None, "{name}: the old finalizer is gone");
        let ready = objects::condition(&status.conditions, condition::READY).unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Synced"), "{name}: {}", ready.message);
    }
    let until_refused = async |name, reason, words: &str| {
        let refused = scene.until_condition(name, condition::READY, "False", reason).await;
        let told = &objects::condition(objects::conditions(&refused), condition::READY).unwrap().message;
        assert!(told.contains(words), "{name}: {words:?} is not in: {told}");
        assert_eq!(refused.metadata.finalizers, None, "{name}: it can be deleted");
    };
    until_refused("negative", "InvalidSpec", "spec.refreshInterval").await;
    until_refused("no-duration", "InvalidSpec", "spec.refreshInterval").await;
    until_refused("ambiguous", "InvalidConnection", "both tokenSecretRef and oidc").await;
    for (name, before) in names.into_iter().zip(before) {
        let secret = scene.get::<Secret>(name).await;
        assert_eq!(secret.metadata.resource_version, before, "{name}: its Secret was not written");
        ferrvault_e2e::scene::same_data(&secret, &bytes).unwrap();
    }
    for name in ["fresh", "rotated", "unrecorded"] {
        assert_eq!(scene.restarts("Deployment", name).await.0, 0, "{name}");
    }

    // The first change afterwards: a new kind of version, and one restart each.
    let next = fresh("next");
    scene.set(&[("A", &next)]).await;
    for name in ["fresh", "rotated", "unrecorded"] {
        let resource = scene.get::<FerrVaultSecret>(name).await;
        let version = scene.target(name, &resource, &[("A", next.as_bytes()), ("B", b.as_bytes())]).await;
        assert!(version.starts_with("v1."), "{version}");
        scene.restarted("Deployment", name, 1, &resource, &version).await;
        scene.passes(name, 2).await;
        assert_eq!(scene.restarts("Deployment", name).await.0, 1, "{name}");
    }
    scene.delete::<FerrVaultSecret>("fresh").await;
    scene.gone::<FerrVaultSecret>("fresh").await;
    operator.stop().await.unwrap();
}

async fn without_definitions() {
    let cluster = Rc::new(Cluster::bare().await);
    let release = cluster.install("ferrvault-operator", json!({"crds": {"install": false}})).await;
    let scene = Scene::new(&cluster, "no-definitions").await;
    let operator = cluster.start_operator(&release, "a").await;
    scene.log(operator.process().log());
    for kind in ["ferrvaultsecrets.ferrvault.com", "ferrvaultconnections.ferrvault.com"] {
        scene
            .until(&format!("readiness names {kind}"), async || {
                let (status, says) = operator.probe("readyz").await.unwrap();
                let named = says.lines().any(|line| {
                    line.starts_with(&format!("watch of {kind}")) && line.contains("is the CRD installed?")
                });
                if status == 503 && named { Ok(()) } else { Err(format!("{status} {says}")) }
            })
            .await;
        operator.process().wait_for_line(kind, SOON).await.unwrap();
    }
    assert_eq!(operator.probe("healthz").await.unwrap().0, 200, "a restart would not help");
    assert!(operator.process().is_running(), "and it does not end by itself");

    cluster.install_current_definitions().await;
    operator.ready().await.unwrap();
    scene.connect().await;
    let value = fresh("value");
    scene.set(&[("K", &value)]).await;
    scene.resource("shop", json!({})).await;
    let resource = scene.synced("shop").await;
    scene.target("shop", &resource, &[("K", value.as_bytes())]).await;
    operator.stop().await.unwrap();
}
