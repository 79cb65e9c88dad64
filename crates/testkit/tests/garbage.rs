//! What the cluster's own controllers do after a delete, and when.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_testkit::{ApiServer, Options, WriteRecord, build};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, PropagationPolicy};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A server that collects only when told to.
fn idle() -> ApiServer {
    ApiServer::new(Options { collect_after: None, ..Options::default() })
}

fn names(api: &ApiServer) -> Vec<String> {
    api.list::<Secret>("default").iter().map(ResourceExt::name_any).collect()
}

async fn delete(api: &ApiServer, policy: PropagationPolicy) {
    let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    let resources = Api::<FerrVaultSecret>::namespaced(api.client("default"), "default");
    resources.delete("owner", &params).await.unwrap();
}

/// A resource and a Secret that it owns.
fn family(api: &ApiServer) -> Value {
    let owner = api.apply(&build::fvs("default", "owner"));
    api.apply(&build::secret("default", "child").owned_by(&owner));
    owner
}

#[tokio::test(start_paused = true)]
async fn what_a_deleted_object_owned_goes_with_it_but_not_at_once() {
    let api = idle();
    family(&api);
    delete(&api, PropagationPolicy::Background).await;
    assert_eq!(names(&api), ["child"]);
    assert_eq!(api.collect_garbage(), 1);
    assert!(names(&api).is_empty());
    assert_eq!(api.collect_garbage(), 0);
}

#[tokio::test(start_paused = true)]
async fn garbage_is_collected_some_time_after_a_delete_by_itself() {
    let api = ApiServer::new(Options { collect_after: Some(Duration::from_secs(3)), ..Options::default() });
    family(&api);
    tokio::time::sleep(Duration::from_secs(10)).await;
    delete(&api, PropagationPolicy::Background).await;
    tokio::time::sleep(Duration::from_millis(2_900)).await;
    assert_eq!(names(&api), ["child"]);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(names(&api).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_new_object_of_the_same_name_is_another_owner() {
    let api = idle();
    family(&api);
    delete(&api, PropagationPolicy::Background).await;
    api.apply(&build::fvs("default", "owner"));
    api.collect_garbage();
    assert!(names(&api).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_with_another_owner_left_stays_and_forgets_the_gone_one() {
    let api = idle();
    let owner = family(&api);
    let other = api.apply(&build::fvs("default", "other"));
    let child = build::secret("default", "child").owned_by(&owner).owned_by(&other);
    api.apply(&child.set(&["metadata", "ownerReferences"], json!([reference(&owner), reference(&other)])));
    delete(&api, PropagationPolicy::Background).await;
    api.collect_garbage();
    let left = api.get::<Secret>("default", "child").unwrap();
    let owners: Vec<_> = left.owner_references().iter().map(|owner| owner.name.clone()).collect();
    assert_eq!(owners, ["other"]);
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    })
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_an_unknown_kind_is_taken_to_be_there() {
    let api = idle();
    let unknown = json!({ "apiVersion": "elsewhere/v1", "kind": "Thing", "name": "t", "uid": "u" });
    api.apply(&build::secret("default", "child").push(&["metadata", "ownerReferences"], unknown));
    assert_eq!(api.collect_garbage(), 0);
    assert_eq!(names(&api), ["child"]);
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_owner_goes_last() {
    let api = idle();
    family(&api);
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    api.on_write(move |write: &WriteRecord| {
        if write.new.is_none() {
            log.lock().unwrap().push(write.name.clone());
        }
    });
    delete(&api, PropagationPolicy::Foreground).await;
    assert!(api.get::<FerrVaultSecret>("default", "owner").unwrap().metadata.deletion_timestamp.is_some());
    api.collect_garbage();
    assert_eq!(*order.lock().unwrap(), ["child", "owner"]);
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_owner_waits_for_a_held_dependent() {
    let api = idle();
    let owner = api.apply(&build::fvs("default", "owner"));
    api.apply(&build::secret("default", "child").owned_by(&owner).finalizer("a.b/c"));
    delete(&api, PropagationPolicy::Foreground).await;
    api.collect_garbage();
    assert!(api.get::<FerrVaultSecret>("default", "owner").is_some());
    api.edit::<Secret>("default", "child", |child| {
        child["metadata"].as_object_mut().unwrap().remove("finalizers");
    });
    api.collect_garbage();
    assert!(api.get::<FerrVaultSecret>("default", "owner").is_none() && names(&api).is_empty());
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_owner_waits_for_nobody_who_does_not_ask_for_it() {
    let api = idle();
    let owner = api.apply(&build::fvs("default", "owner"));
    let child = build::secret("default", "child").finalizer("a.b/c");
    api.apply(&child.set(&["metadata", "ownerReferences"], json!([reference(&owner)])));
    delete(&api, PropagationPolicy::Foreground).await;
    api.collect_garbage();
    assert!(api.get::<FerrVaultSecret>("default", "owner").is_none());
    assert!(api.get::<Secret>("default", "child").unwrap().metadata.deletion_timestamp.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_object_with_another_owner_left_does_not_go_in_the_foreground_either() {
    let api = idle();
    let owner = api.apply(&build::fvs("default", "owner"));
    let other = api.apply(&build::fvs("default", "other"));
    api.apply(
        &build::secret("default", "child").owned_by(&owner).push(&["metadata", "ownerReferences"], reference(&other)),
    );
    delete(&api, PropagationPolicy::Foreground).await;
    api.collect_garbage();
    assert!(api.get::<FerrVaultSecret>("default", "owner").is_none());
    let child = api.get::<Secret>("default", "child").unwrap();
    assert_eq!(child.owner_references().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_without_their_owner() {
    let api = idle();
    family(&api);
    delete(&api, PropagationPolicy::Orphan).await;
    api.collect_garbage();
    assert!(api.get::<FerrVaultSecret>("default", "owner").is_none());
    assert!(api.get::<Secret>("default", "child").unwrap().owner_references().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_everything_in_it_once_nothing_is_held() {
    let api = idle();
    api.apply(&build::secret("team", "plain"));
    api.apply(&build::connection("team", "held").finalizer("ferrvault.com/connection-cleanup"));
    api.apply(&build::secret("default", "elsewhere"));
    api.delete::<Namespace>("", "team");
    let namespace = api.get::<Namespace>("", "team").unwrap();
    assert_eq!(namespace.status.unwrap().phase.as_deref(), Some("Terminating"));
    api.collect_garbage();
    assert!(api.list::<Secret>("team").is_empty());
    let held = api.get_json("ferrvault.com", "ferrvaultconnections", "team", "held").unwrap();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    api.edit::<ferrvault_api::FerrVaultConnection>("team", "held", |held| {
        held["metadata"].as_object_mut().unwrap().remove("finalizers");
    });
    api.collect_garbage();
    assert!(api.get::<Namespace>("", "team").is_none());
    assert_eq!(names(&api), ["elsewhere"]);
}
