//! From the Go operator's schema to the generated one, with objects in store.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use xtask::control_plane::{ControlPlane, StartOptions};
use xtask::{crds, repository};

use crate::{Kinds, install, with};

/// The definitions that the Go operator's chart installed.
fn go_definitions() -> Vec<CustomResourceDefinition> {
    let folder = repository::root().join("e2e/fixtures/go-schema");
    let read = |file: &str| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    };
    vec![read("ferrvaultconnections.yaml"), read("ferrvaultsecrets.yaml")]
}

/// A status as the Go operator wrote it: the whole object, by update, with nil slices as null.
fn go_status(kind: &str) -> Value {
    let ready = json!({"type": "Ready", "status": "True", "reason": "Synced", "message": "2 keys synced",
                       "lastTransitionTime": "2026-03-01T10:00:00Z", "observedGeneration": 1});
    if kind == "FerrVaultSecret" {
        let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        json!({"conditions": [ready], "lastSyncedAt": "2026-03-01T10:00:00Z", "lastRolloutHash": hash,
               "syncedKeys": ["A", "B"], "missingKeys": null, "observedGeneration": 1})
    } else {
        json!({"conditions": [ready], "lastCheckedAt": "2026-03-01T10:00:00Z"})
    }
}

/// A status as this operator writes it: a merge patch with the resourceVersion it read.
async fn patch_status(api: &Api<DynamicObject>, name: &str, status: Value) -> Result<DynamicObject, kube::Error> {
    let version = api.get(name).await?.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
    api.patch_status(
        name,
        &PatchParams { field_manager: Some("ferrvault-operator".to_owned()), ..PatchParams::default() },
        &Patch::Merge(patch),
    )
    .await
}

#[tokio::test]
async fn whatever_the_go_schema_let_in_still_takes_a_status_after_the_upgrade() {
    let plane = ControlPlane::start(StartOptions::default()).await.unwrap();
    install(&plane.client(), go_definitions()).await;
    let kinds = Kinds::new(&plane.client());

    let base = json!({"connectionRef": {"name": "main"}, "vault": "db"});
    let interval = |text: &str| with(&base, "refreshInterval", json!(text));
    let twice = json!([{"kind": "Deployment", "name": "web"}, {"kind": "Deployment", "name": "web"}]);
    let secret = |case: &str, spec: Value| ("FerrVaultSecret", case.to_owned(), spec);
    let connection = |case: &str, spec: Value| ("FerrVaultConnection", case.to_owned(), spec);
    let url = json!({"url": "https://vault.example"});
    let both = json!({"clusterID": "0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f60"});
    let token = json!({"name": "token", "key": "token"});
    let objects = vec![
        secret("plain", base.clone()),
        secret(
            "empty-names",
            json!({"connectionRef": {"name": ""}, "vault": "db", "target": {"name": "", "type": ""}}),
        ),
        secret("negative", interval("-1s")),
        secret("no-duration", interval("abc")),
        secret("overflow", interval("99999999999h")),
        secret("long", interval(&"1h".repeat(60))),
        secret("empty-interval", interval("")),
        secret("empty-workload", with(&base, "rolloutRestart", json!([{"kind": "Deployment", "name": ""}]))),
        secret("workload-twice", with(&base, "rolloutRestart", twice)),
        secret("stray-field", with(&base, "transforms", json!([{"type": "base64Decode", "key": "A", "value": "x"}]))),
        secret("empty-prefix", with(&base, "transforms", json!([{"type": "prefix"}, {"type": "rename"}]))),
        connection("token", with(&url, "tokenSecretRef", token.clone())),
        connection("no-credential", url.clone()),
        connection("both-credentials", with(&with(&url, "tokenSecretRef", token), "oidc", both)),
        connection("empty-token", with(&url, "tokenSecretRef", json!({"name": "", "key": ""}))),
        connection("dashes", with(&url, "oidc", json!({"clusterID": "-".repeat(36)}))),
    ];
    let update = PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() };
    for (kind, name, spec) in &objects {
        let mut made = kinds.create(kind, name, spec.clone()).await.unwrap_or_else(|words| panic!("{name}: {words}"));
        made.data["status"] = go_status(kind);
        let stored = kinds.of(kind).replace_status(name, &update, &made).await.unwrap();
        assert!(stored.data["status"].get("missingKeys").is_none(), "{name}: a null is stored");
    }

    install(&plane.client(), crds::definitions()).await;
    kinds.upgraded().await;

    let at = "2026-11-30T12:00:00Z";
    for (kind, name, _) in &objects {
        let before = kinds.of(kind).get(name).await.unwrap();
        let ready = json!({"type": "Ready", "status": "False", "reason": "InvalidSpec", "message": "",
                           "lastTransitionTime": at, "observedGeneration": 1});
        let restarted = json!({"type": "RolloutRestarted", "status": "True", "reason": "Restarted", "message": "",
                               "lastTransitionTime": at, "observedGeneration": 1});
        let rollout = json!({"kind": "Deployment", "name": "web", "state": "Restarted", "since": at});
        let status = if *kind == "FerrVaultSecret" {
            json!({"conditions": [ready, restarted], "lastAttemptedAt": at, "contentHash": "v", "rollouts": [rollout]})
        } else {
            json!({"conditions": [ready], "lastCheckedAt": at})
        };
        // Twice: the first write turns the list of conditions into a map, the second one meets it.
        for round in ["first", "second"] {
            let after = patch_status(kinds.of(kind), name, status.clone()).await;
            let after = after.unwrap_or_else(|error| panic!("{name}, {round} status: {error}"));
            assert_eq!(after.data["status"]["conditions"], status["conditions"], "{name}, {round} status");
            assert_eq!(after.data["spec"], before.data["spec"], "{name}: the spec is another one");
            assert_eq!(after.metadata.generation, before.metadata.generation, "{name}");
        }
        // What else the operator writes on them: finalizers.
        let finalizers = json!({"metadata": {"finalizers": ["ferrvault.com/connection-cleanup"]}});
        let params = PatchParams::default();
        kinds.of(kind).patch(name, &params, &Patch::Merge(finalizers)).await.unwrap();
        let none = json!({"metadata": {"finalizers": null}});
        kinds.of(kind).patch(name, &params, &Patch::Merge(none)).await.unwrap();
    }

    // What was in status before and is not written again stays.
    let plain = kinds.secrets.get("plain").await.unwrap().data;
    assert_eq!(plain["status"]["syncedKeys"], json!(["A", "B"]));
    assert_eq!(plain["spec"]["refreshInterval"], "1h", "what the old default wrote is the user's now");

    // What lies beside it may be edited, as Argo CD does when it applies the whole again.
    let edit = json!({"spec": {"vault": "other"}});
    kinds.secrets.patch("stray-field", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();

    // Broken is forgiven only as long as it stays as it was.
    let edit = json!({"spec": {"refreshInterval": "-2s"}});
    let refused = kinds.secrets.patch("negative", &PatchParams::default(), &Patch::Merge(edit)).await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("refreshInterval")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn two_writers_keep_their_conditions_apart_even_on_an_object_from_before_the_upgrade() {
    let plane = ControlPlane::start(StartOptions::default()).await.unwrap();
    install(&plane.client(), go_definitions()).await;
    let kinds = Kinds::new(&plane.client());
    let spec = json!({"connectionRef": {"name": "main"}, "vault": "db"});
    let mut made = kinds.create("FerrVaultSecret", "shared", spec).await.unwrap();
    made.data["status"] = go_status("FerrVaultSecret");
    let update = PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() };
    kinds.secrets.replace_status("shared", &update, &made).await.unwrap();
    install(&plane.client(), crds::definitions()).await;
    kinds.upgraded().await;

    let applied = |type_: &str| {
        let condition = json!({"type": type_, "status": "True", "reason": "Seen", "message": "",
                               "lastTransitionTime": "2026-11-30T12:00:00Z"});
        let status = json!({"conditions": [condition]});
        Patch::Apply(json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret",
                            "metadata": {"name": "shared"}, "status": status}))
    };
    for (writer, type_) in [("one", "First"), ("two", "Second")] {
        // Not forced: nobody owns another's condition, so there is nothing to take away.
        kinds.secrets.patch_status("shared", &PatchParams::apply(writer), &applied(type_)).await.unwrap();
    }
    let types = async || {
        let now = kinds.secrets.get("shared").await.unwrap().data;
        let conditions = now["status"]["conditions"].as_array().unwrap().clone();
        conditions.iter().map(|condition| condition["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types().await, ["Ready", "First", "Second"]);

    // A type twice is refused: the list is a map.
    let ready = go_status("FerrVaultSecret")["conditions"][0].clone();
    let refused = patch_status(&kinds.secrets, "shared", json!({"conditions": [ready, ready]})).await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("Duplicate value")),
        "{refused:?}"
    );

    kinds.secrets.delete("shared", &DeleteParams::default()).await.unwrap();
    assert!(kinds.secrets.get_opt("shared").await.unwrap().is_none());
}
