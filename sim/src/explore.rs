//! Which runs there are, and running them on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::check::Violation;
use crate::plan::Plan;
use crate::run::{Setup, run};
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
    /// Runs by scenario.
    pub runs: Vec<(&'static str, usize)>,
    /// Runs that did not hold.
    pub failures: Vec<Failure>,
}

/// Runs each scenario without a fault, and then with each fault at each place.
pub fn singles(scenarios: &[Scenario], seed: u64, threads: usize) -> Tally {
    let mut jobs: Vec<(&Scenario, Plan)> = Vec::new();
    let mut tally = Tally::default();
    for scenario in scenarios {
        let setup = Setup { scenario, plan: Plan::clean(), seed, broken: None, listens: true, tells: false };
        let clean = run(&setup);
        let mut count = 1;
        if !clean.violations.is_empty() {
            let (plan, violations, story) = (Plan::clean(), clean.violations, clean.story);
            tally.failures.push(Failure { scenario: scenario.name, plan, violations, story });
        }
        for (place, occasion) in clean.places {
            for trouble in occasion.troubles() {
                jobs.push((scenario, Plan::clean().with(place, trouble)));
                count += 1;
            }
        }
        tally.runs.push((scenario.name, count));
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((scenario, plan)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let setup = Setup { scenario, plan: plan.clone(), seed, broken: None, listens: true, tells: false };
                    let outcome = run(&setup);
                    if !outcome.violations.is_empty() {
                        let failure = Failure {
                            scenario: scenario.name,
                            plan: plan.clone(),
                            violations: outcome.violations,
                            story: outcome.story,
                        };
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                    }
                }
            });
        }
    });
    tally.failures.extend(failures.into_inner().unwrap_or_else(PoisonError::into_inner));
    tally
}
