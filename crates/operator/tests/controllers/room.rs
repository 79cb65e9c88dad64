//! A room in which the controllers work: a cluster in memory, a scripted FerrVault, a clock, and an operator that can be
//! started, stopped and killed.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, FerrVaultSecretStatus, marks};
use ferrvault_core::version::OperatorKey;
use ferrvault_operator::admin::Metrics;
use ferrvault_operator::clock::Clock;
use ferrvault_operator::cluster::client::Clients;
use ferrvault_operator::cluster::watch::{Scope, Started};
use ferrvault_operator::controllers::{Controllers, Parts};
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::ferrvault::{FerrVault, OidcLimits};
use ferrvault_operator::leader::Leadership;
use ferrvault_operator::queue::Limits;
use ferrvault_testkit::{ApiServer, Call, EPOCH_SECONDS, Fault, Record, Verb, build};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::invariants::{self, OPERATOR};
use crate::script::Script;

/// The namespace of everything that is not about namespaces.
pub(crate) const NS: &str = "default";
/// Stands in for a value.
pub(crate) const VALUE: &str = "canary-7f3a";
/// Stands in for a token.
pub(crate) const TOKEN: &str = "fft_canary-token";

/// A running operator and what surrounds it.
pub(crate) struct Room {
    pub(crate) api: ApiServer,
    pub(crate) vault: Arc<Script>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    /// `--reconcile-timeout`.
    pub(crate) deadline: Duration,
    /// `--default-refresh-interval`.
    pub(crate) default_refresh: Duration,
    /// The operator key.
    pub(crate) key: [u8; 32],
    /// Whether it leads.
    pub(crate) leadership: Leadership,
    /// What identities may be exchanged for.
    pub(crate) oidc: OidcLimits,
    running: Option<Running>,
    starts: u64,
}

struct Running {
    stop: CancellationToken,
    watches: Vec<Started>,
    /// Until the lists are complete.
    controllers: Option<Controllers>,
    /// From then on.
    passes: Option<JoinHandle<()>>,
}

impl Room {
    /// A cluster with a connection and its token, and no operator yet. FerrVault has a vault `db` of two keys.
    pub(crate) fn new() -> Self {
        invariants::listen_to_logs();
        let api = ApiServer::default();
        invariants::watch(&api);
        api.apply(&build::secret(NS, "token").key("token", TOKEN));
        api.apply(&build::connection(NS, "conn").url("http://127.0.0.1:1").token_in("token", "token"));
        let vault = Arc::new(Script::default());
        vault.set("db", "USER", "canary-app");
        vault.set("db", "PASSWORD", format!("{VALUE}-1"));
        Self {
            api,
            vault,
            clock: Clock::simulated(Timestamp::from_second(EPOCH_SECONDS).unwrap()),
            metrics: Metrics::default(),
            deadline: Duration::from_secs(120),
            default_refresh: Duration::from_secs(3600),
            key: [7; 32],
            leadership: Leadership::always(),
            oidc: OidcLimits { token_dir: "/nowhere".into(), origins: Vec::new() },
            running: None,
            starts: 0,
        }
    }

    /// The same with an operator that has come to rest.
    pub(crate) async fn started() -> Self {
        let mut room = Self::new();
        room.start().await;
        room
    }

    /// The same with a resource `db` that is synced.
    pub(crate) async fn with_db(resource: build::Built) -> Self {
        let room = Self::started().await;
        room.api.apply(&resource);
        room.rest().await;
        room
    }

    /// Starts an operator, or starts it anew with nothing remembered. Also returns when it did not live to see its lists.
    pub(crate) async fn start(&mut self) {
        self.stop().await;
        self.begin();
        self.lists_complete().await;
        self.lead();
        self.rest().await;
    }

    /// Starts the watches of an operator, and no pass yet.
    pub(crate) fn begin(&mut self) {
        self.starts += 1;
        let controllers = Controllers::new(Parts {
            clients: Clients::of(self.api.client_of(OPERATOR, NS)),
            leadership: self.leadership.clone(),
            ferrvault: Arc::clone(&self.vault) as Arc<dyn FerrVault>,
            oidc: self.oidc.clone(),
            operator_key: OperatorKey::from_bytes(&self.key).unwrap(),
            clock: self.clock.clone(),
            entropy: Entropy::seeded(self.starts),
            metrics: self.metrics.clone(),
            instance: OPERATOR.to_owned(),
            scope: Scope::Cluster,
            limits: Limits::new(NonZeroUsize::new(8).unwrap()),
            default_refresh: self.default_refresh,
            deadline: self.deadline,
        });
        let stop = CancellationToken::new();
        let watches = controllers.watch(&stop);
        self.running = Some(Running { stop, watches, controllers: Some(controllers), passes: None });
    }

    async fn lists_complete(&self) {
        let watches = &self.running.as_ref().unwrap().watches;
        while !watches.iter().all(|watch| watch.health.is_synced()) && !self.api.has_ended(OPERATOR) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn lead(&mut self) {
        let Some(running) = &mut self.running else { return };
        if let Some(controllers) = running.controllers.take() {
            running.passes = Some(tokio::spawn(controllers.run(running.stop.clone())));
        }
    }

    /// Goes on with a start whose lists were not complete.
    pub(crate) async fn go_on(&mut self) {
        self.lists_complete().await;
        self.lead();
        self.rest().await;
    }

    /// What the watches complain about.
    pub(crate) fn watch_errors(&self) -> Vec<String> {
        let watches = self.running.iter().flat_map(|running| &running.watches);
        watches.filter_map(|watch| watch.health.snapshot().last_error).collect()
    }

    /// Ends the operator as SIGTERM does: what runs is finished.
    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop.cancel();
            if let Some(passes) = running.passes {
                passes.await.unwrap();
            }
        }
    }

    /// Ends the operator as SIGKILL does: nothing of it goes on.
    pub(crate) fn kill(&mut self) {
        self.api.end(OPERATOR);
        if let Some(running) = self.running.take() {
            running.passes.iter().for_each(JoinHandle::abort);
            running.watches.iter().for_each(|watch| watch.task.abort());
        }
    }

    /// Waits until nothing but timers of a second and more is left.
    pub(crate) async fn rest(&self) {
        self.run_for(Duration::from_millis(700)).await;
    }

    /// Lets time pass, with everything that happens in it.
    pub(crate) async fn run_for(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    // ---- objects

    pub(crate) fn fvs(&self, name: &str) -> Option<FerrVaultSecret> {
        self.api.get(NS, name)
    }

    pub(crate) fn status(&self, name: &str) -> FerrVaultSecretStatus {
        self.fvs(name).unwrap_or_else(|| panic!("no resource {name}")).status.unwrap_or_default()
    }

    pub(crate) fn secret(&self, name: &str) -> Option<Secret> {
        self.api.get(NS, name)
    }

    pub(crate) fn connection(&self, name: &str) -> Option<FerrVaultConnection> {
        self.api.get(NS, name)
    }

    pub(crate) fn condition(&self, name: &str, type_: &str) -> Condition {
        let found = self.status(name).conditions.into_iter().find(|c| c.type_ == type_);
        found.unwrap_or_else(|| panic!("{name} has no condition {type_}:\n{}", self.api.story()))
    }

    /// `True Synced`, `False AuthFailed`, ...
    pub(crate) fn ready(&self, name: &str) -> String {
        spelled(&self.condition(name, "Ready"))
    }

    pub(crate) fn rollout(&self, name: &str) -> String {
        spelled(&self.condition(name, "RolloutRestarted"))
    }

    /// Of the connection.
    pub(crate) fn connection_ready(&self, name: &str) -> Condition {
        let status = self.connection(name).unwrap_or_else(|| panic!("no connection {name}")).status.unwrap_or_default();
        let found = status.conditions.into_iter().find(|c| c.type_ == "Ready");
        found.unwrap_or_else(|| panic!("connection {name} has no condition:\n{}", self.api.story()))
    }

    /// Finalizers of the connection.
    pub(crate) fn finalizers(&self, connection: &str) -> Vec<String> {
        self.connection(connection).unwrap().metadata.finalizers.unwrap_or_default()
    }

    /// The data of a Secret.
    pub(crate) fn data(&self, secret: &str) -> BTreeMap<String, Vec<u8>> {
        let data = self.secret(secret).unwrap_or_else(|| panic!("no Secret {secret}")).data.unwrap_or_default();
        data.into_iter().map(|(key, value)| (key, value.0)).collect()
    }

    pub(crate) fn version(&self, secret: &str) -> String {
        let annotations = self.secret(secret).unwrap().metadata.annotations.unwrap_or_default();
        annotations.get(marks::CONTENT_HASH).cloned().unwrap_or_default()
    }

    /// The mark of `resource` on a workload's template.
    pub(crate) fn mark(&self, kind: &str, workload: &str, resource: &str) -> Option<String> {
        let uid = self.fvs(resource)?.metadata.uid?;
        let annotations = match kind {
            "Deployment" => self.api.get::<Deployment>(NS, workload)?.spec?.template.metadata?.annotations?,
            "StatefulSet" => self.api.get::<StatefulSet>(NS, workload)?.spec?.template.metadata?.annotations?,
            _ => self.api.get::<DaemonSet>(NS, workload)?.spec?.template.metadata?.annotations?,
        };
        annotations.get(&marks::workload_mark(&uid)).cloned()
    }

    /// Events about an object, oldest first: `Warning AuthFailed`.
    pub(crate) fn events(&self, about: &str) -> Vec<String> {
        let mut events = self.api.list::<Event>(NS);
        events.retain(|event| event.regarding.as_ref().and_then(|r| r.name.as_deref()) == Some(about));
        events.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
        let told = |event: Event| format!("{} {}", event.type_.unwrap_or_default(), event.reason.unwrap_or_default());
        events.into_iter().map(told).collect()
    }

    /// The whole of what FerrVault holds in `vault` is in the Secret, and nothing else.
    pub(crate) fn assert_current(&self, secret: &str, vault: &str) {
        assert_eq!(self.data(secret), self.vault.holds(vault), "{}", self.api.story());
    }

    // ---- what people do

    /// Asks for a pass by an edit of the spec that changes nothing else.
    pub(crate) async fn nudge(&self, name: &str) {
        self.nudge_now(name);
        self.rest().await;
    }

    /// The same, without waiting for what comes of it.
    pub(crate) fn nudge_now(&self, name: &str) {
        self.api.edit::<FerrVaultSecret>(NS, name, |object| {
            let turn = object["metadata"]["generation"].as_i64().unwrap_or_default();
            object["spec"]["refreshInterval"] = Value::from(format!("{}m", 60 + turn));
        });
    }

    /// Somebody changes the password in FerrVault.
    pub(crate) fn rotate(&self, to: u32) {
        self.vault.set("db", "PASSWORD", format!("{VALUE}-{to}"));
    }

    // ---- what happened

    /// Where the journal stands.
    pub(crate) fn here(&self) -> usize {
        self.api.last_call()
    }

    /// What the operator asked and wrote since, without watches; events without their names.
    pub(crate) fn calls_since(&self, since: usize) -> Vec<String> {
        let calls = self.api.requests_after(since, OPERATOR).into_iter();
        calls.map(|call| if call.starts_with("CREATE events") { "CREATE events".to_owned() } else { call }).collect()
    }

    /// The writes among them.
    pub(crate) fn writes_since(&self, since: usize) -> Vec<String> {
        let mut calls = self.calls_since(since);
        calls.retain(|call| !call.starts_with("GET") && !call.starts_with("LIST"));
        calls
    }

    /// When the operator made calls like this one, in virtual time since the start.
    pub(crate) fn times(&self, summary: &str) -> Vec<Duration> {
        let of_operator = |record: &Record| record.call.who == OPERATOR && record.call.summary() == summary;
        self.api.journal().iter().filter(|record| of_operator(record)).map(|record| record.call.at).collect()
    }

    /// When the operator wrote the status of a resource, answered or not.
    pub(crate) fn reports(&self, name: &str) -> Vec<Duration> {
        self.times(&format!("PATCH ferrvaultsecrets/status {NS}/{name}"))
    }

    /// Waits for the next report about a resource, at most a day. Says how many seconds after the last one it came.
    pub(crate) async fn next_report(&self, name: &str) -> f64 {
        let before = self.reports(name);
        let mut seen = self.here();
        for _ in 0..864_000 {
            self.run_for(Duration::from_millis(100)).await;
            if self.here() == seen {
                continue;
            }
            seen = self.here();
            if let Some(next) = self.reports(name).get(before.len()) {
                return (*next - before.last().copied().unwrap_or_default()).as_secs_f64();
            }
        }
        panic!("{name}: no pass within a day:\n{}", self.api.story());
    }

    /// Puts `fault` on calls like this one until faults are cleared.
    pub(crate) fn on(&self, summary: &str, fault: Fault) {
        let summary = summary.to_owned();
        self.api.on_call(move |call| if is(call, &summary) { fault.clone() } else { Fault::None });
    }

    /// Puts `fault` on the next so many calls like this one.
    pub(crate) fn times_over(&self, count: usize, summary: &str, fault: Fault) {
        let summary = summary.to_owned();
        let mut left = count;
        self.api.on_call(move |call| {
            let hit = left > 0 && is(call, &summary);
            left -= usize::from(hit);
            if hit { fault.clone() } else { Fault::None }
        });
    }

    /// The value of a series on the metrics page, 0 where there is none.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.metrics.text().unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

fn is(call: &Call, summary: &str) -> bool {
    call.who == OPERATOR && call.verb != Verb::Watch && call.summary() == summary
}

fn spelled(condition: &Condition) -> String {
    format!("{} {}", condition.status, condition.reason)
}

impl Drop for Room {
    /// What must hold at the end of every run, whatever it was about.
    fn drop(&mut self) {
        // Whoever tells many stories in one test would otherwise have all their operators at work.
        self.kill();
        if std::thread::panicking() {
            return;
        }
        let violations = self.api.violations();
        assert!(violations.is_empty(), "{violations:#?}\n{}", self.api.story());
        let page = self.metrics.text().unwrap();
        assert!(!invariants::gives_away(&page), "{page}");
        let leaks = invariants::leaks();
        assert!(leaks.is_empty(), "{leaks:#?}");
    }
}

/// Counts changes of pod templates, independently of the operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rollouts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Rollouts {
    /// Counts from now on.
    pub(crate) fn watch(api: &ApiServer) -> Self {
        let rollouts = Self::default();
        let counts = Arc::clone(&rollouts.0);
        api.on_write(move |write| {
            let template = |object: &Option<Arc<Value>>| object.as_ref().map(|o| o["spec"]["template"].clone());
            let changed = write.old.is_some() && write.new.is_some() && template(&write.old) != template(&write.new);
            if write.who == OPERATOR && write.resource.ends_with(".apps") && changed {
                *counts.lock().unwrap().entry(write.name.clone()).or_default() += 1;
            }
        });
        rollouts
    }

    pub(crate) fn of(&self, workload: &str) -> u64 {
        self.0.lock().unwrap().get(workload).copied().unwrap_or_default()
    }
}
