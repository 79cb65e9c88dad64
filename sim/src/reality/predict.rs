//! What the simulation says there has to be: a scenario played once with nothing going wrong, with a picture whenever its
//! script waits.

use std::collections::BTreeSet;
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_testkit::ApiServer;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use serde_json::Value;

use super::picture::{Names, Picture, Seen};
use crate::act::{Act, NS};
use crate::plan::Plan;
use crate::run::{Setup, come_to_rest};
use crate::scenario::Scenario;
use crate::world::World;

/// Where FerrVault is in a simulation.
pub(crate) const URL: &str = "http://127.0.0.1:1";

/// Something happens, and then there is time for what follows from it.
#[derive(Clone)]
pub struct Stage {
    /// What happens.
    pub acts: Vec<Act>,
    /// What there is in the end.
    pub leads_to: Picture,
    /// The vaults that FerrVault is asked about meanwhile.
    pub asked: Vec<&'static str>,
    /// Whether this belongs to what was before the script.
    pub is_before: bool,
}

/// Plays `scenario` in the simulation. `Err` says what did not hold in it.
///
/// # Errors
/// When an invariant did not hold even though nothing went wrong.
pub fn predict(scenario: &Scenario, seed: u64) -> Result<Vec<Stage>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(told(scenario, seed))
}

async fn told(scenario: &Scenario, seed: u64) -> Result<Vec<Stage>, String> {
    let setup = Setup { scenario, plan: Plan::default(), seed, broken: None, listens: false, tells: false };
    let mut script = Script {
        world: World::new(seed, None),
        names: Names::default(),
        scenario,
        stages: Vec::new(),
        acts: Vec::new(),
        asked: 0,
    };
    for act in &scenario.before {
        script.world.act(act).await;
        if matches!(act, Act::Wait(_)) {
            script.end_of_stage(true);
        } else {
            script.acts.push(act.clone());
        }
    }
    script.world.ledger.books().begin();
    if !script.acts.is_empty() {
        script.end_of_stage(true);
    }
    let beginning = script.world.now();
    for (seconds, act) in &scenario.script {
        if script.wait_until(beginning + Duration::from_secs(*seconds)).await {
            script.end_of_stage(false);
        }
        script.world.act(act).await;
        script.acts.push(act.clone());
    }
    script.wait_until(beginning + Duration::from_secs(scenario.counts_for)).await;
    come_to_rest(&mut script.world, &setup).await;
    script.end_of_stage(false);
    let violations = script.world.ledger.violations();
    script.world.end();
    match violations.first() {
        None => Ok(script.stages),
        Some(violation) => Err(format!("{}: {violation}", scenario.name)),
    }
}

struct Script<'a> {
    world: World,
    names: Names,
    scenario: &'a Scenario,
    stages: Vec<Stage>,
    acts: Vec<Act>,
    /// Calls to FerrVault before this stage.
    asked: usize,
}

impl Script<'_> {
    /// Lets time pass until then; whether there was any.
    async fn wait_until(&mut self, due: Duration) -> bool {
        let wait = due.saturating_sub(self.world.now());
        self.world.pass(wait).await;
        !wait.is_zero()
    }

    fn end_of_stage(&mut self, is_before: bool) {
        let restarts = ["api", "worker", "other", "store", "agent"].into_iter();
        let restarts = restarts.map(|name| (name.to_owned(), self.world.ledger.restarts(NS, name).len()));
        let seen = Seen {
            objects: objects(&self.world.api, &self.scenario.stuck),
            restarts: restarts.filter(|(_, times)| *times > 0).collect(),
            is_contested: is_contested(self.scenario),
            stands_for: Vec::new(),
        };
        let calls = self.world.vault.calls();
        let asked = calls.iter().skip(self.asked).filter(|call| call.what == "reveal");
        let vaults = self.scenario.vaults.iter().copied();
        let asked = vaults.filter(|vault| asked.clone().any(|call| call.vault == *vault)).collect();
        self.asked = calls.len();
        let leads_to = self.names.picture(&seen);
        self.stages.push(Stage { acts: std::mem::take(&mut self.acts), leads_to, asked, is_before });
    }
}

/// Whether several operators lead at once in a scenario.
pub(super) fn is_contested(scenario: &Scenario) -> bool {
    let script = scenario.script.iter().map(|(_, act)| act);
    let starts = scenario.before.iter().chain(script).filter_map(|act| match act {
        Act::Start(who) => Some(*who),
        _ => None,
    });
    starts.collect::<BTreeSet<_>>().len() > 1
}

/// Everything in the namespace, except what is about resources that never come to rest.
fn objects(api: &ApiServer, stuck: &[&str]) -> Vec<Value> {
    let mut all = Vec::new();
    all.extend(of_kind::<FerrVaultSecret>(api));
    all.extend(of_kind::<FerrVaultConnection>(api));
    all.extend(of_kind::<Secret>(api));
    all.extend(of_kind::<Deployment>(api));
    all.extend(of_kind::<StatefulSet>(api));
    all.extend(of_kind::<DaemonSet>(api));
    all.extend(of_kind::<Event>(api));
    all.retain(|object| !is_stuck(object, stuck));
    all
}

/// Whether an object is a resource that never comes to rest, or an event about one.
pub(super) fn is_stuck(object: &Value, stuck: &[&str]) -> bool {
    let text = |pointer| crate::cast::text(object, pointer);
    stuck.iter().any(|name| text("/metadata/name") == *name || text("/regarding/name") == *name)
}

fn of_kind<K>(api: &ApiServer) -> impl Iterator<Item = Value>
where
    K: kube::Resource<DynamicType = ()> + serde::Serialize + serde::de::DeserializeOwned,
{
    api.list::<K>(NS).into_iter().filter_map(|object| serde_json::to_value(object).ok())
}
