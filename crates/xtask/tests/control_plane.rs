//! The control plane itself, for real. Part of `cargo xtask test`; not of the quick tests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by it")]

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use xtask::control_plane::{Binaries, Component, ControlPlane, StartOptions, client};
use xtask::test_run::skip;

/// What a test waits for takes a second or two when nothing else runs.
const SOON: Duration = Duration::from_mins(1);

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

async fn bare() -> ControlPlane {
    ControlPlane::start(StartOptions::default()).await.unwrap()
}

#[tokio::test]
async fn two_side_by_side_do_not_see_each_other_and_leave_nothing() {
    let (one, two) = tokio::join!(bare(), bare());
    assert_ne!(one.server(), two.server());
    let in_one: Api<ConfigMap> = Api::namespaced(one.client(), "default");
    let in_two: Api<ConfigMap> = Api::namespaced(two.client(), "default");
    in_one.create(&PostParams::default(), &config_map("mine")).await.unwrap();
    assert!(in_one.get_opt("mine").await.unwrap().is_some());
    assert!(in_two.get_opt("mine").await.unwrap().is_none());

    let (folder, processes) = (one.folder().to_owned(), one.processes());
    assert_eq!(processes.len(), 2, "{processes:?}");
    drop(one);
    assert!(!folder.exists());
    for (name, pid) in processes {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{name} is still there");
    }
    assert!(in_two.list(&ListParams::default()).await.is_ok(), "the other one was hurt");
}

#[tokio::test]
async fn an_outage_keeps_what_was_stored_and_ends_at_the_same_address() {
    let plane = bare().await;
    let maps: Api<ConfigMap> = Api::namespaced(plane.client(), "default");
    maps.create(&PostParams::default(), &config_map("kept")).await.unwrap();

    plane.stop_apiserver().await;
    assert!(maps.get_opt("kept").await.is_err());
    assert!(plane.failure().await.is_none(), "an outage on purpose is no failure");
    plane.start_apiserver().await.unwrap();
    assert!(maps.get_opt("kept").await.unwrap().is_some());

    assert!(plane.freeze_apiserver());
    // Its threads stop one after the other, so a first answer may still come.
    let mut answers = 0;
    while tokio::time::timeout(Duration::from_millis(500), maps.get_opt("kept")).await.is_ok() {
        answers += 1;
        assert!(answers < 10, "a frozen API server answers");
    }
    assert!(plane.thaw_apiserver());
    assert!(maps.get_opt("kept").await.unwrap().is_some());
}

#[tokio::test]
async fn a_service_account_may_do_what_it_may_and_no_more() {
    let plane = bare().await;
    let accounts: Api<ServiceAccount> = Api::namespaced(plane.client(), "default");
    let account = serde_json::from_value(json!({"metadata": {"name": "reader"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let allowed = json!([
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "reader", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "reader", "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        },
    ]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": allowed}).to_string();
    plane.tools().kubectl_with(["apply", "-f", "-"], &list).await.unwrap();

    let kubeconfig = plane.kubeconfig_for_service_account("default", "reader").await.unwrap();
    let reader = client(&kubeconfig).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(reader.clone(), "default");
    maps.list(&ListParams::default()).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(reader, "default");
    let refused = secrets.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");

    let token = plane.service_account_token("default", "reader", &["https://elsewhere.example"]).await.unwrap();
    assert_eq!(token.expose().split('.').count(), 3);
}

#[tokio::test]
async fn requests_are_audited_by_user_and_without_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let options = StartOptions { audit_log: Some(log.clone()), ..StartOptions::default() };
    let plane = ControlPlane::start(options).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(plane.client(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "audited"}, "stringData": {"k": "canary-4711"}})).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let deadline = Instant::now() + SOON;
    let text = loop {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        if text.contains("\"audited\"") {
            break text;
        }
        assert!(Instant::now() < deadline, "the request never showed in the audit log");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let line: serde_json::Value = text
        .lines()
        .filter(|line| line.contains("\"audited\""))
        .find_map(|line| serde_json::from_str(line).ok())
        .unwrap();
    assert_eq!(line["user"]["username"], "admin");
    assert_eq!(line["verb"], "create");
    assert_eq!(line["responseStatus"]["code"], 201);
    assert!(!text.contains("canary-4711") && !text.contains("Y2FuYXJ5LTQ3MTE"));
}

#[tokio::test]
async fn a_program_that_refuses_to_start_is_shown_with_its_last_words() {
    let options = StartOptions { extra_apiserver_args: vec!["--no-such-flag".to_owned()], ..StartOptions::default() };
    let error = ControlPlane::start(options).await.err().unwrap().to_string();
    assert!(error.contains("kube-apiserver ended") && error.contains("unknown flag: --no-such-flag"), "{error}");
}

#[tokio::test]
async fn with_all_its_parts_a_deployment_runs_and_a_namespace_empties() {
    let all = [Component::KubeControllerManager, Component::KubeScheduler, Component::Kwok];
    if let Some(missing) = all.into_iter().find(|component| !Binaries::locate(None).unwrap().has(*component)) {
        skip("with_all_its_parts_a_deployment_runs_and_a_namespace_empties", &format!("there is no {missing}"));
        return;
    }
    let plane = ControlPlane::start(StartOptions::full()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(plane.client());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(plane.client(), "shop");
    let labels = json!({"app": "web"});
    let deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}},
        },
    }))
    .unwrap();
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
    let tools = plane.tools();
    tools.kubectl(["rollout", "status", "deployment/web", "-n", "shop", "--timeout=60s"]).await.unwrap();
    tools.kubectl(["delete", "namespace", "shop", "--timeout=60s"]).await.unwrap();
    assert!(namespaces.get_opt("shop").await.unwrap().is_none());
}
