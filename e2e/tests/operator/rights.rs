//! What the operator is not allowed to do: it says which verb on what, on the resource or in its readiness, and goes on
//! when it may.

use ferrvault_api::condition;
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self, TOKEN, restart};
use ferrvault_e2e::own::{Own, rules_for};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::world::World;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::json;
use xtask::programs::Operator;

use crate::register::{apart, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    scenarios![apart:
        a_target_that_may_not_be_read,
        a_workload_that_may_not_be_patched,
        a_resource_that_may_not_be_listed,
        an_operator_key_that_may_not_be_read,
    ]
}

async fn a_target_that_may_not_be_read(own: &Own) {
    let scene = &own.scene;
    let _operator = own.start("a").await;
    let first = fresh("first");
    let (resource, version) = own.shop(&first, json!({})).await;
    own.change_rights(|rules| {
        let secrets = rules_for(rules, "secrets").next().unwrap();
        secrets.verbs.retain(|verb| verb != "get");
        rules.push(PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["secrets".to_owned()]),
            resource_names: Some(vec![TOKEN.to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        });
    })
    .await;
    let refused = scene.until_condition("shop", condition::READY, "False", "SecretReadFailed").await;
    let told = &objects::condition(objects::conditions(&refused), condition::READY).unwrap().message;
    let words = format!("cannot get secrets in the namespace {}", scene.name);
    assert!(told.contains(&words) && told.contains("reading Secret shop"), "{told}");

    own.change_rights(|rules| {
        rules.pop();
        rules_for(rules, "secrets").next().unwrap().verbs.push("get".to_owned());
    })
    .await;
    scene.synced("shop").await;
    assert_eq!(scene.target("shop", &resource, &[("K", first.as_bytes())]).await, version);
}

async fn a_workload_that_may_not_be_patched(own: &Own) {
    let scene = &own.scene;
    let _operator = own.start("a").await;
    scene.workload("Deployment", "web").await;
    scene.workload("StatefulSet", "db").await;
    let listed = json!([restart("StatefulSet", "db"), restart("Deployment", "web")]);
    let (resource, _) = own.shop(&fresh("first"), json!({"rolloutRestart": listed})).await;
    own.change_rights(|rules| {
        let apps = rules_for(rules, "statefulsets").next().unwrap();
        apps.resources.as_mut().unwrap().retain(|name| name != "statefulsets");
        let read_only = PolicyRule {
            resources: Some(vec!["statefulsets".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..apps.clone()
        };
        rules.push(read_only);
    })
    .await;
    let next = fresh("next");
    scene.set(&[("K", &next)]).await;
    let version = scene.target("shop", &resource, &[("K", next.as_bytes())]).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;
    let owing = scene.until_condition("shop", condition::ROLLOUT_RESTARTED, "False", "RolloutFailed").await;
    let told = &objects::condition(objects::conditions(&owing), condition::ROLLOUT_RESTARTED).unwrap().message;
    let words = format!("cannot patch statefulsets.apps in the namespace {}", scene.name);
    assert!(told.starts_with("StatefulSet/db: ") && told.contains(&words), "{told}");
    let ready = objects::condition(objects::conditions(&owing), condition::READY).unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Synced"));

    own.change_rights(|rules| rules.last_mut().unwrap().verbs.push("patch".to_owned())).await;
    scene.restarted("StatefulSet", "db", 1, &resource, &version).await;
    scene.until_condition("shop", condition::ROLLOUT_RESTARTED, "True", "Restarted").await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 1);
}

async fn a_resource_that_may_not_be_listed(own: &Own) {
    own.change_rights(|rules| {
        rules_for(rules, "ferrvaultsecrets").next().unwrap().verbs.retain(|verb| verb != "list");
    })
    .await;
    let operator = own.start_unready("a").await;
    let words = format!("cannot list ferrvaultsecrets.ferrvault.com in the namespace {}", own.scene.name);
    says_in_readiness_and_log(own, &operator, &words).await;
    own.change_rights(|rules| rules_for(rules, "ferrvaultsecrets").next().unwrap().verbs.push("list".to_owned())).await;
    operator.ready().await.unwrap();
    own.shop(&fresh("value"), json!({})).await;
}

async fn an_operator_key_that_may_not_be_read(own: &Own) {
    own.change_rights_at_home(|rules| {
        for rule in rules_for(rules, "secrets") {
            rule.verbs.retain(|verb| verb != "get");
        }
        rules.retain(|rule| !rule.verbs.is_empty());
    })
    .await;
    let operator = own.start_unready("a").await;
    let words = format!("cannot get secrets in the namespace {}", own.release.namespace);
    says_in_readiness_and_log(own, &operator, &words).await;
    own.change_rights_at_home(|rules| {
        rules.push(PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["secrets".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        });
    })
    .await;
    operator.ready().await.unwrap();
    own.shop(&fresh("value"), json!({})).await;
}

/// Not ready, and both `/readyz` and the log say why; the process lives on and is not called unhealthy for it.
async fn says_in_readiness_and_log(own: &Own, operator: &Operator, words: &str) {
    own.scene
        .until("readiness says what is missing", async || {
            let (status, says) = operator.probe("readyz").await.unwrap();
            if status == 503 && says.contains(words) { Ok(()) } else { Err(format!("{status} {says}")) }
        })
        .await;
    operator.process().wait_for_line(words, ferrvault_e2e::eventually::SOON).await.unwrap();
    assert_eq!(operator.probe("healthz").await.unwrap().0, 200, "a restart cures nothing here");
    assert!(operator.process().is_running());
}
