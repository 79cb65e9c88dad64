//! Every scenario without a fault, and then with every fault at every place.

use std::sync::{Mutex, PoisonError};

use super::{Effort, Failure, Tally, every_single, failure, on_all_threads, setup};
use crate::plan::{Place, Plan, Trouble};
use crate::run::run;
use crate::scenario::Scenario;

/// Runs them all. `progress` is told how many of how many are done.
pub fn singles(scenarios: &[Scenario], effort: &Effort, progress: impl Fn(usize, usize) + Sync) -> Tally {
    let mut tally = Tally::default();
    let mut jobs: Vec<(&Scenario, Place, Trouble)> = Vec::new();
    for scenario in scenarios {
        let clean = run(&setup(scenario, Plan::clean(), effort.seed, true));
        let faults = every_single(&clean.places);
        tally.runs.push((scenario.name, 1 + faults.len()));
        jobs.extend(faults.into_iter().map(|(place, trouble)| (scenario, place, trouble)));
        if !clean.violations.is_empty() {
            tally.failures.push(failure(scenario, Plan::clean(), clean));
        }
    }
    // Long scenarios lie side by side: mixed, each thread gets its share of them to the end.
    fastrand::Rng::with_seed(effort.seed).shuffle(&mut jobs);
    let failures: Mutex<Vec<Failure>> = Mutex::default();
    let kept = || failures.lock().unwrap_or_else(PoisonError::into_inner);
    let total = jobs.len();
    tally.is_complete = on_all_threads(
        &jobs,
        effort,
        |_, (scenario, place, trouble)| {
            let plan = Plan::clean().with(*place, *trouble);
            let outcome = run(&setup(scenario, plan.clone(), effort.seed, true));
            if outcome.violations.is_empty() {
                return true;
            }
            let mut kept = kept();
            kept.push(failure(scenario, plan, outcome));
            kept.len() < effort.enough_failures
        },
        |done| progress(done, total),
    );
    let mut found = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by(|a, b| (a.scenario, &a.plan).cmp(&(b.scenario, &b.plan)));
    tally.failures.append(&mut found);
    tally
}
