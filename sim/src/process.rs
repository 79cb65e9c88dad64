//! One operator as a process: the real start (operator key, watches, complete lists, passes), the real end on request, and
//! an end that lets nothing go on.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ferrvault_operator::admin::Metrics;
use ferrvault_operator::clock::Clock;
use ferrvault_operator::cluster::client::Clients;
use ferrvault_operator::cluster::operator_key;
use ferrvault_operator::cluster::watch::{Scope, Started};
use ferrvault_operator::controllers::{Controllers, Parts};
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::ferrvault::{FerrVault, OidcLimits};
use ferrvault_operator::key::ObjectKey;
use ferrvault_operator::leader::{Candidate, Elector, Leadership, LeaseTimes};
use ferrvault_operator::queue::Limits;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Where the operator keeps its key.
pub(crate) const KEY_SECRET: &str = "ferrvault-operator-key";
/// `--reconcile-timeout`, at its default.
const DEADLINE: Duration = Duration::from_mins(2);
/// `--default-refresh-interval`, at its default.
const DEFAULT_REFRESH: Duration = Duration::from_hours(1);
/// Passes side by side.
const CONCURRENCY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(7);
/// How often a starting process looks whether its lists are complete.
const LOOK: Duration = Duration::from_millis(50);

/// What a process is started with.
pub(crate) struct Start {
    pub(crate) who: String,
    pub(crate) clients: Clients,
    /// The watchdog's.
    pub(crate) watch_over: kube::Client,
    /// The namespace of its own objects.
    pub(crate) system: String,
    pub(crate) scope: Scope,
    pub(crate) ferrvault: Arc<dyn FerrVault>,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) metrics: Metrics,
    /// Whether it stands for election, or leads whatever happens.
    pub(crate) elects: bool,
}

/// A running process.
pub(crate) struct Process {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Process {
    pub(crate) fn start(start: Start) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(live(start, stop.clone()));
        Self { stop, task }
    }

    /// As SIGTERM does: what runs is finished.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        // A process that was cut meanwhile has no end of its own.
        let _ = tokio::time::timeout(DEADLINE, self.task).await;
    }

    /// As SIGKILL does. The API server has to be told as well.
    pub(crate) fn kill(self) {
        self.task.abort();
    }

    /// Whether it ended although nobody asked it to.
    pub(crate) fn died(&self) -> bool {
        self.task.is_finished() && !self.stop.is_cancelled()
    }
}

/// Tasks that end with the process.
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

async fn live(start: Start, stop: CancellationToken) {
    // In the process the watchdog has a thread and a client of its own; here it has at least a client.
    let Start { who, clients, watch_over, system, scope, ferrvault, clock, entropy, metrics, elects } = start;
    let drained = CancellationToken::new();
    let mut tasks = Tasks(Vec::new());
    let leadership = if elects {
        let candidate = Candidate {
            namespace: system.clone(),
            lease: "ferrvault-operator.ferrvault.com".to_owned(),
            pod: who.clone(),
            times: LeaseTimes::default(),
        };
        let (elector, leadership) = Elector::new(clients.request.clone(), candidate, clock.clone(), &entropy);
        tasks.0.push(tokio::spawn(elector.run(drained.clone())));
        leadership
    } else {
        Leadership::always()
    };
    let secret = ObjectKey::new(system.as_str(), KEY_SECRET);
    let key = operator_key::obtain(&clients.request, &secret, &entropy, |_| {});
    let Some(operator_key) = stop.run_until_cancelled(key).await else { return };
    let controllers = Controllers::new(Parts {
        clients,
        leadership,
        ferrvault,
        oidc: OidcLimits { token_dir: "/nowhere".into(), origins: Vec::new() },
        operator_key,
        clock,
        entropy,
        metrics,
        instance: who,
        scope,
        limits: Limits::new(CONCURRENCY),
        default_refresh: DEFAULT_REFRESH,
        deadline: DEADLINE,
    });
    tasks.0.push(tokio::spawn(controllers.watchdog().run(watch_over, stop.clone())));
    let started = controllers.watch(&stop);
    let healths: Vec<_> = started.iter().map(|watch| watch.health.clone()).collect();
    tasks.0.extend(started.into_iter().map(|Started { task, .. }| task));
    let synced = async {
        while !healths.iter().all(ferrvault_operator::cluster::watch::WatchHealth::is_synced) {
            tokio::time::sleep(LOOK).await;
        }
    };
    if stop.run_until_cancelled(synced).await.is_some() {
        controllers.run(stop).await;
    }
    drained.cancel();
    // The lease is given back before the process is gone.
    if elects && let Some(election) = tasks.0.first_mut() {
        let _ = tokio::time::timeout(Duration::from_secs(3), election).await;
    }
}
