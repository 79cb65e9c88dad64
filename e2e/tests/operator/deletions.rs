//! What becomes of the rest when one part goes: resource, target, token, namespace; and when a name changes.

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, marks};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self, CONNECTION, TOKEN, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::json;

use crate::register::{by_default, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    scenarios![by_default:
        the_target_goes_with_its_resource,
        a_deleted_target_comes_back_under_its_version_and_nothing_restarts,
        a_rotated_token_is_taken_up_and_nothing_restarts,
        a_namespace_goes_as_a_whole,
        another_target_name_moves_the_content_and_restarts_nothing,
        a_resource_under_another_name_takes_the_target_over,
        an_orphaned_target_is_taken_over_as_it_is,
    ]
}

/// A resource `shop` that keeps the key `K` in Secret `db` and restarts Deployment `web`: the resource, the value and the
/// version.
async fn shop(scene: &Scene) -> (FerrVaultSecret, String, String) {
    scene.connect().await;
    scene.workload("Deployment", "web").await;
    let value = fresh("value");
    scene.set(&[("K", &value)]).await;
    let resource = make(scene, "shop").await;
    let version = scene.target("db", &resource, &[("K", value.as_bytes())]).await;
    (resource, value, version)
}

async fn make(scene: &Scene, name: &str) -> FerrVaultSecret {
    let spec = json!({"target": {"name": "db"}, "rolloutRestart": [restart("Deployment", "web")]});
    scene.resource(name, spec).await;
    scene.synced(name).await
}

async fn the_target_goes_with_its_resource(scene: &Scene) {
    scene.cluster.needs_controller_manager();
    let (resource, ..) = shop(scene).await;
    assert_eq!(resource.metadata.finalizers, None, "the owner reference does the clean-up");
    scene.delete::<FerrVaultSecret>("shop").await;
    scene.gone::<FerrVaultSecret>("shop").await;
    scene.gone::<Secret>("db").await;
    assert!(scene.find::<Secret>(TOKEN).await.is_some(), "the token is the user's");
    let released = |connection: &FerrVaultConnection| {
        if connection.metadata.finalizers.is_none() { Ok(()) } else { Err("held".to_owned()) }
    };
    scene.until_it(CONNECTION, "is no longer held", released).await;
}

async fn a_deleted_target_comes_back_under_its_version_and_nothing_restarts(scene: &Scene) {
    let (resource, value, version) = shop(scene).await;
    let before = scene.get::<Secret>("db").await.metadata.uid;
    scene.delete::<Secret>("db").await;
    let again = scene.target("db", &resource, &[("K", value.as_bytes())]).await;
    assert_eq!(again, version);
    assert_ne!(scene.get::<Secret>("db").await.metadata.uid, before, "it was gone");
    scene.passes("shop", 2).await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 0);

    // Deleted while a change waits: the change counts, once.
    let next = fresh("next");
    scene.set(&[("K", &next)]).await;
    scene.delete::<Secret>("db").await;
    let changed = scene.target("db", &resource, &[("K", next.as_bytes())]).await;
    assert_ne!(changed, version);
    scene.restarted("Deployment", "web", 1, &resource, &changed).await;
    scene.passes("shop", 2).await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 1);
}

async fn a_rotated_token_is_taken_up_and_nothing_restarts(scene: &Scene) {
    let dev = &scene.cluster.dev;
    scene.workload("Deployment", "web").await;
    let old = scene.connect().await;
    let first = fresh("first");
    scene.set(&[("K", &first)]).await;
    let resource = make(scene, "shop").await;
    let version = scene.target("db", &resource, &[("K", first.as_bytes())]).await;
    let new = dev.token(&scene.vault()).await;
    scene.put_token(&new.token).await;
    dev.revoke(&old).await;
    let now = scene.passes("shop", 3).await;
    let ready = objects::condition(objects::conditions(&now), "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Synced"), "{}", ready.message);
    assert_eq!(scene.target("db", &resource, &[("K", first.as_bytes())]).await, version);
    assert_eq!(scene.restarts("Deployment", "web").await.0, 0);
}

async fn a_namespace_goes_as_a_whole(scene: &Scene) {
    scene.cluster.needs_controller_manager();
    shop(scene).await;
    let held = |connection: &FerrVaultConnection| {
        if connection.metadata.finalizers.is_some() { Ok(()) } else { Err("not held".to_owned()) }
    };
    scene.until_it(CONNECTION, "is held", held).await;
    let namespaces: Api<Namespace> = Api::all(scene.cluster.client.clone());
    namespaces.delete(&scene.name, &DeleteParams::default()).await.unwrap();
    scene
        .until("the namespace is gone, finalizers and all", async || {
            let left = namespaces.get_opt(&scene.name).await.unwrap();
            left.map_or(Ok(()), |namespace| Err(ferrvault_e2e::eventually::yaml(&namespace)))
        })
        .await;
}

async fn another_target_name_moves_the_content_and_restarts_nothing(scene: &Scene) {
    let (resource, value, version) = shop(scene).await;
    scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"target": {"name": "moved"}}})).await;
    let moved = scene.target("moved", &resource, &[("K", value.as_bytes())]).await;
    assert_eq!(moved, version, "the same content");
    scene.synced("shop").await;
    scene.passes("shop", 2).await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 0);
    // Pods may still use the former one: it stays as it is, until the resource goes.
    let former = scene.get::<Secret>("db").await;
    ferrvault_e2e::scene::same_data(&former, &[("K", value.as_bytes())]).unwrap();
    let next = fresh("next");
    scene.set(&[("K", &next)]).await;
    let changed = scene.target("moved", &resource, &[("K", next.as_bytes())]).await;
    scene.restarted("Deployment", "web", 1, &resource, &changed).await;
    let former = scene.get::<Secret>("db").await;
    ferrvault_e2e::scene::same_data(&former, &[("K", value.as_bytes())]).unwrap();
}

async fn a_resource_under_another_name_takes_the_target_over(scene: &Scene) {
    scene.cluster.needs_controller_manager();
    let (_, value, _) = shop(scene).await;
    // Both at once, as when a manifest's name is edited and applied with pruning.
    let spec = json!({"target": {"name": "db"}, "rolloutRestart": [restart("Deployment", "web")]});
    scene.resource("renamed", spec).await;
    scene.until_condition("renamed", "Ready", "False", "TargetConflict").await;
    scene.delete::<FerrVaultSecret>("shop").await;
    scene.synced("renamed").await;
    let renamed = scene.get::<FerrVaultSecret>("renamed").await;
    scene.target("db", &renamed, &[("K", value.as_bytes())]).await;
    scene.passes("renamed", 2).await;
    let (count, annotations) = scene.restarts("Deployment", "web").await;
    assert!(count <= 1, "recreating a resource costs one restart at most, not {count}: {annotations}");
}

async fn an_orphaned_target_is_taken_over_as_it_is(scene: &Scene) {
    scene.cluster.needs_controller_manager();
    let (_, value, version) = shop(scene).await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    scene.api::<FerrVaultSecret>().delete("shop", &orphan).await.unwrap();
    scene.gone::<FerrVaultSecret>("shop").await;
    let left = scene.get::<Secret>("db").await;
    assert_eq!(left.metadata.annotations.as_ref().unwrap()[marks::CONTENT_HASH], version);
    let again = make(scene, "again").await;
    assert_eq!(scene.target("db", &again, &[("K", value.as_bytes())]).await, version, "adopted, not rewritten");
    scene.passes("again", 2).await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 0);
}
