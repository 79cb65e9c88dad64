//! The broken operators, and how soon each is caught.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Effort, Failure, every_single, failure, on_all_threads};
use crate::broken::Variant;
use crate::plan::Plan;
use crate::run::{Outcome, Setup, run};
use crate::scenario::Scenario;

/// What became of one broken operator.
#[derive(Clone, Debug)]
pub struct Catch {
    /// Which.
    pub variant: Variant,
    /// The first run that did not hold; nothing if it survived everything.
    pub caught: Option<Failure>,
    /// Runs until then.
    pub runs: usize,
}

/// Runs `variant` until it is caught: in every scenario without a fault, then in each with every single one. Those where
/// it should be seen come first, either time.
pub fn catch(variant: Variant, scenarios: &[Scenario], effort: &Effort) -> Catch {
    let mut ordered: Vec<&Scenario> = scenarios.iter().collect();
    let rank = |scenario: &&Scenario| variant.seen_in.iter().position(|name| *name == scenario.name);
    ordered.sort_by_key(|scenario| rank(scenario).unwrap_or(usize::MAX));
    let mut runs = 0;
    let mut caught = without_faults(variant, &ordered, effort, &mut runs);
    for scenario in ordered {
        if caught.is_some() || effort.is_over() {
            break;
        }
        caught = with_faults(variant, scenario, effort, &mut runs);
    }
    Catch { variant, caught, runs }
}

fn lying(variant: Variant, scenario: &Scenario, plan: Plan, effort: &Effort) -> Outcome {
    run(&Setup { scenario, plan, seed: effort.seed, broken: Some(variant), listens: true, tells: false })
}

fn without_faults(variant: Variant, group: &[&Scenario], effort: &Effort, runs: &mut usize) -> Option<Failure> {
    group.iter().find_map(|scenario| {
        *runs += 1;
        let clean = lying(variant, scenario, Plan::clean(), effort);
        (!clean.violations.is_empty()).then(|| failure(scenario, Plan::clean(), clean))
    })
}

fn with_faults(variant: Variant, scenario: &Scenario, effort: &Effort, runs: &mut usize) -> Option<Failure> {
    let places = lying(variant, scenario, Plan::clean(), effort).places;
    let (caught, tried) = (Mutex::<Option<Failure>>::default(), AtomicUsize::new(0));
    on_all_threads(
        &every_single(&places),
        effort,
        |_, (place, trouble)| {
            let plan = Plan::clean().with(*place, *trouble);
            let outcome = lying(variant, scenario, plan.clone(), effort);
            tried.fetch_add(1, Ordering::Relaxed);
            if outcome.violations.is_empty() {
                return true;
            }
            let mut caught = caught.lock().unwrap_or_else(PoisonError::into_inner);
            // The first of them in the order of the places, whichever thread was faster.
            if caught.as_ref().is_none_or(|known| plan < known.plan) {
                *caught = Some(failure(scenario, plan, outcome));
            }
            false
        },
        |_| {},
    );
    *runs += tried.into_inner();
    caught.into_inner().unwrap_or_else(PoisonError::into_inner)
}
