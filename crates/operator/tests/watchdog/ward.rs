//! A room with everything that watches over the controllers: watchdog, liveness, readiness, metrics.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ferrvault_api::{FerrVaultSecret, condition};
use ferrvault_core::version::OperatorKey;
use ferrvault_operator::admin::{Format, Subjects};
use ferrvault_operator::clock::Clock;
use ferrvault_operator::cluster::client::Clients;
use ferrvault_operator::cluster::watch::{Scope, Started, WatchHealth};
use ferrvault_operator::controllers::{Controllers, Parts};
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::ferrvault::{FerrVault, OidcLimits};
use ferrvault_operator::leader::Leadership;
use ferrvault_operator::queue::Limits;
use ferrvault_testkit::{ApiServer, Break, Call, EPOCH_SECONDS, Fault, build};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::script::Script;

/// The namespace of everything.
pub(crate) const NS: &str = "default";
/// The process under test.
pub(crate) const OPERATOR: &str = "operator";
/// The client of its watchdog, so that a test can tell the two apart.
pub(crate) const WATCHDOG: &str = "watchdog";
/// A minute.
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
/// `--stall-threshold`.
pub(crate) const THRESHOLD: Duration = Duration::from_mins(15);

/// An operator that is watched over.
pub(crate) struct Ward {
    pub(crate) api: ApiServer,
    pub(crate) vault: Arc<Script>,
    pub(crate) subjects: Subjects,
    leadership: Leadership,
    deadline: Duration,
    running: Option<Running>,
}

struct Running {
    stop: CancellationToken,
    watches: Vec<Started>,
    tasks: Vec<JoinHandle<()>>,
}

impl Ward {
    /// A cluster with a connection and its token, and no operator yet. FerrVault has the vaults `db` and `other`.
    pub(crate) fn new() -> Self {
        let api = ApiServer::default();
        api.apply(&build::secret(NS, "token").key("token", "fft_token"));
        api.apply(&build::connection(NS, "conn").url("http://127.0.0.1:1").token_in("token", "token"));
        let vault = Arc::new(Script::default());
        for name in ["db", "other"] {
            vault.set(name, "PASSWORD", "first");
        }
        Self {
            api,
            vault,
            subjects: Subjects::new(THRESHOLD),
            leadership: Leadership::always(),
            deadline: Duration::from_mins(2),
            running: None,
        }
    }

    /// The same with an operator, and with resources `db` and `other` like these that are synced.
    pub(crate) async fn with(resources: &[build::Built]) -> Self {
        let mut ward = Self::new();
        ward.start().await;
        for resource in resources {
            ward.api.apply(resource);
        }
        ward.run_for(Duration::from_secs(1)).await;
        for resource in resources {
            let name = resource.clone().json()["metadata"]["name"].as_str().unwrap().to_owned();
            assert_eq!(ward.says(&name, condition::READY), "True Synced", "{}", ward.api.story());
            assert_eq!(ward.says(&name, condition::FRESH), "True Current");
        }
        ward
    }

    /// `--reconcile-timeout`; for passes that hang without being cut.
    pub(crate) const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// With an election instead of leading always.
    pub(crate) fn led_by(mut self, leadership: Leadership) -> Self {
        self.leadership = leadership;
        self
    }

    /// Starts the operator with its watchdog.
    pub(crate) async fn start(&mut self) {
        self.start_unsynced();
        let running = self.running.as_ref().unwrap();
        while !running.watches.iter().all(|watch| watch.health.is_synced()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The same without waiting for the lists.
    pub(crate) fn start_unsynced(&mut self) {
        let controllers = Controllers::new(Parts {
            clients: Clients::of(self.api.client_of(OPERATOR, NS)),
            leadership: self.leadership.clone(),
            ferrvault: Arc::clone(&self.vault) as Arc<dyn FerrVault>,
            oidc: OidcLimits { token_dir: "/nowhere".into(), origins: Vec::new() },
            operator_key: OperatorKey::from_bytes(&[7; 32]).unwrap(),
            clock: Clock::simulated(Timestamp::from_second(EPOCH_SECONDS).unwrap()),
            entropy: Entropy::seeded(1),
            metrics: self.subjects.metrics.clone(),
            instance: OPERATOR.to_owned(),
            scope: Scope::Cluster,
            limits: Limits::new(NonZeroUsize::new(8).unwrap()),
            default_refresh: Duration::from_hours(1),
            deadline: self.deadline,
        });
        let stop = CancellationToken::new();
        let watches = controllers.watch(&stop);
        for watch in &watches {
            self.subjects.readiness.wait_for_watch(&watch.health);
        }
        let watchdog = controllers.watchdog();
        controllers.tell_liveness(&self.subjects.liveness, &watches, &watchdog);
        let client = self.api.client_of(WATCHDOG, NS);
        let healths: Vec<_> = watches.iter().map(|watch| watch.health.clone()).collect();
        let passes = {
            let stop = stop.clone();
            async move {
                while !healths.iter().all(WatchHealth::is_synced) {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                controllers.run(stop).await;
            }
        };
        let tasks = vec![
            tokio::spawn(self.subjects.heartbeat.clone().run()),
            tokio::spawn(watchdog.run(client, stop.clone())),
            tokio::spawn(passes),
        ];
        self.running = Some(Running { stop, watches, tasks });
    }

    /// Lets time pass, with everything that happens in it.
    pub(crate) async fn run_for(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// How long it takes until `shows` is true, looked at twice a second for at most `limit`.
    pub(crate) async fn time_until(&self, limit: Duration, what: &str, shows: impl Fn(&Self) -> bool) -> Duration {
        let begun = Instant::now();
        while !shows(self) {
            assert!(begun.elapsed() <= limit, "not within {limit:?}: {what}\n{}", self.api.story());
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        begun.elapsed()
    }

    // ---- what it shows

    pub(crate) fn fvs(&self, name: &str) -> FerrVaultSecret {
        self.api.get(NS, name).unwrap_or_else(|| panic!("no resource {name}"))
    }

    pub(crate) fn condition(&self, name: &str, type_: &str) -> Option<Condition> {
        let conditions = self.fvs(name).status.unwrap_or_default().conditions;
        conditions.into_iter().find(|condition| condition.type_ == type_)
    }

    /// `True Synced`, `False Stale`, or nothing.
    pub(crate) fn says(&self, name: &str, type_: &str) -> String {
        self.condition(name, type_).map(|c| format!("{} {}", c.status, c.reason)).unwrap_or_default()
    }

    pub(crate) fn fresh(&self, name: &str) -> String {
        self.says(name, condition::FRESH)
    }

    pub(crate) fn ready(&self, name: &str) -> String {
        self.says(name, condition::READY)
    }

    /// Events about a resource, oldest first: `Warning Stale`.
    pub(crate) fn events(&self, about: &str) -> Vec<String> {
        let mut events = self.api.list::<Event>(NS);
        events.retain(|event| event.regarding.as_ref().and_then(|r| r.name.as_deref()) == Some(about));
        events.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
        let told = |event: Event| format!("{} {}", event.type_.unwrap_or_default(), event.reason.unwrap_or_default());
        events.into_iter().map(told).collect()
    }

    /// The value of a series, 0 where there is none.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let page = self.subjects.metrics.page(Format::Text).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// `ok`, or why not.
    pub(crate) fn health(&self) -> String {
        self.subjects.liveness.verdict().err().unwrap_or_else(|| "ok".to_owned())
    }

    pub(crate) fn readiness(&self) -> String {
        self.subjects.readiness.verdict().err().unwrap_or_else(|| "ok".to_owned())
    }

    /// What the watchdog asked and wrote, without signs of life.
    pub(crate) fn watchdog_calls(&self) -> Vec<String> {
        let mut calls = self.api.requests_after(0, WATCHDOG);
        calls.retain(|call| !call.contains("version"));
        calls
    }

    // ---- what is done to it

    /// Puts `fault` on every call that `which` picks, until faults are cleared.
    pub(crate) fn on(&self, fault: Fault, which: impl Fn(&Call) -> bool + Send + 'static) {
        self.api.on_call(move |call| if which(call) { fault.clone() } else { Fault::None });
    }

    /// The network is gone: nothing arrives, nothing comes back, and nobody says so.
    pub(crate) fn black_hole(&self) {
        self.on(Fault::LostRequest, |_| true);
        self.api.break_watches(Break::Silent, |_| true);
    }

    /// Changes the spec of a resource.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut serde_json::Value)) {
        self.api.edit::<FerrVaultSecret>(NS, name, |object| change(&mut object["spec"]));
    }

    /// Sets the annotation that asks for a pass.
    pub(crate) fn ask_for_refresh(&self, name: &str, value: &str) {
        self.api.edit::<FerrVaultSecret>(NS, name, |object| {
            object["metadata"]["annotations"]["ferrvault.com/refresh"] = value.into();
        });
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop.cancel();
            running.tasks.iter().for_each(JoinHandle::abort);
        }
    }
}

/// A resource of this name that reads the vault of this name.
pub(crate) fn resource(name: &str, every: &str) -> build::Built {
    build::fvs(NS, name).through("conn").vault(name).every(every)
}
