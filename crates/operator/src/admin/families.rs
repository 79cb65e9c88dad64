//! The families of series that tell how the process is doing, and who is asked for them at each scrape.
//!
//! Each family is declared once, here, and fed by whoever has the state: one for the process, or one per controller or
//! watch. A source is asked on the thread of the scrape and must not wait for the main runtime, which may stand still:
//! that is when these numbers are needed. At most one label, whose values are fixed when the process starts, so the
//! number of series here is known: 8, 6 per controller, 4 per watch and 1 per kind, which makes 34.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// One family: what it is called, what it tells, and which label tells its series apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    name: &'static str,
    help: &'static str,
    label: Option<&'static str>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gauge,
    /// The encoder puts `_total` behind the name.
    Counter,
}

/// Whether `/readyz` is green.
pub const READY: Family = gauge("ferrvault_operator_ready", "Whether /readyz is green: 1 or 0.");

/// Whether `/healthz` is green.
pub const ALIVE: Family =
    gauge("ferrvault_operator_alive", "Whether /healthz is green: 1 or 0. Red means that a restart would help.");

/// How long the watchdog has been silent.
pub const WATCHDOG_SILENCE: Family = gauge(
    "ferrvault_watchdog_silence_seconds",
    "How long ago the watchdog last looked at every resource; it does so every five seconds.",
);

/// How long the main runtime has been silent.
pub const RUNTIME_SILENCE: Family = gauge(
    "ferrvault_operator_runtime_silence_seconds",
    "How long ago the main runtime last showed that it runs tasks; it does so every second.",
);

/// Whether this replica may write.
pub const LEADER: Family =
    gauge("ferrvault_operator_leader", "Whether this replica leads: 1 or 0. Always 1 without leader election.");

/// How often leadership was lost.
pub const LEADER_LOSSES: Family =
    counter("ferrvault_operator_leader_losses", "How often leadership was lost without being given back.");

/// Events that nobody will see.
pub const EVENTS_LOST: Family =
    counter("ferrvault_events_lost", "Kubernetes Events that were dropped or refused; their conditions were written.");

/// The last answer to a request.
pub const APISERVER_SILENCE: Family = gauge(
    "ferrvault_apiserver_silence_seconds",
    "How long ago the API server last answered a request, refusals included; while nothing else is asked, it is asked \
     every 15 s for a sign of life.",
);

/// Objects of another schema.
pub const UNREADABLE: Family =
    gauge("ferrvault_unreadable_objects", "Objects that exist and cannot be read by this version.").per("kind");

/// The longest pass.
pub const LONGEST_PASS: Family = gauge(
    "workqueue_longest_running_processor_seconds",
    "How long the pass that runs longest has been running; 0 when none runs.",
)
.per("controller");

/// Passes that run.
pub const RUNNING: Family = gauge("ferrvault_queue_running", "Passes that run.").per("controller");

/// Keys that wait.
pub const DEPTH: Family =
    gauge("workqueue_depth", "Objects with work that no pass was given yet. On a standby they wait for it to lead.")
        .per("controller");

/// Keys that have a time.
pub const SCHEDULED: Family =
    gauge("ferrvault_queue_scheduled", "Objects whose next pass has a time.").per("controller");

/// The oldest work.
pub const OLDEST_DUE: Family = gauge(
    "ferrvault_queue_oldest_due_seconds",
    "How long the work that waits longest has been due, whatever it waits for; 0 on a standby.",
)
.per("controller");

/// Nothing moves.
pub const STALLED: Family = gauge(
    "ferrvault_queue_stalled_seconds",
    "How long work has been due while no pass began and none ended; 0 when there is none, and on a standby.",
)
.per("controller");

/// The last word of a watch.
pub const WATCH_SILENCE: Family = gauge(
    "ferrvault_watch_silence_seconds",
    "How long ago the API server last sent anything for the watch; bookmarks come about once a minute.",
)
.per("watch");

/// Failures of whatever kind.
pub const WATCH_FAILURES: Family = counter(
    "ferrvault_watch_failures",
    "How often a list or watch was refused, came late or broke. Each is tried again, with a backoff of its own.",
)
.per("watch");

/// Watches that broke.
pub const WATCH_LOSSES: Family =
    counter("ferrvault_watch_losses", "How often the standing watch was broken off or given up.").per("watch");

/// Lists read.
pub const WATCH_LISTS: Family =
    counter("ferrvault_watch_lists", "How often the list was read to its end.").per("watch");

/// Every family, in the order of the page.
const ALL: [Family; 19] = [
    ALIVE,
    READY,
    RUNTIME_SILENCE,
    WATCHDOG_SILENCE,
    LEADER,
    LEADER_LOSSES,
    EVENTS_LOST,
    APISERVER_SILENCE,
    UNREADABLE,
    LONGEST_PASS,
    RUNNING,
    DEPTH,
    SCHEDULED,
    OLDEST_DUE,
    STALLED,
    WATCH_SILENCE,
    WATCH_FAILURES,
    WATCH_LOSSES,
    WATCH_LISTS,
];

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, help, label: None, kind: Kind::Gauge }
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, help, label: None, kind: Kind::Counter }
}

impl Family {
    const fn per(self, label: &'static str) -> Self {
        Self { label: Some(label), ..self }
    }
}

/// Who is asked for what. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Sources(Arc<Mutex<Vec<Source>>>);

#[derive(Clone)]
struct Source {
    family: Family,
    /// The value of the family's label; empty where it has none.
    of: Arc<str>,
    ask: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl Sources {
    /// From now on, `ask` is asked for the series of `family` that `of` stands for. The latest of two for one series counts.
    pub(super) fn tell(&self, family: Family, of: &str, ask: impl Fn() -> f64 + Send + Sync + 'static) {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|source| source.family != family || *source.of != *of);
        sources.push(Source { family, of: of.into(), ask: Arc::new(ask) });
    }
}

impl Collector for Sources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Asked outside the lock: what the sources do is their own business.
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for family in ALL {
            let metric_type = match family.kind {
                Kind::Gauge => MetricType::Gauge,
                Kind::Counter => MetricType::Counter,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, metric_type)?;
            for Source { of, ask, .. } in sources.iter().filter(|source| source.family == family) {
                match family.label {
                    Some(label) => one(&mut metric.encode_family(&[(label, &**of)])?, family.kind, ask())?,
                    None => one(&mut metric, family.kind, ask())?,
                }
            }
        }
        Ok(())
    }
}

fn one(metric: &mut MetricEncoder<'_>, kind: Kind, value: f64) -> fmt::Result {
    match kind {
        Kind::Gauge => metric.encode_gauge(&value),
        Kind::Counter => metric.encode_counter::<NoLabelSet, _, f64>(&value, None),
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}
