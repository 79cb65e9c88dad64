//! What is counted, under the names that dashboards and alerts of the Go operator use.
//!
//! Passes count what they did; everything that is a state (what exists, what runs, since when) is computed at the moment
//! of the scrape, so it cannot freeze. Labels carry names, reasons and results, never a value.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ferrvault_api::Reason;
use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::objects::{ObjectSeries, seconds_of};
use crate::queue::{Queue, Work};

/// Of the page: the text format of Prometheus, which every scraper reads.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// The controller of resources, as the label says it.
pub const SECRET_CONTROLLER: &str = "ferrvaultsecret";

/// The controller of connections, as the label says it.
pub const CONNECTION_CONTROLLER: &str = "ferrvaultconnection";

/// Upper bounds in seconds. An unchanged pass takes some tens of milliseconds, a call with its retries half a minute, and
/// the default deadline of a pass is two minutes.
const PASS_SECONDS: [f64; 13] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassResult {
    /// The target is what it should be.
    Success,
    /// It is not, and the reason is on the resource.
    Error,
    /// The pass was cut off at its deadline.
    Timeout,
}

impl PassResult {
    const ALL: [Self; 3] = [Self::Success, Self::Error, Self::Timeout];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            // As the Go operator had it: dashboards ask for it by this word.
            Self::Error => "failure",
            Self::Timeout => "timeout",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByController {
    controller: &'static str,
}

/// The metrics of the process. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    durations: Family<ByResult, Histogram, fn() -> Histogram>,
    errors: Family<ByReason, Counter>,
    timeouts: Family<ByController, Counter>,
    state: Arc<State>,
    registry: Registry,
}

/// What is asked at each scrape.
#[derive(Default)]
struct State {
    last_success: Mutex<Option<Timestamp>>,
    queues: Mutex<Vec<(&'static str, Source<Duration>)>>,
    objects: Mutex<Option<Source<ObjectSeries>>>,
}

type Source<T> = Arc<dyn Fn() -> T + Send + Sync>;

impl Metrics {
    /// A pass over a resource has ended at `now`, after `duration`.
    pub fn pass_finished(&self, result: PassResult, duration: Duration, now: Timestamp) {
        let by = ByResult { result: result.as_str() };
        self.0.durations.get_or_create(&by).observe(duration.as_secs_f64());
        if result == PassResult::Success {
            *self.0.state.last_success.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
    }

    /// A pass over a resource left an error with `reason`, of its sync or of a restart.
    pub fn error(&self, reason: Reason) {
        self.0.errors.get_or_create(&ByReason { reason: reason.as_str() }).inc();
    }

    /// A pass of `controller` was cut off at its deadline.
    pub fn timeout(&self, controller: &'static str) {
        self.0.timeouts.get_or_create(&ByController { controller }).inc();
    }

    /// From now on, tells how long the passes of `queue` have been running.
    pub fn tell_queue<W: Work>(&self, queue: &Queue<W>) {
        let queue = queue.clone();
        let controller = queue.controller();
        let longest = move || queue.snapshot().longest_running(Instant::now()).unwrap_or_default();
        let mut queues = self.0.state.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.push((controller, Arc::new(longest)));
    }

    /// From now on, tells of the objects that `objects` finds. Called at each scrape, on the thread of the scrape.
    pub fn tell_objects(&self, objects: impl Fn() -> ObjectSeries + Send + Sync + 'static) {
        *self.0.state.objects.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(objects));
    }

    /// The page, as things are now.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.0.registry)?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = Family::new_with_constructor((|| Histogram::new(PASS_SECONDS)) as fn() -> Histogram);
        let (errors, timeouts, state) = (Family::default(), Family::default(), Arc::new(State::default()));
        // From the first scrape on, or the step from nothing to one would not be seen as an increase.
        for result in PassResult::ALL {
            let _ = durations.get_or_create(&ByResult { result: result.as_str() });
        }
        for reason in Reason::ALL.into_iter().filter(|reason| is_error(*reason)) {
            let _ = errors.get_or_create(&ByReason { reason: reason.as_str() });
        }
        for controller in [SECRET_CONTROLLER, CONNECTION_CONTROLLER] {
            let _ = timeouts.get_or_create(&ByController { controller });
        }

        let mut registry = Registry::default();
        registry.register(
            "ferrvault_secret_sync_duration_seconds",
            "How long the passes over FerrVaultSecrets took, by how they ended",
            durations.clone(),
        );
        // The encoder puts `_total` behind the names of counters.
        registry.register(
            "ferrvault_secret_sync_errors",
            "Errors of passes over FerrVaultSecrets, by the reason on the resource",
            errors.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_timeouts",
            "Passes that were cut off at --reconcile-timeout",
            timeouts.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&state)));
        Self(Arc::new(Inner { durations, errors, timeouts, state, registry }))
    }
}

/// Whether `reason` says that something is wrong with a resource.
fn is_error(reason: Reason) -> bool {
    use Reason::{DeletionBlocked, Reachable, Restarted, RolloutPending, Synced};
    !matches!(reason, Synced | Restarted | RolloutPending | Reachable | DeletionBlocked)
}

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let last_success = *self.last_success.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(time) = last_success {
            let name = "ferrvault_last_successful_reconcile_timestamp_seconds";
            let help = "When a pass over any FerrVaultSecret last succeeded, as Unix time.";
            encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&seconds_of(time))?;
        }

        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let name = "workqueue_longest_running_processor_seconds";
        let help = "How long the pass that runs longest has been running; 0 when none runs.";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (controller, longest) in &queues {
            metric.encode_family(&[("controller", *controller)])?.encode_gauge(&longest().as_secs_f64())?;
        }

        // The locks are not held while others are asked.
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner).clone();
        objects.map_or_else(ObjectSeries::default, |objects| objects()).encode(&mut encoder)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}
