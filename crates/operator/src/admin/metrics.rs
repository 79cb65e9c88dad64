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
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::families::{self, Sources};
use super::negotiate::Format;
use super::objects::{ObjectSeries, seconds_of};

/// The controller of resources, as the label says it.
pub const SECRET_CONTROLLER: &str = "ferrvaultsecret";

/// The controller of connections, as the label says it.
pub const CONNECTION_CONTROLLER: &str = "ferrvaultconnection";

/// Upper bounds in seconds. An unchanged pass takes some tens of milliseconds, a call with its retries half a minute, and
/// the default deadline of a pass is two minutes.
const PASS_SECONDS: [f64; 13] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// Upper bounds in seconds. A new version is written and its workloads are stamped within a second; a restart that is
/// refused is tried again every five minutes at the latest, and somebody may need a day to grant the right for it.
const PROPAGATION_SECONDS: [f64; 14] =
    [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 21_600.0, 86_400.0];

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

/// How far a changed content got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Into the target.
    Written,
    /// To the last of the workloads.
    Restarted,
}

impl Stage {
    const ALL: [Self; 2] = [Self::Written, Self::Restarted];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Restarted => "restarted",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStage {
    stage: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
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
    panics: Family<ByController, Counter>,
    propagation: Family<ByStage, Histogram, fn() -> Histogram>,
    sources: Sources,
    state: Arc<State>,
    registry: Registry,
}

/// What is asked at each scrape.
#[derive(Default)]
struct State {
    last_success: Mutex<Option<Timestamp>>,
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

    /// A pass of `controller` panicked.
    pub fn panicked(&self, controller: &'static str) {
        self.0.panics.get_or_create(&ByController { controller }).inc();
    }

    /// Content that FerrVault was seen to have changed came as far as `stage`, `after` it was seen.
    pub fn propagated(&self, stage: Stage, after: Duration) {
        self.0.propagation.get_or_create(&ByStage { stage: stage.as_str() }).observe(after.as_secs_f64());
    }

    /// From now on, `ask` is asked at each scrape for the series of `family` that `of` stands for: a controller, a watch,
    /// or nothing where there is only one. On the thread of the scrape, so it must not wait for the main runtime.
    pub fn tell(&self, family: families::Family, of: &str, ask: impl Fn() -> f64 + Send + Sync + 'static) {
        self.0.sources.tell(family, of, ask);
    }

    /// From now on, tells of the objects that `objects` finds. Called at each scrape, on the thread of the scrape.
    pub fn tell_objects(&self, objects: impl Fn() -> ObjectSeries + Send + Sync + 'static) {
        *self.0.state.objects.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(objects));
    }

    /// The page that everybody can read, as things are now.
    pub fn text(&self) -> Result<String, fmt::Error> {
        self.page(Format::Text)
    }

    /// The page, as things are now.
    pub fn page(&self, format: Format) -> Result<String, fmt::Error> {
        let mut page = String::new();
        match format {
            Format::Text => prometheus_text::encode(&mut page, &self.0.registry)?,
            Format::OpenMetrics => text::encode(&mut page, &self.0.registry)?,
        }
        Ok(page)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = Family::new_with_constructor((|| Histogram::new(PASS_SECONDS)) as fn() -> Histogram);
        let propagation = Family::new_with_constructor((|| Histogram::new(PROPAGATION_SECONDS)) as fn() -> Histogram);
        let (errors, timeouts, panics) = (Family::default(), Family::default(), Family::default());
        let (sources, state) = (Sources::default(), Arc::new(State::default()));
        // From the first scrape on, or the step from nothing to one would not be seen as an increase.
        for result in PassResult::ALL {
            let _ = durations.get_or_create(&ByResult { result: result.as_str() });
        }
        for reason in Reason::ALL.into_iter().filter(|reason| is_error(*reason)) {
            let _ = errors.get_or_create(&ByReason { reason: reason.as_str() });
        }
        for controller in [SECRET_CONTROLLER, CONNECTION_CONTROLLER] {
            let _ = timeouts.get_or_create(&ByController { controller });
            let _ = panics.get_or_create(&ByController { controller });
        }
        for stage in Stage::ALL {
            let _ = propagation.get_or_create(&ByStage { stage: stage.as_str() });
        }

        let mut registry = Registry::default();
        registry.register(
            "ferrvault_operator_build",
            "What this process was built from; always 1",
            Info::new(Build { version: env!("CARGO_PKG_VERSION") }),
        );
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
        registry.register("controller_runtime_reconcile_panics", "Passes that panicked", panics.clone());
        registry.register(
            "ferrvault_secret_propagation_seconds",
            "How long after FerrVault's answer was seen to have changed it was in the target, and at the last workload",
            propagation.clone(),
        );
        registry.register_collector(Box::new(sources.clone()));
        registry.register_collector(Box::new(Arc::clone(&state)));
        Self(Arc::new(Inner { durations, errors, timeouts, panics, propagation, sources, state, registry }))
    }
}

/// Whether `reason` says that something is wrong with a resource.
fn is_error(reason: Reason) -> bool {
    use Reason::{Current, DeletionBlocked, Overdue, Reachable, Restarted, RolloutPending, Stale, Suspended, Synced};
    // What is stale or overdue is no error of a pass: there is none.
    !matches!(
        reason,
        Synced | Restarted | RolloutPending | Reachable | DeletionBlocked | Suspended | Current | Stale | Overdue
    )
}

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let last_success = *self.last_success.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(time) = last_success {
            let name = "ferrvault_last_successful_reconcile_timestamp_seconds";
            let help = "When a pass over any FerrVaultSecret last succeeded, as Unix time.";
            encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&seconds_of(time))?;
        }

        // The lock is not held while others are asked.
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner).clone();
        objects.map_or_else(ObjectSeries::default, |objects| objects()).encode(&mut encoder)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}
