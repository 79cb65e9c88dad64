//! Measures, does not judge: a rotation of many resources with one Deployment each, held against what the same API server
//! needs for the same writes from a plain client; and the operator's memory, idle and full.
//!
//! ```sh
//! cargo build --release --bins
//! FERRVAULT_OPERATOR_BIN=target/release/ferrvault-operator FERRVAULT_DEV_BIN=target/release/ferrvault-dev \
//!   cargo run --release -p ferrvault-e2e --example scale -- --resources 1000
//! ```
//!
//! Restarts are counted by a watch of metadata: a list of a thousand workloads four times a second would cost the API
//! server about as much as the rotation that is measured.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement ends at the first thing that fails"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;
use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, marks};
use ferrvault_e2e::cluster::Cluster;
use ferrvault_e2e::objects;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;

const NAMESPACE: &str = "scale";
/// Requests of the plain client in flight: where this API server writes fastest on two cores.
const IN_FLIGHT: usize = 32;
/// Between two looks at what a watch has told.
const OFTEN: Duration = Duration::from_millis(20);
/// Between two lists.
const SELDOM: Duration = Duration::from_millis(250);
/// No step takes longer on any machine that this is worth running on.
const LIMIT: Duration = Duration::from_mins(5);

#[derive(Parser)]
/// Measures a rotation of many resources on a real API server.
struct Args {
    /// Resources, each with one Deployment.
    #[arg(long, default_value_t = 1000)]
    resources: usize,
    /// Rotations to measure.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let cluster = Cluster::bare().await;
    cluster.create_namespace(NAMESPACE).await;
    // What the plain client makes lies outside: the operator must neither keep it nor work on it.
    let release = cluster.install("scale-operator", json!({"watchNamespace": NAMESPACE})).await;
    let operator = cluster.start_operator(&release, "scale-0").await;
    operator.ready().await.unwrap();
    let pid = operator.process().pid();
    println!("idle: {} MB resident", resident_mb(pid));

    let vault = cluster.dev.vault("scale").await;
    cluster.dev.set(&vault, &[("USER", "app"), ("PASSWORD", "round-0")]).await;
    let token = cluster.dev.token(&vault).await;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let token = objects::typed(json!({"metadata": {"name": objects::TOKEN}, "stringData": {"token": token.token}}));
    secrets.create(&PostParams::default(), &token).await.unwrap();
    let connections: Api<FerrVaultConnection> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    connections.create(&PostParams::default(), &objects::typed(objects::connection(cluster.dev.url()))).await.unwrap();
    let started = Instant::now();
    let (deployments, resources) = (workloads(&cluster), resources(&cluster));
    each(args.resources, async |name| {
        let workload = objects::typed(objects::workload("Deployment", &name));
        deployments.create(&PostParams::default(), &workload).await.unwrap();
        let spec = json!({"rolloutRestart": [objects::restart("Deployment", &name)], "refreshInterval": "1h"});
        let resource = objects::typed(objects::resource(&name, "scale", spec));
        resources.create(&PostParams::default(), &resource).await.unwrap();
    })
    .await;
    let synced = async || {
        let all = resources.list(&ListParams::default()).await.unwrap();
        all.iter().filter(|it| it.status.as_ref().is_some_and(|status| status.last_synced_at.is_some())).count()
    };
    until(args.resources, SELDOM, synced).await;
    println!("{} resources made and synced in {:.1} s", args.resources, started.elapsed().as_secs_f64());
    println!("with {}: {} MB resident", args.resources, resident_mb(pid));

    let generations = Generations::watch(&cluster);
    for round in 1..=args.rounds {
        let password = format!("round-{round}");
        cluster.dev.set(&vault, &[("PASSWORD", password.as_str())]).await;
        let started = Instant::now();
        // A change of the token Secret makes every resource of the connection due at once.
        let touch = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        secrets.patch(objects::TOKEN, &PatchParams::default(), &Patch::Merge(&touch)).await.unwrap();
        let restarted = async || generations.at(i64::try_from(round).unwrap() + 1);
        until(args.resources, OFTEN, restarted).await;
        let rotation = started.elapsed().as_secs_f64();
        let recorded = async || {
            let all = resources.list(&ListParams::default()).await.unwrap();
            let settled = |it: &&FerrVaultSecret| {
                let Some(status) = &it.status else { return false };
                status.last_rollout_hash == status.content_hash
                    && status.rollouts.iter().all(|r| Some(&r.hash) == status.content_hash.as_ref())
                    && !status.rollouts.is_empty()
            };
            all.iter().filter(settled).count()
        };
        until(args.resources, SELDOM, recorded).await;
        let record = started.elapsed().as_secs_f64();
        let floor = floor(&cluster, args.resources, round).await;
        println!(
            "rotation {round}: {rotation:.2} s to the last restart, {record:.2} s to the last record; the same writes by a plain client: \
             {floor:.2} s; ratio {:.2}; {} MB resident",
            record / floor,
            resident_mb(pid)
        );
    }
    operator.stop().await.unwrap();
}

/// The three writes of a rotation, for each of as many objects of the same kinds and sizes that the operator does not see.
async fn floor(cluster: &Cluster, count: usize, round: usize) -> f64 {
    let namespace = format!("floor-{round}");
    cluster.create_namespace(&namespace).await;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &namespace);
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &namespace);
    let others: Api<FerrVaultSecret> = Api::namespaced(cluster.client.clone(), &namespace);
    let params = PatchParams { field_manager: Some("plain".to_owned()), ..PatchParams::default() };
    let sample = resources(cluster).get("r-00000").await.unwrap().status.unwrap();
    let status = |hash: &str| {
        let mut status = serde_json::to_value(&sample).unwrap();
        status["contentHash"] = json!(hash);
        status["lastRolloutHash"] = json!(hash);
        status["rollouts"][0]["hash"] = json!(hash);
        for time in ["lastAttemptedAt", "lastSyncedAt", "lastChangedAt"] {
            status[time] = json!(jiff::Timestamp::now());
        }
        json!({ "status": status })
    };
    let hash = sample.content_hash.clone().unwrap();
    each(count, async |name| {
        let marks = json!({marks::MANAGED_BY: marks::MANAGER, marks::CONTENT_HASH: hash});
        let data = json!({"USER": "app", "PASSWORD": "0"});
        let secret = json!({"metadata": {"name": name, "annotations": marks}, "stringData": data});
        secrets.create(&PostParams::default(), &objects::typed(secret)).await.unwrap();
        let workload = objects::typed(objects::workload("Deployment", &name));
        deployments.create(&PostParams::default(), &workload).await.unwrap();
        let spec = json!({"rolloutRestart": [objects::restart("Deployment", &name)], "refreshInterval": "1h"});
        let other = objects::typed(objects::resource(&name, "scale", spec));
        others.create(&PostParams::default(), &other).await.unwrap();
        others.patch_status(&name, &params, &Patch::Merge(&status(&hash))).await.unwrap();
    })
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Of the same length, as a version is.
    let next: String = hash.chars().rev().collect();
    let started = Instant::now();
    each(count, async |name| {
        let data = json!({"metadata": {"annotations": {marks::CONTENT_HASH: next}}, "data": {"PASSWORD": "MQ=="}});
        secrets.patch_metadata(&name, &params, &Patch::Merge(&data)).await.unwrap();
        let mark = json!({"ferrvault.com/restarted-at": "now", "ferrvault.com/content-hash.0": next});
        let template = json!({"spec": {"template": {"metadata": {"annotations": mark}}}});
        deployments.patch_metadata(&name, &params, &Patch::Merge(&template)).await.unwrap();
        others.patch_status(&name, &params, &Patch::Merge(&status(&next))).await.unwrap();
    })
    .await;
    started.elapsed().as_secs_f64()
}

async fn each(count: usize, act: impl AsyncFn(String)) {
    let names = (0..count).map(|number| format!("r-{number:05}"));
    futures::stream::iter(names).map(|name| act(name)).buffer_unordered(IN_FLIGHT).collect::<Vec<()>>().await;
}

/// The generation of each workload, as a watch tells it.
struct Generations(Arc<Mutex<BTreeMap<String, i64>>>);

impl Generations {
    fn watch(cluster: &Cluster) -> Self {
        let workloads: Api<PartialObjectMeta<Deployment>> = Api::namespaced(cluster.client.clone(), NAMESPACE);
        let seen = Arc::<Mutex<BTreeMap<String, i64>>>::default();
        let told = Arc::clone(&seen);
        // Ends with the process.
        tokio::spawn(async move {
            let objects = watcher(workloads, watcher::Config::default()).default_backoff().applied_objects();
            let mut objects = objects.boxed();
            while let Some(object) = objects.next().await {
                let Ok(object) = object else { continue };
                let name = object.metadata.name.unwrap_or_default();
                let generation = object.metadata.generation.unwrap_or_default();
                told.lock().unwrap_or_else(PoisonError::into_inner).insert(name, generation);
            }
        });
        Self(seen)
    }

    fn at(&self, generation: i64) -> usize {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.values().filter(|at| **at == generation).count()
    }
}

async fn until(count: usize, every: Duration, look: impl AsyncFn() -> usize) {
    let end = Instant::now() + LIMIT;
    loop {
        let found = look().await;
        if found == count {
            return;
        }
        assert!(Instant::now() < end, "{found} of {count} within {LIMIT:?}");
        tokio::time::sleep(every).await;
    }
}

fn workloads(cluster: &Cluster) -> Api<Deployment> {
    Api::namespaced(cluster.client.clone(), NAMESPACE)
}

fn resources(cluster: &Cluster) -> Api<FerrVaultSecret> {
    Api::namespaced(cluster.client.clone(), NAMESPACE)
}

fn resident_mb(pid: i32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    (kilobytes / 102.4).round() / 10.0
}
