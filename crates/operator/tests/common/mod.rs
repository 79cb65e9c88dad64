//! The controllers, whole and unmodified, between an API server in memory and a scripted FerrVault, under paused time.

#![allow(dead_code, unreachable_pub, reason = "each test file uses the part it needs")]

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, marks};
use ferrvault_core::content::{Answer, Content, SecretBytes};
use ferrvault_core::version::OperatorKey;
use ferrvault_operator::admin::Metrics;
use ferrvault_operator::clock::Clock;
use ferrvault_operator::cluster::client::Clients;
use ferrvault_operator::cluster::watch::Scope;
use ferrvault_operator::controllers::{Controllers, Parts};
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::ferrvault::{FerrVault, OidcLimits};
use ferrvault_operator::leader::Leadership;
use ferrvault_operator::queue::Limits;
use ferrvault_testkit::{ApiServer, EPOCH_SECONDS, build};
use ferrvault_vault::{Bearer, BearerGrant, Endpoint, RevealRequest, VaultError};
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const NS: &str = "default";
/// Stands in for a value; must never be seen outside a Secret.
pub const CANARY: &str = "canary-7f3a";

/// What FerrVault does with the next calls.
#[derive(Clone, Debug)]
pub enum Mood {
    /// Fails like this.
    Fails(VaultError),
    /// Never answers.
    Stalls,
    /// Answers late.
    Late(Duration),
}

/// A FerrVault without a network.
#[derive(Debug, Default)]
pub struct Script(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    vaults: BTreeMap<String, BTreeMap<String, String>>,
    moods: BTreeMap<String, VecDeque<Mood>>,
    steady: BTreeMap<String, Mood>,
    reveals: u64,
    ill: Option<VaultError>,
}

impl Script {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, vault: &str, key: &str, value: &str) {
        self.state().vaults.entry(vault.to_owned()).or_default().insert(key.to_owned(), value.to_owned());
    }

    pub fn unset(&self, vault: &str, key: &str) {
        self.state().vaults.entry(vault.to_owned()).or_default().remove(key);
    }

    /// The next call for `vault` goes like this.
    pub fn next(&self, vault: &str, mood: Mood) {
        self.state().moods.entry(vault.to_owned()).or_default().push_back(mood);
    }

    /// Every call for `vault` goes like this, until told otherwise.
    pub fn always(&self, vault: &str, mood: Option<Mood>) {
        match mood {
            Some(mood) => self.state().steady.insert(vault.to_owned(), mood),
            None => self.state().steady.remove(vault),
        };
    }

    /// `/health` fails like this.
    pub fn ill(&self, error: Option<VaultError>) {
        self.state().ill = error;
    }

    pub fn reveals(&self) -> u64 {
        self.state().reveals
    }

    fn answer(&self, request: &RevealRequest) -> Result<Answer, VaultError> {
        let state = self.state();
        let Some(vault) = state.vaults.get(&request.vault) else { return Err(no_such_vault()) };
        let wanted = |key: &String| request.names.is_empty() || request.names.contains(key);
        let found = vault.iter().filter(|(key, _)| wanted(key));
        let content: Content = found.map(|(key, value)| (key.clone(), SecretBytes::from(value.as_str()))).collect();
        let missing = request.names.iter().filter(|name| !vault.contains_key(*name)).cloned().collect();
        Ok(Answer { content, missing })
    }
}

fn no_such_vault() -> VaultError {
    VaultError::NotFound { upstream: ferrvault_vault::UpstreamText::default() }
}

impl FerrVault for Script {
    fn reveal<'a>(
        &'a self,
        _endpoint: &'a Endpoint,
        _bearer: &'a Bearer,
        request: &'a RevealRequest,
    ) -> BoxFuture<'a, Result<Answer, VaultError>> {
        let mood = {
            let mut state = self.state();
            state.reveals += 1;
            let next = state.moods.get_mut(&request.vault).and_then(VecDeque::pop_front);
            next.or_else(|| state.steady.get(&request.vault).cloned())
        };
        Box::pin(async move {
            match mood {
                Some(Mood::Fails(error)) => return Err(error),
                Some(Mood::Stalls) => std::future::pending().await,
                Some(Mood::Late(by)) => tokio::time::sleep(by).await,
                None => {}
            }
            self.answer(request)
        })
    }

    fn health<'a>(&'a self, _endpoint: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
        let ill = self.state().ill.clone();
        Box::pin(async move { ill.map_or(Ok(()), Err) })
    }

    fn exchange<'a>(
        &'a self,
        _endpoint: &'a Endpoint,
        _cluster_id: &'a str,
        _jwt: &'a Bearer,
    ) -> BoxFuture<'a, Result<BearerGrant, VaultError>> {
        Box::pin(async { Err(no_such_vault()) })
    }
}

/// A running operator and what surrounds it.
pub struct Room {
    pub api: ApiServer,
    pub vault: Arc<Script>,
    pub clock: Clock,
    pub metrics: Metrics,
    pub deadline: Duration,
    pub key: [u8; 32],
    running: Option<(CancellationToken, JoinHandle<()>)>,
    starts: u64,
}

impl Room {
    /// A cluster with a connection and its token, and no operator yet.
    pub fn new() -> Self {
        let api = ApiServer::default();
        api.apply(&build::secret(NS, "token").key("token", "fft_canary-token"));
        api.apply(&build::connection(NS, "conn").url("http://127.0.0.1:1").token_in("token", "token"));
        Self {
            api,
            vault: Arc::default(),
            clock: Clock::simulated(Timestamp::from_second(EPOCH_SECONDS).unwrap()),
            metrics: Metrics::default(),
            deadline: Duration::from_secs(120),
            key: [7; 32],
            running: None,
            starts: 0,
        }
    }

    /// The same with one vault `db` of two keys, and an operator that has come to rest.
    pub async fn started() -> Self {
        let mut room = Self::new();
        room.vault.set("db", "USER", "app");
        room.vault.set("db", "PASSWORD", &format!("{CANARY}-1"));
        room.start().await;
        room
    }

    /// Starts an operator, or starts it anew with nothing remembered.
    pub async fn start(&mut self) {
        self.stop().await;
        self.starts += 1;
        let controllers = Controllers::new(Parts {
            clients: Clients::of(self.api.client(NS)),
            leadership: Leadership::always(),
            ferrvault: Arc::clone(&self.vault) as Arc<dyn FerrVault>,
            oidc: OidcLimits { token_dir: "/nowhere".into(), origins: Vec::new() },
            operator_key: OperatorKey::from_bytes(&self.key).unwrap(),
            clock: self.clock.clone(),
            entropy: Entropy::seeded(self.starts),
            metrics: self.metrics.clone(),
            instance: "operator".to_owned(),
            scope: Scope::Cluster,
            limits: Limits::new(NonZeroUsize::new(8).unwrap()),
            default_refresh: Duration::from_secs(3600),
            deadline: self.deadline,
        });
        let stop = CancellationToken::new();
        let watches = controllers.watch(&stop);
        while !watches.iter().all(|watch| watch.health.is_synced()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.running = Some((stop.clone(), tokio::spawn(controllers.run(stop))));
        self.rest().await;
    }

    /// Ends the operator as SIGTERM does.
    pub async fn stop(&mut self) {
        if let Some((stop, task)) = self.running.take() {
            stop.cancel();
            task.await.unwrap();
        }
    }

    /// Waits until nothing but timers is left.
    pub async fn rest(&self) {
        self.run_for(Duration::from_millis(700)).await;
    }

    /// Lets time pass, with everything that happens in it.
    pub async fn run_for(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    pub fn fvs(&self, name: &str) -> Option<FerrVaultSecret> {
        self.api.get(NS, name)
    }

    pub fn secret(&self, name: &str) -> Option<Secret> {
        self.api.get(NS, name)
    }

    pub fn connection(&self, name: &str) -> Option<FerrVaultConnection> {
        self.api.get(NS, name)
    }

    pub fn condition(&self, name: &str, type_: &str) -> Condition {
        let resource = self.fvs(name).unwrap_or_else(|| panic!("no resource {name}"));
        let found = resource.status.unwrap_or_default().conditions.into_iter().find(|c| c.type_ == type_);
        found.unwrap_or_else(|| panic!("{name} has no condition {type_}:\n{}", self.api.story()))
    }

    /// `True Synced`, `False AuthFailed`, ...
    pub fn ready(&self, name: &str) -> String {
        let condition = self.condition(name, "Ready");
        format!("{} {}", condition.status, condition.reason)
    }

    pub fn rollout(&self, name: &str) -> String {
        let condition = self.condition(name, "RolloutRestarted");
        format!("{} {}", condition.status, condition.reason)
    }

    /// The target's data as text.
    pub fn data(&self, secret: &str) -> BTreeMap<String, String> {
        let data = self.secret(secret).unwrap_or_else(|| panic!("no Secret {secret}")).data.unwrap_or_default();
        data.into_iter().map(|(key, value)| (key, String::from_utf8(value.0).unwrap())).collect()
    }

    pub fn version(&self, secret: &str) -> String {
        let annotations = self.secret(secret).unwrap().metadata.annotations.unwrap_or_default();
        annotations.get(marks::CONTENT_HASH).cloned().unwrap_or_default()
    }

    /// Asks for a pass by an edit of the spec that changes nothing else.
    pub async fn nudge(&self, name: &str) {
        self.api.edit::<FerrVaultSecret>(NS, name, |object| {
            let turn = object["metadata"]["generation"].as_i64().unwrap_or_default();
            object["spec"]["refreshInterval"] = Value::from(format!("{}m", 60 + turn));
        });
        self.rest().await;
    }
}

/// Counts changes of pod templates, independently of the operator.
#[derive(Clone, Debug, Default)]
pub struct Rollouts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Rollouts {
    /// Counts from now on.
    pub fn watch(api: &ApiServer) -> Self {
        let rollouts = Self::default();
        let counts = Arc::clone(&rollouts.0);
        api.on_write(move |write| {
            let template = |object: &Option<Arc<Value>>| object.as_ref().map(|o| o["spec"]["template"].clone());
            let changed = write.old.is_some() && write.new.is_some() && template(&write.old) != template(&write.new);
            if write.resource.ends_with(".apps") && changed {
                *counts.lock().unwrap().entry(write.name.clone()).or_default() += 1;
            }
        });
        rollouts
    }

    pub fn of(&self, workload: &str) -> u64 {
        self.0.lock().unwrap().get(workload).copied().unwrap_or_default()
    }
}

/// The mark of `resource` on a workload's template.
pub fn mark_on(room: &Room, kind: &str, workload: &str, resource: &str) -> Option<String> {
    let uid = room.fvs(resource)?.metadata.uid?;
    let annotations = match kind {
        "Deployment" => room.api.get::<Deployment>(NS, workload)?.spec?.template.metadata?.annotations?,
        "StatefulSet" => room.api.get::<StatefulSet>(NS, workload)?.spec?.template.metadata?.annotations?,
        _ => room.api.get::<DaemonSet>(NS, workload)?.spec?.template.metadata?.annotations?,
    };
    annotations.get(&marks::workload_mark(&uid)).cloned()
}
