//! The operator as a process among others: how it starts, ends, takes turns and survives being killed.

use std::rc::Rc;
use std::time::{Duration, Instant};

use ferrvault_api::condition;
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self, restart};
use ferrvault_e2e::own::Own;
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::world::World;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::json;
use xtask::programs::Operator;
use xtask::repository;

use crate::register::{apart, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    let mut all = scenarios![apart:
        sigterm_ends_it_in_order_even_while_ferrvault_hangs,
        a_restart_of_the_operator_restarts_nothing_and_misses_nothing,
        of_two_operators_one_works_and_the_other_takes_over,
    ];
    all.push(Scenario::new("process::settings_that_cannot_work_are_refused_in_one_line", async |_| refused().await));
    all
}

/// To be the last on the list: nothing can be played on the default installation after it.
pub(crate) fn the_end() -> Scenario<World> {
    Scenario::new("process::the_default_installation_ends_in_order", end_of_the_default).last()
}

/// After everything that was played on it: dozens of resources, connections that hang, namespaces that are gone.
async fn end_of_the_default(world: Rc<World>) {
    let installed = world.installed().await;
    assert_eq!(installed.operator.probe("healthz").await.unwrap().0, 200);
    assert_eq!(installed.operator.probe("readyz").await.unwrap().0, 200);
    let log = std::fs::read_to_string(installed.operator.process().log()).unwrap();
    assert!(!log.contains("panicked"), "{log}");
    installed.operator.stop().await.unwrap();
}

/// The name of the pod that holds the lease.
async fn holder(own: &Own) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(own.scene.cluster.client.clone(), &own.release.namespace);
    let lease = leases.get_opt("ferrvault-operator.ferrvault.com").await.unwrap()?;
    let holder = lease.spec?.holder_identity?;
    Some(holder.split('_').next().unwrap().to_owned()).filter(|name| !name.is_empty())
}

async fn until_holder(own: &Own, pod: &str) {
    own.scene
        .until(&format!("{pod} holds the lease"), async || {
            let holder = holder(own).await;
            if holder.as_deref() == Some(pod) { Ok(()) } else { Err(format!("{holder:?} does")) }
        })
        .await;
}

/// How many passes an operator has done, by its own metrics.
async fn passes_done(operator: &Operator) -> f64 {
    let page = operator.metrics().await.unwrap();
    let counts = page.lines().filter(|line| line.starts_with("ferrvault_secret_sync_duration_seconds_count"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

async fn sigterm_ends_it_in_order_even_while_ferrvault_hangs(own: &Own) {
    let scene = &own.scene;
    let operator = own.start("a").await;
    own.shop(&fresh("value"), json!({})).await;
    let began = Instant::now();
    operator.stop().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "idle, it took {:?}", began.elapsed());
    assert_eq!(holder(own).await, None, "the lease is given back");

    let operator = own.start("b").await;
    scene.passes("shop", 1).await;
    scene.cluster.dev.spoil(&scene.name, json!({"kind": "stall"})).await;
    scene
        .until("a call hangs", async || {
            let asked = scene.cluster.dev.asked(0).await;
            let hangs = asked.iter().any(|asked| asked.vault.as_ref() == Some(&scene.name) && asked.status.is_none());
            if hangs { Ok(()) } else { Err("none".to_owned()) }
        })
        .await;
    // Status 0 within the grace period of the chart's pods, or this is an error.
    operator.stop().await.unwrap();
    assert_eq!(holder(own).await, None, "the lease is given back");
    scene.cluster.dev.heal(&scene.name).await;
    let _operator = own.start("c").await;
    scene.passes("shop", 1).await;
    scene.synced("shop").await;
}

async fn a_restart_of_the_operator_restarts_nothing_and_misses_nothing(own: &Own) {
    let scene = &own.scene;
    scene.workload("Deployment", "web").await;
    let first = fresh("first");
    let operator = own.start("a").await;
    let (resource, _) = own.shop(&first, json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    operator.stop().await.unwrap();
    let before = scene.get::<Secret>("shop").await.metadata.resource_version;
    let operator = own.start("b").await;
    scene.passes("shop", 2).await;
    assert_eq!(scene.get::<Secret>("shop").await.metadata.resource_version, before, "a warm start writes no Secret");
    assert_eq!(scene.restarts("Deployment", "web").await.0, 0);

    // Killed outright and rotated meanwhile: restarted once when one is back. The lease of the killed one runs out first.
    operator.process().kill().await;
    let second = fresh("second");
    scene.set(&[("K", &second)]).await;
    let operator = own.start("c").await;
    let version = scene.target("shop", &resource, &[("K", second.as_bytes())]).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;
    // And killed again with nothing owed.
    scene.passes("shop", 1).await;
    operator.stop().await.unwrap();
    let _operator = own.start("d").await;
    scene.passes("shop", 2).await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 1);
}

async fn of_two_operators_one_works_and_the_other_takes_over(own: &Own) {
    let scene = &own.scene;
    let first = own.start("first").await;
    until_holder(own, "first").await;
    // A standby is ready: it could take over at once.
    let second = own.start("second").await;
    scene.workload("Deployment", "web").await;
    let value = fresh("value");
    let (resource, _) = own.shop(&value, json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    scene.passes("shop", 3).await;
    assert!(passes_done(&first).await >= 3.0);
    assert!(passes_done(&second).await.abs() < 0.5, "the standby does nothing");

    first.process().kill().await;
    let next = fresh("next");
    scene.set(&[("K", &next)]).await;
    until_holder(own, "second").await;
    let version = scene.target("shop", &resource, &[("K", next.as_bytes())]).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;

    // Ended in order it hands over at once, without waiting for the lease to run out (15 s).
    let third = own.start("third").await;
    second.stop().await.unwrap();
    let began = Instant::now();
    until_holder(own, "third").await;
    assert!(began.elapsed() < Duration::from_secs(10), "handed over after {:?}", began.elapsed());
    scene.passes("shop", 2).await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 1);
    assert!(passes_done(&third).await >= 2.0);
    let now = scene.get("shop").await;
    let restarted = objects::condition(objects::conditions(&now), condition::ROLLOUT_RESTARTED).unwrap();
    assert_eq!(restarted.status, "True");
}

/// Each refusal: status 2, and one line that names flag, value and limit.
async fn refused() {
    for (flags, words) in [
        (&["--reconcile-timeout=30s"][..], &["--reconcile-timeout=30s", "at least 30.625s"][..]),
        (&["--reconcile-timeout=0"], &["--reconcile-timeout=0", "at least 30.625s"]),
        (&["--reconcile-timeout=-1m"], &["--reconcile-timeout=-1m", "at least 30.625s"]),
        (&["--stall-threshold=10m"], &["--stall-threshold=10m", "more than 10m0s"]),
        (&["--stall-threshold=15m", "--reconcile-timeout=15m"], &["--stall-threshold=15m", "more than 15m0s"]),
        (&["--reconcile-timeout=soon"], &["--reconcile-timeout", "soon"]),
        (&["--default-refresh-interval=-1s"], &["--default-refresh-interval", "-1s"]),
        (&["--zap-log-level=loud"], &["--log-level", "loud"]),
    ] {
        let started = tokio::process::Command::new(repository::operator_bin())
            .args(flags)
            .env_remove("KUBECONFIG")
            .kill_on_drop(true)
            .output();
        let ended = tokio::time::timeout(Duration::from_secs(30), started).await.expect("it ends").unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{flags:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{flags:?}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{flags:?}: {words:?} is not in: {said}");
        assert!(ended.stdout.is_empty());
    }
}
