//! Whether the process can do its work, and if not, which part of it is missing and why.
//!
//! Each part reports for itself, or can be asked. As long as one of them waits, or there is none yet, the process is not
//! ready.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::cluster::watch::WatchHealth;

/// A watch that stood once and has failed this often since is told of. Fewer failures are an API server that restarts;
/// with waits that double from 0.8 s, five are told of after about 25 s.
const FAILURES_TOLD: u32 = 5;

/// The parts and what they wait for. Clones share it.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<Parts>>);

type Parts = BTreeMap<String, State>;

#[derive(Clone)]
enum State {
    Ready,
    Waiting(String),
    Ask(Arc<dyn Fn() -> Result<(), String> + Send + Sync>),
}

/// One part, which reports. Clones are the same part.
#[derive(Clone, Debug)]
pub struct Part {
    name: String,
    of: Readiness,
}

impl Readiness {
    /// A new part called `name`, which waits for the reason `why` until it says otherwise.
    pub fn part(&self, name: impl Into<String>, why: impl Into<String>) -> Part {
        let part = Part { name: name.into(), of: self.clone() };
        part.waiting(why);
        part
    }

    /// A new part called `name`, which is asked each time and answers why it is not ready.
    pub fn ask(&self, name: impl Into<String>, judge: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.parts().insert(name.into(), State::Ask(Arc::new(judge)));
    }

    /// A new part for a watch: ready once it has read its list to the end, and until it fails again and again.
    pub fn wait_for_watch(&self, health: &WatchHealth) {
        let health = health.clone();
        self.ask(format!("watch of {}", health.snapshot().name), move || {
            let state = health.snapshot();
            if state.synced && (state.failures < FAILURES_TOLD || state.is_made_good(Instant::now())) {
                return Ok(());
            }
            Err(state.last_error.unwrap_or_else(|| "the first list is not complete".to_owned()))
        });
    }

    /// Whether every part is ready, or one line per part that is not.
    pub fn verdict(&self) -> Result<(), String> {
        // Parts are asked outside the lock: what they do is their own business.
        let parts = self.parts().clone();
        if parts.is_empty() {
            return Err("starting".to_owned());
        }
        let mut missing = String::new();
        for (name, state) in parts {
            let verdict = match state {
                State::Ready => Ok(()),
                State::Waiting(why) => Err(why),
                State::Ask(judge) => judge(),
            };
            if let Err(why) = verdict {
                // Writing to a string cannot fail.
                let _ = writeln!(missing, "{name}: {why}");
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(missing.trim_end().to_owned()) }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    /// The part does its work.
    pub fn ready(&self) {
        self.of.parts().insert(self.name.clone(), State::Ready);
    }

    /// The part cannot do its work, because of `why`: one line, for people.
    pub fn waiting(&self, why: impl Into<String>) {
        self.of.parts().insert(self.name.clone(), State::Waiting(why.into()));
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts().keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_any_part_reports_the_process_is_starting() {
        assert_eq!(Readiness::default().verdict(), Err("starting".to_owned()));
    }

    #[test]
    fn every_part_that_waits_is_named_with_its_reason() {
        let readiness = Readiness::default();
        let secrets = readiness.part("watch of FerrVaultSecret", "first list not finished");
        let connections = readiness.part("watch of FerrVaultConnection", "first list not finished");
        connections.waiting("the CRD is not installed");
        assert_eq!(
            readiness.verdict().unwrap_err(),
            "watch of FerrVaultConnection: the CRD is not installed\nwatch of FerrVaultSecret: first list not finished"
        );
        secrets.ready();
        assert_eq!(readiness.verdict().unwrap_err(), "watch of FerrVaultConnection: the CRD is not installed");
        connections.ready();
        assert_eq!(readiness.verdict(), Ok(()));
    }

    #[test]
    fn a_part_that_is_asked_answers_for_the_moment() {
        let readiness = Readiness::default();
        let (there, asked) = (Arc::new(Mutex::new(false)), readiness.clone());
        readiness.ask("cache", {
            let there = Arc::clone(&there);
            move || {
                // May look at the others without standing in its own way.
                let _ = asked.parts().len();
                if *there.lock().unwrap() { Ok(()) } else { Err("empty".to_owned()) }
            }
        });
        assert_eq!(readiness.verdict().unwrap_err(), "cache: empty");
        *there.lock().unwrap() = true;
        assert_eq!(readiness.verdict(), Ok(()));
    }

    #[test]
    fn a_part_may_fall_back() {
        let readiness = Readiness::default();
        let lease = readiness.part("lease", "not read yet");
        lease.ready();
        lease.clone().waiting("forbidden: get leases");
        assert_eq!(readiness.verdict().unwrap_err(), "lease: forbidden: get leases");
    }
}
