//! The model is honest: every scenario of the simulation, played with the real controllers on a real API server, has to
//! lead to the objects that the simulation leads to, after each stage of its script.
//!
//! Faults are the simulation's business; here nothing goes wrong on purpose. Each scenario has a namespace, operators and
//! a FerrVault of its own, so that many can be played side by side.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a step that fails is a test that fails"
)]

use std::process::ExitCode;
use std::rc::Rc;

use ferrvault_e2e::cluster::{self, Cluster};
use ferrvault_e2e::{objects, runner};
use ferrvault_sim::reality::{Ground, play, predict};
use ferrvault_sim::{SEALED, scenario};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::OnceCell;

/// Where the simulation gets its randomness from; what comes about must not depend on it.
const SEED: u64 = 1;

/// The cluster that all play on.
#[derive(Default)]
struct World(OnceCell<Cluster>);

impl World {
    async fn cluster(&self) -> &Cluster {
        cluster::usable_binaries();
        // Boxed: what it awaits is large, and everybody who waits for it would carry that.
        self.0.get_or_init(|| Box::pin(start())).await
    }
}

async fn start() -> Cluster {
    let cluster = Cluster::start().await;
    cluster.install_current_definitions().await;
    cluster.install_seals().await;
    cluster
}

async fn as_simulated(scenario: scenario::Scenario, world: Rc<World>) {
    let cluster = world.cluster().await;
    cluster.needs_controller_manager();
    let simulated = scenario.clone();
    let stages = tokio::task::spawn_blocking(move || predict(&simulated, SEED)).await.unwrap();
    let stages = stages.unwrap_or_else(|why| panic!("it does not even hold in the simulation: {why}"));
    let kubeconfig = Kubeconfig::read_from(cluster.plane.kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let ground = Ground { config, namespace: format!("play-{}", scenario.name) };
    match play(ground, &scenario, &stages).await {
        Ok(compared) => assert!(compared > 0, "nothing was compared"),
        Err(why) => panic!("{why}"),
    }
}

fn main() -> ExitCode {
    assert_eq!(SEALED, objects::SEALED, "or no policy would refuse what the simulation refuses");
    let scenarios = scenario::all().into_iter();
    let scenarios = scenarios.map(|scenario| {
        let name = format!("model::{}", scenario.name.replace('-', "_"));
        runner::Scenario::new(name, move |world| as_simulated(scenario, world))
    });
    runner::main(World::default, scenarios.collect())
}
