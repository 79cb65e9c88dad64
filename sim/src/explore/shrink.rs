//! A failure made as small as it gets: with fewer faults, and with plainer ones in the same places.
//!
//! What is left must break an invariant that the whole broke, or it would be another story.

use super::Failure;
use crate::check::Invariant;
use crate::plan::{Place, Plan, Trouble};
use crate::run::Outcome;

/// Faults that everybody knows, the plainest first. One that is not of this kind of place is never tried.
const fn plain(place: Place) -> &'static [Trouble] {
    match place {
        Place::Call(_) => &[Trouble::Refuse(500), Trouble::ResetBefore, Trouble::CutBefore, Trouble::CutAfter],
        Place::Vault(_) => &[Trouble::Refuse(500), Trouble::ResetBefore, Trouble::CutBefore],
        Place::Event(_) => &[Trouble::Dropped],
    }
}

/// Smaller plans to try, the smallest first: one fault less, then one fault plainer.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let without = |left_out: Place| {
        plan.iter()
            .filter(|(place, _)| *place != left_out)
            .fold(Plan::clean(), |plan, (place, what)| plan.with(place, what))
    };
    let fewer = plan.iter().map(|(place, _)| without(place));
    let plainer = plan.iter().flat_map(|(place, trouble)| {
        let until = plain(place).iter().position(|known| *known == trouble).unwrap_or(plain(place).len());
        plain(place).iter().take(until).map(move |plainer| plan.clone().with(place, *plainer))
    });
    fewer.chain(plainer).collect()
}

fn broken(outcome: &Outcome) -> impl Iterator<Item = Invariant> {
    outcome.violations.iter().map(|violation| violation.invariant)
}

/// The smallest failure of the same kind that `again` finds on the way down from `whole`.
pub(super) fn shrunk(mut whole: Failure, again: impl Fn(&Plan) -> Outcome) -> Failure {
    let kind: Vec<Invariant> = whole.violations.iter().map(|violation| violation.invariant).collect();
    loop {
        let found = smaller(&whole.plan).into_iter().find_map(|plan| {
            let outcome = again(&plan);
            let is_the_same = broken(&outcome).any(|invariant| kind.contains(&invariant));
            is_the_same.then_some((plan, outcome))
        });
        let Some((plan, outcome)) = found else { return whole };
        whole = Failure { plan, violations: outcome.violations, story: outcome.story, ..whole };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::check::Violation;

    fn breaking(invariant: Invariant) -> Vec<Violation> {
        vec![Violation { invariant, at: Duration::ZERO, what: String::new() }]
    }

    fn failure(plan: &str) -> Failure {
        Failure {
            scenario: "rotation",
            plan: plan.parse().unwrap(),
            violations: breaking(Invariant::I1),
            story: String::new(),
        }
    }

    /// What is left of `plan` when `breaks` says what a plan breaks.
    fn left_of(plan: &str, breaks: impl Fn(&str) -> Option<Invariant>) -> String {
        let runs = Cell::new(0);
        let left = shrunk(failure(plan), |plan| {
            runs.set(runs.get() + 1);
            let violations = breaks(&plan.to_string()).map(breaking).unwrap_or_default();
            Outcome { violations, ..Outcome::default() }
        });
        assert!(runs.get() < 40, "{} runs", runs.get());
        left.plan.to_string()
    }

    #[test]
    fn a_fault_that_is_not_needed_goes() {
        let left = left_of("#4=CutAfter,#12=409", |plan| plan.contains("#12").then_some(Invariant::I1));
        assert_eq!(left, "#12=500");
    }

    #[test]
    fn a_fault_that_is_needed_becomes_as_plain_as_it_can() {
        let needs_an_end = |plan: &str| plan.contains("#4=Cut") && plan.contains("e5=");
        let left = left_of("#4=CutAfter,e5=Late5", |plan| needs_an_end(plan).then_some(Invariant::I1));
        assert_eq!(left, "#4=CutBefore,e5=Dropped");
        let left = left_of("F1=Nonsense", |plan| plan.contains("Nonsense").then_some(Invariant::I1));
        assert_eq!(left, "F1=Nonsense");
    }

    #[test]
    fn another_story_is_not_taken_for_the_same() {
        let left = left_of("#4=CutAfter,#12=409", |plan| {
            Some(if plan == "#4=CutAfter,#12=409" { Invariant::I1 } else { Invariant::I7 })
        });
        assert_eq!(left, "#4=CutAfter,#12=409");
    }
}
