//! Writes and reads through kube's typed clients: what the operator's own calls will meet.
//!
//! What each request is answered is checked word for word against a real server elsewhere
//! (`model_matches_reality`); here it is what kube makes of the answers.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_testkit::{ApiServer, build};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use k8s_openapi::api::events::v1 as events;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Error, Resource as _, ResourceExt as _};
use serde_json::json;

fn secrets(api: &ApiServer) -> Api<Secret> {
    Api::namespaced(api.client("default"), "default")
}

fn resources(api: &ApiServer) -> Api<FerrVaultSecret> {
    Api::namespaced(api.client("default"), "default")
}

fn status<T: std::fmt::Debug>(answer: Result<T, Error>) -> Box<Status> {
    match answer {
        Err(Error::Api(status)) => status,
        other => unreachable!("a refusal was expected, not {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn kube_knows_each_refusal_by_name() {
    let api = ApiServer::default();
    let secrets = secrets(&api);
    let made = secrets.create(&PostParams::default(), &build::secret("default", "a").typed()).await.unwrap();
    let again = secrets.create(&PostParams::default(), &build::secret("default", "a").typed()).await;
    assert!(status(again).is_already_exists());
    assert!(status(secrets.get("none").await).is_not_found());
    let invalid = secrets.create(&PostParams::default(), &build::secret("default", "b").key("a b", "").typed()).await;
    assert!(status(invalid).is_invalid());
    secrets.patch("a", &PatchParams::default(), &Patch::Merge(json!({ "data": { "k": "YQ==" } }))).await.unwrap();
    assert!(status(secrets.replace("a", &PostParams::default(), &made).await).is_conflict());
    api.deny("operator", "get", "secrets");
    assert!(status(secrets.get("a").await).is_forbidden());
}

#[tokio::test(start_paused = true)]
async fn the_name_of_an_unknown_path_reaches_the_client_as_text() {
    let api = ApiServer::default();
    api.uninstall("ferrvaultsecrets.ferrvault.com");
    let refused = status(resources(&api).list(&ListParams::default()).await);
    assert_eq!((refused.code, refused.message.trim()), (404, "404 page not found"));
    api.install_product();
    assert!(resources(&api).list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_write_that_changes_something_moves_the_revision_and_no_other() {
    let api = ApiServer::default();
    let secrets = secrets(&api);
    let mut revisions = Vec::new();
    let steps =
        [json!({ "data": { "k": "YQ==" } }), json!({ "data": { "k": "YQ==" } }), json!({ "data": { "k": null } })];
    let made = secrets.create(&PostParams::default(), &build::secret("default", "a").typed()).await.unwrap();
    revisions.push(made.resource_version().unwrap());
    for step in &steps {
        let params = PatchParams { field_manager: Some("m".to_owned()), ..PatchParams::default() };
        revisions.push(secrets.patch("a", &params, &Patch::Merge(step)).await.unwrap().resource_version().unwrap());
    }
    assert_ne!(revisions[0], revisions[1]);
    assert_eq!(revisions[1], revisions[2], "nothing new was said");
    assert_ne!(revisions[2], revisions[3]);
}

#[tokio::test(start_paused = true)]
async fn status_and_the_rest_are_written_through_doors_of_their_own() {
    let api = ApiServer::default();
    let resources = resources(&api);
    let made = resources.create(&PostParams::default(), &build::fvs("default", "a").typed()).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    let both = json!({ "spec": { "vault": "v2" }, "status": { "contentHash": "h" } });
    let params = PatchParams::default();
    let spec = resources.patch("a", &params, &Patch::Merge(&both)).await.unwrap();
    assert_eq!((spec.spec.vault.as_str(), spec.status), ("v2", None));
    assert_eq!(spec.metadata.generation, Some(2));
    let both = json!({ "spec": { "vault": "v3" }, "status": { "contentHash": "h" } });
    let status = resources.patch_status("a", &params, &Patch::Merge(&both)).await.unwrap();
    assert_eq!((status.spec.vault.as_str(), status.status.unwrap().content_hash.as_deref()), ("v2", Some("h")));
    assert_eq!(status.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_status_patch_with_a_revision_is_a_compare_and_swap() {
    let api = ApiServer::default();
    let read = api.apply(&build::fvs("default", "a"));
    let resources = resources(&api);
    let patch = |revision: &str| {
        let patch = json!({ "metadata": { "resourceVersion": revision }, "status": { "contentHash": "h" } });
        let resources = resources.clone();
        async move { resources.patch_status("a", &PatchParams::default(), &Patch::Merge(&patch)).await }
    };
    api.edit::<FerrVaultSecret>("default", "a", |object| object["metadata"]["labels"] = json!({ "a": "b" }));
    assert!(status(patch(read["metadata"]["resourceVersion"].as_str().unwrap()).await).is_conflict());
    let current = resources.get("a").await.unwrap().resource_version().unwrap();
    patch(&current).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn defaults_appear_and_what_the_schema_does_not_know_is_forgotten() {
    let api = ApiServer::default();
    api.apply(&build::connection("default", "c").set(&["spec", "flavour"], "sweet"));
    let stored = api.get_json("ferrvault.com", "ferrvaultconnections", "default", "c").unwrap();
    assert_eq!(stored["spec"]["mode"], "ferrvault");
    assert_eq!(stored["spec"].get("flavour"), None);
    let typed = api.get::<FerrVaultConnection>("default", "c").unwrap();
    assert_eq!(typed.spec.token_secret_ref.unwrap().name, "c-token");
}

#[tokio::test(start_paused = true)]
async fn another_schema_can_take_over_what_an_older_one_stored() {
    let api = ApiServer::default();
    // A schema without list types and with a default that the present one does not have.
    let older = json!({
        "spec": {
            "group": "ferrvault.com", "scope": "Namespaced",
            "names": { "plural": "ferrvaultsecrets", "kind": "FerrVaultSecret" },
            "versions": [{
                "name": "v1alpha1", "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                        "refreshInterval": { "type": "string", "default": "1h" } } },
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
            }],
        },
    });
    api.install(&older);
    let condition = json!({ "type": "Ready", "status": "True", "reason": "Synced", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    api.apply(
        &build::fvs("default", "a").set(&["status", "conditions"], json!([condition])).set(&["status", "extra"], 1),
    );
    api.install_product();
    let resources = resources(&api);
    let read = resources.get("a").await.unwrap();
    assert_eq!(read.spec.refresh_interval.as_deref(), Some("1h"));
    let patch = Patch::Merge(json!({ "status": { "contentHash": "h" } }));
    let written = resources.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(written.status.unwrap().conditions.len(), 1);
    let stored = api.get_json("ferrvault.com", "ferrvaultsecrets", "default", "a").unwrap();
    assert_eq!(stored["status"].get("extra"), None);
}

#[tokio::test(start_paused = true)]
async fn a_mark_on_the_template_is_a_new_generation_of_every_kind_of_workload() {
    let api = ApiServer::default();
    api.apply(&build::deployment("default", "w"));
    api.apply(&build::stateful_set("default", "w"));
    api.apply(&build::daemon_set("default", "w"));
    let patch = Patch::Strategic(json!({ "spec": { "template": { "metadata": { "annotations": { "a/b": "c" } } } } }));
    let params = PatchParams::default();
    for _ in 0..2 {
        let client = api.client("default");
        let deployment =
            Api::<Deployment>::default_namespaced(client.clone()).patch("w", &params, &patch).await.unwrap();
        let set = Api::<StatefulSet>::default_namespaced(client.clone()).patch("w", &params, &patch).await.unwrap();
        let daemon = Api::<DaemonSet>::default_namespaced(client).patch("w", &params, &patch).await.unwrap();
        assert_eq!(deployment.metadata.generation, Some(2));
        assert_eq!(set.metadata.generation, Some(2));
        assert_eq!(daemon.metadata.generation, Some(2));
    }
}

#[tokio::test(start_paused = true)]
async fn deletes_heed_their_preconditions() {
    let api = ApiServer::default();
    let stored = api.apply(&build::secret("default", "a"));
    let secrets = secrets(&api);
    let with = |preconditions| DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    let other = Preconditions { uid: Some("other".to_owned()), resource_version: None };
    assert!(status(secrets.delete("a", &with(other)).await).is_conflict());
    let uid = stored["metadata"]["uid"].as_str().map(str::to_owned);
    assert!(secrets.delete("a", &with(Preconditions { uid, resource_version: None })).await.unwrap().is_right());
    assert!(api.get::<Secret>("default", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_delete_waits_for_the_last_finalizer() {
    let api = ApiServer::default();
    api.apply(&build::connection("default", "c").finalizer("ferrvault.com/connection-cleanup"));
    let connections = Api::<FerrVaultConnection>::namespaced(api.client("default"), "default");
    let left = connections.delete("c", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(left.meta().deletion_timestamp.is_some());
    assert_eq!(left.metadata.generation, Some(2), "a delete is a change of what is wanted");
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    connections.patch("c", &PatchParams::default(), &patch).await.unwrap();
    assert!(connections.get_opt("c").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lease_changes_hands_by_compare_and_swap() {
    let api = ApiServer::default();
    let leases = Api::<Lease>::namespaced(api.client("default"), "ferrvault-system");
    let mut lease = Lease::default();
    lease.metadata.name = Some("leader".to_owned());
    let made = leases.create(&PostParams::default(), &lease).await.unwrap();
    let claim = |holder: &str| {
        let mut lease = made.clone();
        lease.spec.get_or_insert_default().holder_identity = Some(holder.to_owned());
        lease
    };
    leases.replace("leader", &PostParams::default(), &claim("a")).await.unwrap();
    assert!(status(leases.replace("leader", &PostParams::default(), &claim("b")).await).is_conflict());
}

#[tokio::test(start_paused = true)]
async fn events_are_published_and_repeated() {
    let api = ApiServer::default();
    let reporter = Reporter { controller: "ferrvault-operator".to_owned(), instance: Some("pod-1".to_owned()) };
    let recorder = Recorder::new(api.client("default"), reporter);
    let about = ObjectReference {
        api_version: Some("ferrvault.com/v1alpha1".to_owned()),
        kind: Some("FerrVaultSecret".to_owned()),
        name: Some("a".to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some("u".to_owned()),
        ..ObjectReference::default()
    };
    let event = Event {
        type_: EventType::Normal,
        reason: "Synced".to_owned(),
        note: Some("five keys".to_owned()),
        action: "Sync".to_owned(),
        secondary: None,
    };
    recorder.publish(&event, &about).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    recorder.publish(&event, &about).await.unwrap();
    let stored = api.list::<events::Event>("default");
    assert_eq!(stored.len(), 1, "{}", api.story());
    assert_eq!(stored[0].series.as_ref().map(|series| series.count), Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_the_cluster_is_the_clock_of_the_test() {
    let api = ApiServer::default();
    assert_eq!(api.now().to_string(), "2026-01-01T00:00:00Z");
    tokio::time::sleep(Duration::from_secs(90)).await;
    let stored = api.apply(&build::secret("default", "a"));
    assert_eq!(stored["metadata"]["creationTimestamp"], "2026-01-01T00:01:30Z");
}
