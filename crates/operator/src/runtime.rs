//! The life of the process: what starts in which order, and how it ends.
//!
//! ```text
//! probes ─▶ cluster ─▶ election ┐
//!                      key ─────┴▶ watches, watchdog ─▶ lists complete ─▶ passes, while leading
//!                      rights (asked for, and waited for by /readyz alone)
//!
//! signal: no new pass ─▶ passes end (at most 20 s, then they are cut) ─▶ lease given back ─▶ status 0
//! a lasting task ends by itself: said so, status 1
//! ```
//!
//! A cluster that cannot be reached, a missing CRD or a forbidden verb is no reason to end: it is shown by `/readyz`, and
//! waited for.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ferrvault_core::version::OperatorKey;
use kube::{Client, Config};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::admin::{Admin, Readiness, Sockets, Subjects};
use crate::clock::Clock;
use crate::cluster::client::{self, Clients, NoCluster};
use crate::cluster::operator_key;
use crate::cluster::rights::{self, Right};
use crate::cluster::watch::{Started, WatchHealth};
use crate::controllers::{Controllers, Parts};
use crate::entropy::Entropy;
use crate::ferrvault::Http;
use crate::hooks;
use crate::key::ObjectKey;
use crate::leader::{Candidate, Elector, Leadership};
use crate::settings::Settings;
use crate::signals::Signals;
use crate::supervision::{Ended, Tasks};
use crate::surroundings::Surroundings;

/// For passes to end after a signal. With [`RELEASE`] it leaves 7 of the 30 s that a pod has by default for the process
/// to be told and to go.
const DRAIN: Duration = Duration::from_secs(20);

/// For the lease to be given back: one call of at most 2 s, and a turn that may be under way.
const RELEASE: Duration = Duration::from_secs(3);

/// How often it is asked whether every watch has its list: nobody notices a twentieth of a second at the start.
const LISTS_LOOK: Duration = Duration::from_millis(50);

/// Why the process ends with status 1.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The system did not let it listen to signals.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
    /// The thread of the probes did not start.
    #[error("the thread of probes and metrics cannot be started: {0}")]
    Admin(#[source] io::Error),
    /// There is no cluster to work for.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
    /// A task that lasts ended.
    #[error("{0} unexpectedly")]
    Task(Ended),
    /// A second signal came before the end.
    #[error("a second signal came: everything that still ran was cut off")]
    Impatience,
}

/// Works until a signal comes, and ends in good order.
pub async fn run(settings: Settings, sockets: Sockets) -> Result<(), Fatal> {
    let mut signals = Signals::new().map_err(Fatal::Signals)?;
    hooks::start();
    let surroundings = Surroundings::look();
    let subjects = Subjects::new(hooks::patience(settings.stall_threshold));
    let (metrics, probes) = (sockets.metrics_address(), sockets.probe_address());
    let admin = Admin::start(sockets, &subjects).map_err(Fatal::Admin)?;
    let (config, source) = client::configuration().await?;
    let namespace = surroundings.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let server = config.cluster_url.to_string();
    let clients = Clients::new(config.clone())
        .map_err(|error| NoCluster::Client { source_name: "configuration of the cluster", error: Box::new(error) })?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        %server,
        %source,
        namespace,
        scope = ?settings.scope,
        metrics = metrics.map(tracing::field::display),
        probes = probes.map(tracing::field::display),
        "started"
    );

    let (stop, drained) = (CancellationToken::new(), CancellationToken::new());
    let (mut lasting, mut working) = (Tasks::default(), Tasks::default());
    lasting.spawn("the heartbeat", subjects.heartbeat.clone().run());
    lasting.spawn("the server of probes and metrics", admin.ended());
    let (clock, entropy) = (Clock::system(), Entropy::system());
    let key_secret = ObjectKey::new(namespace.as_str(), settings.key_secret.as_str());
    let lease = settings.lease.as_deref().map(|lease| ObjectKey::new(namespace.as_str(), lease));
    let rights = rights::needed(&settings.scope, &key_secret, lease.as_ref());
    working.spawn(
        "the review of rights",
        review(clients.request.clone(), rights, subjects.readiness.clone(), stop.clone()),
    );
    let leadership = match &settings.lease {
        None => Leadership::always(),
        Some(lease) => {
            let candidate = Candidate {
                namespace: namespace.clone(),
                lease: lease.clone(),
                pod: surroundings.pod.clone(),
                times: settings.lease_times,
            };
            let (elector, leadership) = Elector::new(clients.request.clone(), candidate, clock.clone(), &entropy);
            lasting.spawn("the election", elector.run(drained.clone()));
            leadership
        }
    };
    let liveness = subjects.liveness.clone();
    let work =
        Work { settings, clients, config, leadership, clock, entropy, subjects, key_secret, pod: surroundings.pod };
    working.spawn("the work", work.run(stop.clone()));

    let cause = tokio::select! {
        name = signals.next() => Ok(name),
        ended = lasting.early_end(&drained) => Err(Fatal::Task(ended)),
        ended = working.early_end(&stop) => Err(Fatal::Task(ended)),
    };
    match &cause {
        Ok(signal) => tracing::info!(signal, "stopping: no new pass is started"),
        Err(fatal) => {
            tracing::error!(%fatal, "stopping");
            liveness.ended(fatal);
        }
    }
    let ending = async {
        stop.cancel();
        if timeout(DRAIN, working.all_ended()).await.is_err() {
            tracing::warn!(after = ?DRAIN, "passes that still ran were cut off; the next start goes on where they were");
        }
        // Before the lease is given back: whoever takes it must not find a pass of ours still beginning writes.
        working.shutdown().await;
        drained.cancel();
        let _ = timeout(RELEASE, lasting.end_of("the election")).await;
    };
    tokio::select! {
        () = ending => {}
        _ = signals.next() => return Err(Fatal::Impatience),
    }
    tracing::info!("stopped");
    cause.map(drop)
}

/// Everything that ends at the stop.
struct Work {
    settings: Settings,
    clients: Clients,
    config: Config,
    leadership: Leadership,
    clock: Clock,
    entropy: Entropy,
    subjects: Subjects,
    key_secret: ObjectKey,
    pod: String,
}

impl Work {
    async fn run(self, stop: CancellationToken) {
        let Some(operator_key) = stop.run_until_cancelled(self.operator_key()).await else { return };
        let Subjects { readiness, liveness, .. } = self.subjects.clone();
        let config = self.config.clone();
        let controllers = Controllers::new(self.parts(operator_key));
        let started = controllers.watch(&stop);
        for watch in &started {
            readiness.wait_for_watch(&watch.health);
        }
        let watchdog = controllers.watchdog();
        controllers.tell_liveness(&liveness, &started, &watchdog);
        let watchdog = match watchdog.start(config, stop.clone()) {
            Ok(running) => running,
            Err(error) => {
                tracing::error!(%error, "the thread of the watchdog cannot be started");
                return;
            }
        };
        let healths: Vec<_> = started.iter().map(|watch| watch.health.clone()).collect();
        let mut beside = Tasks::default();
        beside.spawn("the watchdog", watchdog.ended());
        for Started { health, task } in started {
            beside.spawn(format!("the watch of {}", health.snapshot().name), passed_on(task));
        }
        let passes = async {
            if stop.run_until_cancelled(every_list(&healths)).await.is_some() {
                tracing::info!("every list is complete: passes may begin");
                controllers.run(stop.clone()).await;
            }
        };
        tokio::select! {
            () = passes => {}
            ended = beside.early_end(&stop) => {
                tracing::error!(%ended, "unexpectedly");
                liveness.ended(ended);
            }
        }
    }

    /// The operator key, once it can be had.
    async fn operator_key(&self) -> OperatorKey {
        let secret = &self.key_secret;
        let part = self.subjects.readiness.part("operator key", format!("Secret {secret} was not read yet"));
        let mut told = String::new();
        let key = operator_key::obtain(&self.clients.request, secret, &self.entropy, |problem| {
            let problem = problem.to_string();
            part.waiting(problem.as_str());
            // Tried every few seconds; what does not change is said once.
            if told != problem {
                tracing::warn!(problem, "no operator key yet");
                told = problem;
            }
        });
        let key = key.await;
        part.ready();
        key
    }

    fn parts(self, operator_key: OperatorKey) -> Parts {
        Parts {
            clients: self.clients,
            leadership: self.leadership,
            ferrvault: Arc::new(Http::new(self.settings.oidc.origins.clone())),
            oidc: self.settings.oidc,
            operator_key,
            clock: self.clock,
            entropy: self.entropy,
            metrics: self.subjects.metrics,
            instance: self.pod,
            scope: self.settings.scope,
            limits: self.settings.limits,
            default_refresh: self.settings.default_refresh_interval,
            deadline: self.settings.reconcile_timeout,
        }
    }
}

/// Lets `/readyz` name the rights that are missing, until none is. Ends at the stop.
async fn review(client: Client, rights: Vec<Right>, readiness: Readiness, stop: CancellationToken) {
    let part = readiness.part("rights", "the API server was not asked for them yet");
    let mut told = String::new();
    let granted = rights::until_granted(&client, rights, |missing| {
        let problem = match missing {
            Ok(missing) if missing.is_empty() => {
                part.ready();
                return;
            }
            Ok(missing) => {
                format!("not granted: {}", missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
            Err(error) => error.user_message_for("asking the API server for them"),
        };
        part.waiting(problem.as_str());
        if told != problem {
            tracing::warn!(problem, "rights are missing or not known");
            told = problem;
        }
    });
    let _stopped = stop.run_until_cancelled(granted).await;
    // A task that ends before the stop is a failure, and this one has merely done its work.
    stop.cancelled().await;
}

/// Waits until every watch has read its list to the end.
async fn every_list(watches: &[WatchHealth]) {
    while !watches.iter().all(WatchHealth::is_synced) {
        tokio::time::sleep(LISTS_LOOK).await;
    }
}

/// Ends as `task` ends, a panic included.
async fn passed_on(task: tokio::task::JoinHandle<()>) {
    if let Err(error) = task.await
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
