//! Which runs there are, and running them on all cores, each thread with worlds of its own.

mod pairs;
mod shrink;
mod singles;
mod variants;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

pub use self::pairs::{Pairs, Progress, Shard, pairs};
pub use self::singles::singles;
pub use self::variants::{Catch, catch};
use crate::check::Violation;
use crate::faults::Occasion;
use crate::plan::{Place, Plan, Trouble};
use crate::run::{Outcome, Setup};
use crate::scenario::Scenario;

/// A run that did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Name of the scenario.
    pub scenario: &'static str,
    /// What went wrong.
    pub plan: Plan,
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// Call by call.
    pub story: String,
}

/// What came of many runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Runs by scenario, in the order of the scenarios.
    pub runs: Vec<(&'static str, usize)>,
    /// Runs that did not hold.
    pub failures: Vec<Failure>,
    /// Whether there was time for all of them.
    pub is_complete: bool,
}

impl Tally {
    /// Runs of all scenarios.
    pub fn total(&self) -> usize {
        self.runs.iter().map(|(_, runs)| runs).sum()
    }
}

/// How runs are carried out.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// When to stop, done or not.
    pub until: Option<Instant>,
    /// After so many failures the rest is not worth the time.
    pub enough_failures: usize,
}

impl Effort {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// The setup of a run of the real operator.
fn setup(scenario: &Scenario, plan: Plan, seed: u64, listens: bool) -> Setup<'_> {
    Setup { scenario, plan, seed, broken: None, listens, tells: false }
}

/// What can go wrong in a run that passed these places, one thing at a time.
fn every_single(places: &[(Place, Occasion)]) -> Vec<(Place, Trouble)> {
    places
        .iter()
        .flat_map(|(place, occasion)| occasion.troubles().into_iter().map(|trouble| (*place, trouble)))
        .collect()
}

fn failure(scenario: &Scenario, plan: Plan, outcome: Outcome) -> Failure {
    Failure { scenario: scenario.name, plan, violations: outcome.violations, story: outcome.story }
}

/// Does `work` for each of `jobs` on all threads, until all are done, time is up or it says that it is enough.
/// `progress` is called about once a second with how many are done. Returns whether all were done.
fn on_all_threads<J: Sync>(
    jobs: &[J],
    effort: &Effort,
    work: impl Fn(usize, &J) -> bool + Sync,
    progress: impl Fn(usize) + Sync,
) -> bool {
    let (next, done, enough) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let last_shown = Mutex::new(Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..effort.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    if effort.is_over() || enough.load(Ordering::Relaxed) {
                        return;
                    }
                    if !work(index, job) {
                        enough.store(true, Ordering::Relaxed);
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    let mut shown = last_shown.lock().unwrap_or_else(PoisonError::into_inner);
                    if shown.elapsed().as_secs() >= 1 {
                        *shown = Instant::now();
                        progress(done);
                    }
                }
            });
        }
    });
    done.into_inner() == jobs.len()
}
