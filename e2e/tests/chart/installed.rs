//! Installed on a real API server: rights, admission, what outlives a release.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, CustomResourceExt};
use serde_json::{Value, json};
use xtask::control_plane::{Component, ControlPlane, StartOptions};
use xtask::test_run::skip;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};

use crate::{HOME, RELEASE, chart};

/// A control plane with the chart installed, as far as this machine can have one.
async fn installed(test: &str, values: &[&str], apiserver: &[&str]) -> Option<ControlPlane> {
    let options = StartOptions {
        extra_apiserver_args: apiserver.iter().map(|&arg| arg.to_owned()).collect(),
        ..StartOptions::default()
    };
    let plane = ControlPlane::start(options).await.unwrap();
    if !plane.binaries().has(Component::Helm) {
        skip(test, "no helm");
        return None;
    }
    for namespace in ["shop", "other"] {
        plane.tools().kubectl(["create", "namespace", namespace]).await.unwrap();
    }
    let chart = chart();
    let mut args = vec!["install", RELEASE, &chart, "-n", HOME, "--create-namespace"];
    for value in values {
        args.extend(["--set", value]);
    }
    let notes = plane.tools().helm(args).await.unwrap();
    assert!(notes.contains(&format!("is installed as {RELEASE}")), "{notes}");
    Some(plane)
}

fn account() -> String {
    format!("system:serviceaccount:{HOME}:{RELEASE}-ferrvault-operator")
}

/// What is asked for: `resource.group`, `resource.group/subresource`, and a name after `=`.
fn asked(namespace: &str, verb: &str, what: &str) -> ResourceAttributes {
    let (what, name) = what.split_once('=').map_or((what, None), |(what, name)| (what, Some(name)));
    let (what, subresource) = what.split_once('/').map_or((what, None), |(what, below)| (what, Some(below)));
    let (resource, group) = what.split_once('.').unwrap_or((what, ""));
    let text = |text: &str| Some(text.to_owned());
    ResourceAttributes {
        namespace: text(namespace),
        verb: text(verb),
        group: text(group),
        resource: text(resource),
        subresource: subresource.and_then(text),
        name: name.and_then(text),
        ..ResourceAttributes::default()
    }
}

/// Whether the service account may do `verb` on `what` in `namespace`, as the API server judges.
async fn may(plane: &ControlPlane, namespace: &str, verb: &str, what: &str) -> bool {
    let spec = SubjectAccessReviewSpec {
        user: Some(account()),
        // What every authenticated account may do is not the chart's gift, but it is asked with it.
        groups: Some(vec!["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()]),
        resource_attributes: Some(asked(namespace, verb, what)),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let answer = Api::all(plane.client()).create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}

#[tokio::test]
async fn the_account_may_do_what_the_operator_does_and_nothing_else() {
    let Some(plane) = installed("the_account_may_do_what_the_operator_does", &[], &[]).await else { return };
    let needed = [
        ("get list watch patch", "ferrvaultsecrets.ferrvault.com"),
        ("patch", "ferrvaultsecrets.ferrvault.com/status"),
        ("update", "ferrvaultsecrets.ferrvault.com/finalizers"),
        ("get list watch patch", "ferrvaultconnections.ferrvault.com"),
        ("patch", "ferrvaultconnections.ferrvault.com/status"),
        ("get list watch create patch", "secrets"),
        ("get patch", "deployments.apps"),
        ("get patch", "statefulsets.apps"),
        ("get patch", "daemonsets.apps"),
        ("create", "events.events.k8s.io"),
    ];
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    for (allowed, what) in needed {
        let allowed: Vec<_> = allowed.split(' ').collect();
        for verb in verbs {
            assert_eq!(may(&plane, "shop", verb, what).await, allowed.contains(&verb), "{verb} {what}");
        }
    }
    for what in
        ["pods", "configmaps", "namespaces", "nodes", "leases.coordination.k8s.io", "roles.rbac.authorization.k8s.io"]
    {
        for verb in ["get", "list", "create", "patch"] {
            assert!(!may(&plane, "shop", verb, what).await, "{verb} {what}");
        }
    }
    let lease = "leases.coordination.k8s.io=ferrvault-operator.ferrvault.com";
    for (verb, what, expected) in [
        ("create", "leases.coordination.k8s.io", true),
        ("get", lease, true),
        ("update", lease, true),
        ("update", "leases.coordination.k8s.io=of-somebody-else", false),
        ("get", "secrets=ferrvault-operator-key", true),
    ] {
        assert_eq!(may(&plane, HOME, verb, what).await, expected, "{verb} {what} at home");
    }
}

#[tokio::test]
async fn with_a_watched_namespace_the_account_sees_no_other() {
    let test = "with_a_watched_namespace_the_account_sees_no_other";
    let Some(plane) = installed(test, &["watchNamespace=shop"], &[]).await else { return };
    for (namespace, verb, what, expected) in [
        ("shop", "list", "ferrvaultsecrets.ferrvault.com", true),
        ("shop", "patch", "secrets", true),
        ("other", "list", "ferrvaultsecrets.ferrvault.com", false),
        ("other", "get", "secrets", false),
        ("other", "patch", "deployments.apps", false),
        // At home only its own key: neither other Secrets there nor a list of them.
        (HOME, "create", "secrets", true),
        (HOME, "get", "secrets=ferrvault-operator-key", true),
        (HOME, "get", "secrets=of-somebody-else", false),
        (HOME, "list", "secrets", false),
        (HOME, "patch", "secrets=ferrvault-operator-key", false),
        (HOME, "create", "leases.coordination.k8s.io", true),
    ] {
        assert_eq!(may(&plane, namespace, verb, what).await, expected, "{verb} {what} in {namespace}");
    }
}

/// Some clusters let only those name an owner to block who could block it otherwise.
#[tokio::test]
async fn owner_references_are_accepted_where_their_permission_is_enforced() {
    let admission = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"];
    let test = "owner_references_are_accepted_where_their_permission_is_enforced";
    let Some(plane) = installed(test, &[], &admission).await else { return };
    let resource = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret",
                          "metadata": {"name": "db", "namespace": "shop"},
                          "spec": {"connectionRef": {"name": "main"}, "vault": "db"}});
    let tools = plane.tools();
    tools.kubectl_with(["create", "-f", "-"], &resource.to_string()).await.unwrap();
    let uid = tools.kubectl(["-n", "shop", "get", "fvs", "db", "-o", "jsonpath={.metadata.uid}"]).await.unwrap();
    let owner = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret", "name": "db", "uid": uid,
                       "controller": true, "blockOwnerDeletion": true});
    let target = json!({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": "db", "namespace": "shop", "ownerReferences": [owner]}});
    let account = format!("--as={}", account());
    tools.kubectl_with(["create", "-f", "-", &account], &target.to_string()).await.unwrap();
}

#[tokio::test]
async fn the_definitions_and_the_resources_outlive_the_release_unless_asked_otherwise() {
    let Some(plane) = installed("the_definitions_outlive_the_release", &[], &[]).await else { return };
    let tools = plane.tools();
    let connection = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultConnection",
                            "metadata": {"name": "main", "namespace": "shop"},
                            "spec": {"url": "https://vault.example", "tokenSecretRef": {"name": "t", "key": "t"}}});
    tools.kubectl_with(["create", "-f", "-"], &connection.to_string()).await.unwrap();

    tools.helm(["uninstall", RELEASE, "-n", HOME]).await.unwrap();
    let deployments = tools.kubectl(["-n", HOME, "get", "deployments,services,roles", "-o", "name"]).await.unwrap();
    assert_eq!(deployments, "", "the release is gone");
    let found = tools.kubectl(["-n", "shop", "get", "fvc", "-o", "name"]).await.unwrap();
    assert_eq!(found.trim(), "ferrvaultconnection.ferrvault.com/main");

    // The next release, whatever its name, takes them over; this one is to take them along when it goes.
    let chart = chart();
    let again = ["install", "second", &chart, "-n", "other", "--take-ownership", "--set", "crds.keep=false"];
    tools.helm(again).await.unwrap();
    tools.helm(["uninstall", "second", "-n", "other", "--wait"]).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(plane.client());
    for name in [FerrVaultSecret::crd_name(), FerrVaultConnection::crd_name()] {
        assert!(definitions.get_opt(name).await.unwrap().is_none(), "{name} is still there");
    }
}

#[tokio::test]
async fn its_pods_pass_the_restricted_pod_security_standard() {
    let values = ["oidcToken.enabled=true", "oidcToken.allowOrigins={https://api.example.com}"];
    let Some(plane) = installed("its_pods_pass_the_restricted_standard", &values, &[]).await else { return };
    let tools = plane.tools();
    let enforce = "pod-security.kubernetes.io/enforce=restricted";
    tools.kubectl(["label", "namespace", HOME, enforce]).await.unwrap();
    let deployment = tools.kubectl(["-n", HOME, "get", "deployments", "-o", "json"]).await.unwrap();
    let deployments: Value = serde_json::from_str(&deployment).unwrap();
    let mut spec = deployments["items"][0]["spec"]["template"]["spec"].clone();
    let pod = |spec: &Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": HOME}, "spec": spec})
            .to_string()
    };
    let dry = ["create", "--dry-run=server", "-f", "-"];
    tools.kubectl_with(dry, &pod(&spec)).await.unwrap();
    // The standard is in force: without the chart's settings the same pod is refused.
    spec["containers"][0]["securityContext"] = json!({});
    let refused = tools.kubectl_with(dry, &pod(&spec)).await.unwrap_err().to_string();
    assert!(refused.contains("violates PodSecurity"), "{refused}");
}
