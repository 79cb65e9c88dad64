//! One scenario on a real API server, stage by stage, until it looks as simulated.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use super::hands::Hands;
use super::picture::{Difference, Names, Picture, Seen, stands_for};
use super::predict::{Stage, is_contested, is_stuck};
use super::restarts::Restarts;
use crate::scenario::Scenario;

/// How long a stage may take: a look by schedule (33 s), a lease that runs out (15 s), a retry (30 s at most for a
/// workload that is not there), and as much again for a machine that compiles meanwhile.
const STAGE_WITHIN: Duration = Duration::from_secs(100);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// What looked as simulated has to look so for as long, before the play is over.
const STAYS: Duration = Duration::from_secs(2);

/// Where a play takes place.
#[derive(Clone, Debug)]
pub struct Ground {
    /// How the API server is reached, as somebody who may do everything.
    pub config: kube::Config,
    /// A namespace that is not there yet; the operator's own is called like it with `-system`.
    pub namespace: String,
}

/// Why a play did not go as simulated.
#[derive(Debug, thiserror::Error)]
pub enum NotAsSimulated {
    /// The picture is another.
    #[error("after stage {stage} of {stages}, {acts}:\n{}", shown(differences))]
    Differs {
        /// Which stage, from 1.
        stage: usize,
        /// Of how many.
        stages: usize,
        /// What had happened in it.
        acts: String,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// The simulated operator asked FerrVault, the real one did not.
    #[error("after stage {stage}: FerrVault was not asked about vault {vault}")]
    NotAsked {
        /// Which stage, from 1.
        stage: usize,
        /// About what.
        vault: &'static str,
    },
    /// It looked as simulated, and then changed.
    #[error("it looked as simulated, and then:\n{}", shown(.0))]
    DidNotStay(Vec<Difference>),
    /// An operator is no longer there.
    #[error("{0} ended by itself")]
    Ended(&'static str),
    /// A watch of workloads broke, so nobody knows how often they were restarted.
    #[error("the count of restarts ended early")]
    CountEnded,
    /// FerrVault has nowhere to listen.
    #[error("FerrVault cannot listen: {0}")]
    Listen(std::io::Error),
    /// The API server did not do what the play asked of it.
    #[error("the API server: {0}")]
    Api(#[from] Box<kube::Error>),
    /// An object of the script is none.
    #[error("no object: {0}")]
    Object(#[from] serde_json::Error),
}

impl From<kube::Error> for NotAsSimulated {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

fn shown(differences: &[Difference]) -> String {
    let lines: Vec<String> = differences.iter().map(|difference| format!("  {difference}")).collect();
    lines.join("\n")
}

/// Plays the stages; returns how many objects were compared.
///
/// # Errors
/// When something is not as simulated in time.
pub async fn play(ground: Ground, scenario: &Scenario, stages: &[Stage]) -> Result<usize, NotAsSimulated> {
    let hands = Hands::new(ground.config, &ground.namespace).await?;
    let mut play = Play { hands, names: Names::default(), restarts: None, scenario };
    let mut compared = 0;
    for (index, stage) in stages.iter().enumerate() {
        if !stage.is_before && play.restarts.is_none() {
            play.restarts = Some(Restarts::count(&play.hands.client, &play.hands.namespace).await?);
        }
        let asked = play.hands.vault.calls().len();
        for act in &stage.acts {
            play.hands.act(act).await?;
        }
        play.come_to(stage, asked, (index + 1, stages.len())).await?;
        compared += stage.leads_to.objects();
    }
    if let Some(last) = stages.last() {
        tokio::time::sleep(STAYS).await;
        let differences = last.leads_to.differences(&play.look().await?.0);
        if !differences.is_empty() {
            return Err(NotAsSimulated::DidNotStay(differences));
        }
    }
    Ok(compared)
}

struct Play<'a> {
    hands: Hands,
    names: Names,
    restarts: Option<Restarts>,
    scenario: &'a Scenario,
}

impl Play<'_> {
    /// Waits until all looks as simulated.
    async fn come_to(&mut self, stage: &Stage, asked: usize, place: (usize, usize)) -> Result<(), NotAsSimulated> {
        let begun = Instant::now();
        loop {
            if let Some(who) = self.hands.dead() {
                return Err(NotAsSimulated::Ended(who));
            }
            // Before the look: what follows from an answer is compared by the looks to come.
            let calls = self.hands.vault.calls();
            let was_asked = |vault: &&&'static str| {
                calls.iter().skip(asked).any(|call| call.what == "reveal" && call.vault == ***vault)
            };
            let unasked = stage.asked.iter().find(|vault| !was_asked(vault)).copied();
            let (picture, names) = self.look().await?;
            let differences = stage.leads_to.differences(&picture);
            match unasked {
                None if differences.is_empty() => {
                    // Names are given once a picture is right: what was on the way to it has none.
                    self.names = names;
                    return Ok(());
                }
                Some(vault) if differences.is_empty() && begun.elapsed() >= STAGE_WITHIN => {
                    return Err(NotAsSimulated::NotAsked { stage: place.0, vault });
                }
                _ if begun.elapsed() >= STAGE_WITHIN => {
                    let acts: Vec<String> = stage.acts.iter().map(ToString::to_string).collect();
                    let (stage, stages) = place;
                    return Err(NotAsSimulated::Differs { stage, stages, acts: acts.join(", "), differences });
                }
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }

    async fn look(&self) -> Result<(Picture, Names), NotAsSimulated> {
        let mut objects = Vec::new();
        objects.extend(self.of_kind::<FerrVaultSecret>().await?);
        objects.extend(self.of_kind::<FerrVaultConnection>().await?);
        objects.extend(self.of_kind::<Secret>().await?);
        objects.extend(self.of_kind::<Deployment>().await?);
        objects.extend(self.of_kind::<StatefulSet>().await?);
        objects.extend(self.of_kind::<DaemonSet>().await?);
        objects.extend(self.of_kind::<Event>().await?);
        objects.retain(|object| !is_stuck(object, &self.scenario.stuck));
        let restarts = self.restarts.as_ref().map(Restarts::so_far).transpose()?.unwrap_or_else(BTreeMap::new);
        let stands_for = stands_for(&self.hands.namespace, &self.hands.system, &self.hands.url());
        let mut names = self.names.clone();
        let picture = names.picture(&Seen { objects, is_contested: is_contested(self.scenario), restarts, stands_for });
        Ok((picture, names))
    }

    async fn of_kind<K>(&self) -> Result<Vec<Value>, NotAsSimulated>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.hands.client.clone(), &self.hands.namespace);
        let found = api.list(&ListParams::default()).await?;
        Ok(found.items.into_iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
    }
}
