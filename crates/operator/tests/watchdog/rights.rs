//! Rights, asked for before they are needed: those that calls need, those that readiness asks for and those that the chart
//! grants are the same ones.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, marks};
use ferrvault_operator::cluster::rights::{needed, until_granted};
use ferrvault_operator::cluster::watch::Scope;
use ferrvault_operator::key::ObjectKey;
use ferrvault_testkit::{ApiServer, Call, Fault, build};
use serde_json::json;

use crate::ward::{MINUTE, NS, OPERATOR, WATCHDOG, Ward, resource};

/// The rules of the chart, as they are written.
const RULES: &str = include_str!("../../../../charts/ferrvault-operator/templates/_rbac.tpl");

/// What readiness asks for: `patch ferrvaultsecrets/status.ferrvault.com`.
fn asked_for() -> BTreeSet<String> {
    let key = ObjectKey::new("ops", "the-key");
    let lease = ObjectKey::new("ops", "the-lease");
    needed(&Scope::Cluster, &key, Some(&lease)).iter().map(ToString::to_string).collect()
}

fn right(verb: &str, group: &str, resource: &str) -> String {
    if group.is_empty() { format!("{verb} {resource}") } else { format!("{verb} {resource}.{group}") }
}

/// What the template called `name` grants, written as [`asked_for`] writes it.
fn granted(name: &str) -> BTreeSet<String> {
    let block = RULES.split("{{- define ").find(|block| block.starts_with(&format!("\"ferrvault-operator.{name}\"")));
    let list = |line: &str, field: &str| {
        let inner =
            line.trim_start_matches(['-', ' ']).strip_prefix(field)?.trim().strip_prefix('[')?.strip_suffix(']')?;
        Some(inner.split(',').map(|item| item.trim().trim_matches('"').to_owned()).collect::<Vec<_>>())
    };
    let (mut rights, mut groups, mut resources, mut named) = (BTreeSet::new(), Vec::new(), Vec::new(), String::new());
    for line in block.unwrap().lines() {
        if let Some(found) = list(line, "apiGroups:") {
            (groups, named) = (found, String::new());
        } else if let Some(found) = list(line, "resourceNames:") {
            let name = if found[0].contains("keySecretName") { "the-key" } else { "the-lease" };
            named = format!(" named {name} in namespace ops");
        } else if let Some(found) = list(line, "resources:") {
            resources = found;
        } else if let Some(verbs) = list(line, "verbs:") {
            for (group, resource) in
                groups.iter().flat_map(|group| resources.iter().map(move |resource| (group, resource)))
            {
                rights.extend(verbs.iter().map(|verb| right(verb, group, resource) + &named));
            }
        }
    }
    rights
}

#[test]
fn readiness_asks_for_what_the_chart_grants() {
    let granted: BTreeSet<_> = granted("resourceRules").union(&granted("ownRules")).cloned().collect();
    // Asked of the API server by other parts of it, and only in some clusters; made once, perhaps by somebody else.
    let only_granted = ["update ferrvaultsecrets/finalizers.ferrvault.com", "create leases.coordination.k8s.io"];
    assert!(granted.len() > 20, "{granted:#?}");
    let unasked: Vec<_> = granted.difference(&asked_for()).cloned().collect();
    assert_eq!(unasked.iter().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(only_granted));
    let ungranted: Vec<_> = asked_for().difference(&granted).cloned().collect();
    assert!(ungranted.is_empty(), "{ungranted:?}");
}

/// Stores an object that this version cannot read, as one that was stored under another schema.
fn unreadable<K: kube::CustomResourceExt>(ward: &Ward, field: &str, object: &build::Built) {
    let mut definition = serde_json::to_value(K::crd()).unwrap();
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"][field] = json!({"x-kubernetes-preserve-unknown-fields": true});
    spec.as_object_mut().unwrap().remove("x-kubernetes-validations");
    ward.api.install(&definition);
    ward.api.apply(&object.clone().set(&["spec", field], json!({"not": "a text"})));
}

#[tokio::test(start_paused = true)]
async fn readiness_asks_for_what_is_called() {
    let ward = Ward::with(&[resource("other", "1m")]).await;
    // Everything that makes a call: three kinds of workloads, one of which comes late, the mark of the Go operator, an
    // edited target, a connection that is not used any more, and objects that cannot be read.
    ward.api.apply(&build::deployment(NS, "api"));
    ward.api.apply(&build::daemon_set(NS, "agent"));
    let all = resource("db", "1m").restarts("Deployment", "api").restarts("DaemonSet", "agent");
    ward.api.apply(&all.restarts("StatefulSet", "store").finalizer(marks::LEGACY_SECRET_FINALIZER));
    ward.run_for(MINUTE).await;
    ward.vault.set("db", "PASSWORD", "second");
    ward.run_for(2 * MINUTE).await;
    ward.api.apply(&build::stateful_set(NS, "store"));
    ward.run_for(2 * MINUTE).await;
    assert_eq!(ward.says("db", "RolloutRestarted"), "True Restarted");
    let used_for_a_while = build::connection(NS, "second").url("http://127.0.0.1:1").token_in("token", "token");
    ward.api.apply(&used_for_a_while);
    ward.edit("other", |spec| spec["connectionRef"]["name"] = "second".into());
    ward.run_for(MINUTE).await;
    ward.edit("other", |spec| spec["connectionRef"]["name"] = "conn".into());
    ward.run_for(MINUTE).await;
    unreadable::<FerrVaultSecret>(&ward, "vault", &resource("strange", "1m"));
    unreadable::<FerrVaultConnection>(&ward, "url", &used_for_a_while);
    ward.run_for(5 * MINUTE).await;

    let is_counted = |call: &Call| [OPERATOR, WATCHDOG].contains(&&*call.who) && !call.resource.starts_with('/');
    let calls = ward.api.journal().into_iter().map(|record| record.call).filter(is_counted);
    let called: BTreeSet<_> = calls
        .map(|call| {
            let resource = if call.subresource.is_empty() { "" } else { "/" };
            right(call.verb.as_str(), &call.group, &format!("{}{resource}{}", call.resource, call.subresource))
        })
        .collect();
    // The key and the lease are asked for by name, and by other tests.
    let asked: BTreeSet<_> = asked_for().into_iter().filter(|right| !right.contains(" named ")).collect();
    assert_eq!(called, asked);
}

#[tokio::test(start_paused = true)]
async fn each_right_that_is_missing_is_named_and_asked_for_again_until_it_is_granted() {
    let api = ApiServer::default();
    api.deny(OPERATOR, "watch", "secrets");
    api.deny(OPERATOR, "patch", "deployments");
    api.deny(OPERATOR, "patch", "ferrvaultsecrets/status");
    let client = api.client_of(OPERATOR, "default");
    let key = ObjectKey::new("ferrvault-system", "ferrvault-operator-key");
    let rights = needed(&Scope::Cluster, &key, None);
    let count = rights.len();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let tell = Arc::clone(&heard);
    let task = tokio::spawn(async move {
        until_granted(&client, rights, |missing| {
            let line = match missing {
                Ok(missing) => missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                Err(error) => error.user_message(),
            };
            tell.lock().unwrap().push(line);
        })
        .await;
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let all = "patch ferrvaultsecrets/status.ferrvault.com, watch secrets, patch deployments.apps";
    assert_eq!(*heard.lock().unwrap(), [all]);
    assert_eq!(api.last_call(), count, "each is asked for once");

    api.allow_again(OPERATOR, "watch", "secrets");
    api.allow_again(OPERATOR, "patch", "ferrvaultsecrets/status");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(heard.lock().unwrap().last().unwrap(), "patch deployments.apps");
    assert_eq!(api.last_call(), count + 3, "only what was missing is asked for again");

    // An API server that does not answer tells nothing about rights.
    api.on_call(|_| Fault::Refuse(503));
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(heard.lock().unwrap().last().unwrap().contains("503"), "{heard:?}");

    api.clear_faults();
    api.allow_again(OPERATOR, "patch", "deployments");
    tokio::time::timeout(Duration::from_secs(20), task).await.unwrap().unwrap();
    assert_eq!(heard.lock().unwrap().last().unwrap(), "");
}
