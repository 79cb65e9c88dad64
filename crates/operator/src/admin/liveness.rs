//! Whether the process lives: asked of its parts at each look, on the thread of the probes.
//!
//! The parts are told of when they come into being; before that there is nothing to be wrong with them. The log hears of
//! it as soon as the answer changes, and so before the kubelet has seen it often enough to act.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::heartbeat::Heartbeat;
use super::vitals::{QueueVitals, Vitals, WatchVitals};
use crate::cluster::answers::Answers;
use crate::cluster::watch::WatchHealth;
use crate::pulse::Pulse;
use crate::queue::{Queue, Work};
use crate::term::Term;

/// How often the log is kept up to date. The kubelet asks every 20 s, and acts on the third red answer.
const LOOK: Duration = Duration::from_secs(5);

/// The parts of the process that have to stay alive. Clones share them.
#[derive(Clone)]
pub struct Liveness {
    heartbeat: Heartbeat,
    threshold: Duration,
    parts: Arc<Mutex<Parts>>,
}

#[derive(Clone, Default)]
struct Parts {
    ended: Option<String>,
    term: Option<Term>,
    queues: Vec<Arc<dyn Fn() -> QueueVitals + Send + Sync>>,
    watches: Vec<WatchHealth>,
    requests: Option<Answers>,
    watchdog: Option<Pulse>,
}

impl Liveness {
    /// That of a process whose main runtime beats like this, and in which nothing may stand still beyond `threshold`.
    pub fn new(heartbeat: Heartbeat, threshold: Duration) -> Self {
        Self { heartbeat, threshold, parts: Arc::default() }
    }

    /// Passes of this queue are to end, while there is a term.
    pub fn watch_over_queue<W: Work>(&self, queue: &Queue<W>) {
        let queue = queue.clone();
        let vitals = move || {
            let (snapshot, now) = (queue.snapshot(), Instant::now());
            let longest = snapshot.running.iter().min_by_key(|pass| pass.since);
            QueueVitals {
                controller: queue.controller(),
                longest: longest.map(|pass| (pass.key.to_string(), now.saturating_duration_since(pass.since))),
                oldest_waiting: snapshot.oldest_waiting,
                last_finished: snapshot.last_finished.map(|at| now.saturating_duration_since(at)),
            }
        };
        self.parts().queues.push(Arc::new(vitals));
    }

    /// Passes are started while this term lasts.
    pub fn watch_over_term(&self, term: &Term) {
        self.parts().term = Some(term.clone());
    }

    /// This watch is to hear from the API server.
    pub fn watch_over_watch(&self, health: &WatchHealth) {
        self.parts().watches.push(health.clone());
    }

    /// Who else hears from the API server.
    pub fn compare_with(&self, requests: &Answers) {
        self.parts().requests = Some(requests.clone());
    }

    /// This watchdog is to look.
    pub fn watch_over_watchdog(&self, pulse: &Pulse) {
        self.parts().watchdog = Some(pulse.clone());
    }

    /// A part that is meant to last has ended: `the election has panicked`. The first one counts.
    pub fn ended(&self, what: impl fmt::Display) {
        self.parts().ended.get_or_insert_with(|| what.to_string());
    }

    /// Whether the process lives, or one line that says why not.
    pub fn verdict(&self) -> Result<(), String> {
        self.heartbeat.verdict()?;
        // The parts are asked outside the lock: what they do is their own business.
        let Parts { ended, term, queues, watches, requests, watchdog } = self.parts().clone();
        let now = Instant::now();
        let vitals = Vitals {
            ended,
            working: term.and_then(|term| term.since()).map(|since| now.saturating_duration_since(since)),
            queues: queues.iter().map(|queue| queue()).collect(),
            watches: watches
                .iter()
                .map(WatchHealth::snapshot)
                .map(|watch| WatchVitals { silent: watch.without_answer(now), name: watch.name })
                .collect(),
            requests_silent: requests.map(|requests| requests.silence()),
            watchdog_silent: watchdog.map(|watchdog| watchdog.silence()),
        };
        vitals.verdict(self.threshold)
    }

    /// Tells the log whenever the process is no longer alive, or is so again. For ever.
    pub async fn keep_log(self) {
        let mut red = false;
        loop {
            tokio::time::sleep(LOOK).await;
            let verdict = self.verdict();
            if verdict.is_err() != red {
                red = verdict.is_err();
                match verdict {
                    Ok(()) => tracing::info!("liveness is green again"),
                    Err(why) => tracing::error!(why, "liveness is red: the process is to be restarted"),
                }
            }
        }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Liveness").field("threshold", &self.threshold).finish_non_exhaustive()
    }
}
