//! Restarts that are owed and cannot be paid at once: workloads that are missing, sealed, shared, paused or stripped.

use ferrvault_api::secret::RolloutState;
use ferrvault_api::{FerrVaultSecret, condition, marks};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self, SEALED, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use crate::register::{by_default, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    scenarios![by_default:
        a_missing_workload_is_waited_for_and_restarted_once_when_it_comes,
        a_refused_workload_stops_no_other_and_is_restarted_when_it_can_be,
        two_resources_that_restart_one_workload_do_so_once_each,
        a_paused_deployment_is_stamped_and_said_to_be_paused,
        a_mark_that_a_tool_strips_is_not_put_back,
        a_workload_listed_later_is_not_restarted_for_what_it_started_with,
    ]
}

/// A resource `shop` with the key `K` that restarts these Deployments, synced; its first value is set.
async fn shop(scene: &Scene, deployments: &[&str]) -> FerrVaultSecret {
    scene.connect().await;
    scene.set(&[("K", &fresh("first"))]).await;
    let listed: Vec<Value> = deployments.iter().map(|name| restart("Deployment", name)).collect();
    scene.resource("shop", json!({"rolloutRestart": listed})).await;
    scene.synced("shop").await
}

/// Sets a new value and waits until the target has it; its version.
async fn rotate(scene: &Scene, resource: &FerrVaultSecret) -> String {
    let value = fresh("next");
    scene.set(&[("K", &value)]).await;
    scene.target(resource.target_name(), resource, &[("K", value.as_bytes())]).await
}

fn message(resource: &FerrVaultSecret, type_: &str) -> String {
    objects::condition(objects::conditions(resource), type_).unwrap().message.clone()
}

/// Owing a restart takes nothing from Ready: the data did sync.
fn assert_still_ready(resource: &FerrVaultSecret) {
    let ready = objects::condition(objects::conditions(resource), condition::READY).unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Synced"));
}

async fn a_missing_workload_is_waited_for_and_restarted_once_when_it_comes(scene: &Scene) {
    scene.workload("Deployment", "here").await;
    let resource = shop(scene, &["late", "here"]).await;
    let first = rotate(scene, &resource).await;
    scene.restarted("Deployment", "here", 1, &resource, &first).await;
    let owing = scene.until_condition("shop", condition::ROLLOUT_RESTARTED, "False", "RolloutPending").await;
    assert_eq!(
        message(&owing, condition::ROLLOUT_RESTARTED),
        "Deployment/late: does not exist; create it, or take it out of spec.rolloutRestart"
    );
    assert_still_ready(&owing);
    let states: Vec<_> = owing.status.unwrap().rollouts.into_iter().map(|entry| (entry.name, entry.state)).collect();
    assert_eq!(states, [("late".to_owned(), RolloutState::Waiting), ("here".to_owned(), RolloutState::Restarted)]);

    // Another rotation meanwhile: what comes late is restarted for the newest only.
    let second = rotate(scene, &resource).await;
    scene.restarted("Deployment", "here", 2, &resource, &second).await;
    scene.workload("Deployment", "late").await;
    scene.restarted("Deployment", "late", 1, &resource, &second).await;
    let paid = scene.until_condition("shop", condition::ROLLOUT_RESTARTED, "True", "Restarted").await;
    assert_eq!(paid.status.unwrap().last_rollout_hash.as_deref(), Some(&*second));
    scene.passes("shop", 2).await;
    assert_eq!(scene.restarts("Deployment", "late").await.0, 1);
    assert_eq!(scene.restarts("Deployment", "here").await.0, 2);
}

async fn a_refused_workload_stops_no_other_and_is_restarted_when_it_can_be(scene: &Scene) {
    scene.workload("Deployment", "sealed").await;
    scene.workload("Deployment", "open").await;
    scene.edit::<Deployment>("sealed", json!({"metadata": {"labels": {SEALED: "true"}}})).await;
    let resource = shop(scene, &["sealed", "open"]).await;
    let version = rotate(scene, &resource).await;
    scene.restarted("Deployment", "open", 1, &resource, &version).await;
    let owing = scene.until_condition("shop", condition::ROLLOUT_RESTARTED, "False", "RolloutFailed").await;
    let told = message(&owing, condition::ROLLOUT_RESTARTED);
    assert!(told.contains("Deployment/sealed: ") && told.contains("this object is sealed"), "{told}");
    assert!(!told.contains("Deployment/open"), "{told}");
    assert_still_ready(&owing);

    scene.edit::<Deployment>("sealed", json!({"metadata": {"labels": {SEALED: null}}})).await;
    scene.restarted("Deployment", "sealed", 1, &resource, &version).await;
    scene.until_condition("shop", condition::ROLLOUT_RESTARTED, "True", "Restarted").await;
    scene.passes("shop", 2).await;
    assert_eq!(scene.restarts("Deployment", "open").await.0, 1);
}

async fn two_resources_that_restart_one_workload_do_so_once_each(scene: &Scene) {
    scene.workload("Deployment", "web").await;
    let one = shop(scene, &["web"]).await;
    let listed = json!({"target": {"name": "other"}, "rolloutRestart": [restart("Deployment", "web")]});
    scene.resource("other", listed).await;
    let other = scene.synced("other").await;
    let value = fresh("next");
    scene.set(&[("K", &value)]).await;
    let versions = [
        (&one, scene.target("shop", &one, &[("K", value.as_bytes())]).await),
        (&other, scene.target("other", &other, &[("K", value.as_bytes())]).await),
    ];
    for name in ["shop", "other"] {
        scene
            .until_it(name, "owes nothing", |now: &FerrVaultSecret| {
                let status = now.status.clone().unwrap_or_default();
                let (held, paid) = (status.content_hash, status.last_rollout_hash);
                if held == paid && versions.iter().any(|(_, version)| Some(version) == paid.as_ref()) {
                    Ok(())
                } else {
                    Err("it does".to_owned())
                }
            })
            .await;
        scene.passes(name, 2).await;
    }
    let (count, annotations) = scene.restarts("Deployment", "web").await;
    assert_eq!(count, 2, "once for each");
    for (resource, version) in &versions {
        assert_eq!(annotations[marks::workload_mark(resource.metadata.uid.as_deref().unwrap())], **version);
    }
}

async fn a_paused_deployment_is_stamped_and_said_to_be_paused(scene: &Scene) {
    let mut paused = objects::workload("Deployment", "web");
    paused["spec"]["paused"] = json!(true);
    scene.create::<Deployment>(paused).await;
    let resource = shop(scene, &["web"]).await;
    let version = rotate(scene, &resource).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;
    scene
        .until_it("shop", "says that it is paused", |now: &FerrVaultSecret| {
            let told = message(now, condition::ROLLOUT_RESTARTED);
            if told.contains("Deployment/web was paused at ") { Ok(()) } else { Err(told) }
        })
        .await;
}

async fn a_mark_that_a_tool_strips_is_not_put_back(scene: &Scene) {
    scene.workload("Deployment", "web").await;
    let resource = shop(scene, &["web"]).await;
    let version = rotate(scene, &resource).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;
    let paid = |now: &FerrVaultSecret| {
        let paid = now.status.as_ref().is_some_and(|status| status.last_rollout_hash.as_deref() == Some(&*version));
        if paid { Ok(()) } else { Err("not on record".to_owned()) }
    };
    scene.until_it("shop", "the restart is on record", paid).await;
    scene.edit::<Deployment>("web", json!({"spec": {"template": {"metadata": {"annotations": null}}}})).await;
    scene.passes("shop", 3).await;
    let (count, annotations) = scene.restarts("Deployment", "web").await;
    assert_eq!((count, annotations), (2, Value::Null), "the operator's change, the tool's, and no third");
}

async fn a_workload_listed_later_is_not_restarted_for_what_it_started_with(scene: &Scene) {
    scene.workload("Deployment", "web").await;
    let resource = shop(scene, &[]).await;
    let version = rotate(scene, &resource).await;
    scene.until_condition("shop", condition::ROLLOUT_RESTARTED, "True", "Restarted").await;
    scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"rolloutRestart": [restart("Deployment", "web")]}})).await;
    scene.synced("shop").await;
    scene.passes("shop", 3).await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 0, "{version} was there before it was listed");
    let next = rotate(scene, &resource).await;
    scene.restarted("Deployment", "web", 1, &resource, &next).await;
}
