//! What the operator asks the API server for, by the API server's own audit log: exactly this, and nothing else.

use std::collections::BTreeSet;
use std::rc::Rc;

use ferrvault_e2e::audit::Request;
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::restart;
use ferrvault_e2e::own::Own;
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::register::{apart, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    let mut all = scenarios![apart:
        an_unchanged_pass_writes_its_heartbeat_and_nothing_else,
        a_rotation_with_one_workload_takes_three_writes,
        a_creation_takes_two_writes,
        at_rest_nothing_is_asked_for,
    ];
    all.push(Scenario::new("requests::workloads_are_never_listed_or_watched", never_listed).last());
    all
}

const HEARTBEAT: &str = "patch ferrvaultsecrets/status shop";

/// The requests of whole passes over `shop`: each ends with the write of its status.
fn passes(asked: &[String]) -> Vec<Vec<&str>> {
    let mut passes: Vec<Vec<&str>> = asked
        .split_inclusive(|request| request == HEARTBEAT)
        .map(|pass| pass.iter().map(String::as_str).collect())
        .collect();
    // The first one may have begun before, the last one may be under way.
    passes.remove(0);
    if passes.last().is_some_and(|pass| pass.last() != Some(&HEARTBEAT)) {
        passes.pop();
    }
    passes
}

const UNCHANGED: [&str; 3] = ["get secrets main-token", "get secrets shop", HEARTBEAT];

async fn an_unchanged_pass_writes_its_heartbeat_and_nothing_else(own: &Own) {
    let scene = &own.scene;
    let _operator = own.start("a").await;
    scene.workload("Deployment", "web").await;
    own.shop(&fresh("value"), json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    scene.passes("shop", 1).await;
    let before = own.asked(0).len();
    scene.passes("shop", 4).await;
    let asked = own.asked(before);
    let passes = passes(&asked);
    assert!(passes.len() >= 3, "{asked:?}");
    for pass in passes {
        assert_eq!(pass, UNCHANGED);
    }
}

async fn a_rotation_with_one_workload_takes_three_writes(own: &Own) {
    let scene = &own.scene;
    let _operator = own.start("a").await;
    scene.workload("Deployment", "web").await;
    let (resource, _) = own.shop(&fresh("first"), json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    scene.passes("shop", 1).await;
    let before = own.asked(0).len();
    scene.passes("shop", 1).await;
    let next = fresh("next");
    scene.set(&[("K", &next)]).await;
    let version = scene.target("shop", &resource, &[("K", next.as_bytes())]).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;
    scene.passes("shop", 2).await;
    let asked = own.asked(before);
    let (rotations, others): (Vec<_>, Vec<_>) =
        passes(&asked).into_iter().partition(|pass| pass.contains(&"patch secrets shop"));
    let rotation = [
        "get secrets main-token",
        "get secrets shop",
        "get deployments web",
        "patch secrets shop",
        "patch deployments web",
        HEARTBEAT,
    ];
    assert_eq!(rotations, [rotation]);
    for pass in others {
        assert_eq!(pass, UNCHANGED, "before and after");
    }
}

async fn a_creation_takes_two_writes(own: &Own) {
    let scene = &own.scene;
    let _operator = own.start("a").await;
    // The first one makes the connection's finalizer and its first check, which are not this resource's.
    own.shop(&fresh("value"), json!({"refreshInterval": "1h"})).await;
    scene.until_connection("main", "True", "Reachable").await;
    let before = until_quiet(own).await;
    scene.resource("second", json!({"refreshInterval": "1h"})).await;
    scene.synced("second").await;
    let mut asked = own.asked(0);
    asked.drain(..before);
    until_quiet(own).await;
    let asked = own.asked(before);
    let (of_connection, mut rest): (Vec<_>, Vec<_>) =
        asked.iter().map(String::as_str).partition(|request| request.contains("ferrvaultconnections"));
    // Events are told beside the pass and have no name before the answer.
    let events = rest.iter().filter(|request| request.starts_with("create events")).count();
    rest.retain(|request| !request.starts_with("create events"));
    let tokens = rest.iter().filter(|request| **request == "get secrets main-token").count();
    rest.retain(|request| *request != "get secrets main-token");
    let creation = ["get secrets second -> 404", "create secrets second", "patch ferrvaultsecrets/status second"];
    assert_eq!(rest, creation);
    assert_eq!(events, 1, "Ready is new");
    // Whoever else begins to use a connection is no reason to probe it.
    assert!(tokens == 1 && of_connection.is_empty(), "{tokens}, {of_connection:?}");
}

async fn at_rest_nothing_is_asked_for(own: &Own) {
    let scene = &own.scene;
    let _operator = own.start("a").await;
    // No schedule, so nothing is due; and what the operator itself wrote must not make anything due.
    own.shop(&fresh("value"), json!({"refreshInterval": "0s"})).await;
    let before = until_quiet(own).await;
    // Passes of another namespace measure the time: eight of them are eight seconds.
    let other = Own::new(&scene.cluster, "beside", json!({})).await;
    let _beside = other.start("a").await;
    other.shop(&fresh("value"), json!({})).await;
    other.scene.passes("shop", 8).await;
    assert_eq!(own.asked(before), Vec::<String>::new());
}

/// How many requests there were when no more came for three looks.
async fn until_quiet(own: &Own) -> usize {
    let seen = std::cell::Cell::new((0, 0));
    own.scene
        .until("no more requests", async || {
            let now = own.asked(0).len();
            let (count, looks) = seen.get();
            seen.set(if now == count { (count, looks + 1) } else { (now, 0) });
            if looks >= 10 { Ok(now) } else { Err(format!("{now} requests")) }
        })
        .await
}

/// Of all that was asked in this whole run, by any operator of it.
async fn never_listed(world: Rc<World>) {
    let installed = world.installed().await;
    let scene = Scene::new(&installed.cluster, "never-listed").await;
    scene.log(installed.operator.process().log());
    scene.workload("Deployment", "web").await;
    scene.connect().await;
    scene.set(&[("K", &fresh("first"))]).await;
    scene.resource("shop", json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    let resource = scene.synced("shop").await;
    let next = fresh("next");
    scene.set(&[("K", &next)]).await;
    let version = scene.target("shop", &resource, &[("K", next.as_bytes())]).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;
    scene.close().await;

    let clusters = [Some(Rc::clone(&installed.cluster)), world.apart_if_started()];
    for cluster in clusters.into_iter().flatten() {
        let of_operators = |request: &Request| request.user.starts_with("system:serviceaccount:");
        let requests: Vec<Request> = cluster.requests().into_iter().filter(of_operators).collect();
        let apps: Vec<&Request> = requests.iter().filter(|request| request.group == "apps").collect();
        let other = apps.iter().find(|request| !matches!(request.verb.as_str(), "get" | "patch"));
        assert_eq!(other, None);
        let elsewhere = requests.iter().find(|request| {
            request.verb == "delete" || request.verb == "deletecollection" || request.resource == "pods"
        });
        assert_eq!(elsewhere, None);
        // A namespace that is going refuses new objects; that is not for want of a right.
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let there: BTreeSet<String> = namespaces
            .list(&ListParams::default())
            .await
            .unwrap()
            .into_iter()
            .filter_map(|it| it.metadata.name)
            .collect();
        let refused = requests.iter().filter(|it| it.code == 403 && there.contains(&it.namespace));
        let refused: Vec<String> = refused.map(Request::told).collect();
        if Rc::ptr_eq(&cluster, &installed.cluster) {
            assert!(apps.len() >= 2, "a workload was read and patched");
            assert_eq!(refused, Vec::<String>::new(), "the chart gives every right that is used");
        }
    }
}
