//! What the command line shows: how far it is, what did not hold and how to see it again, and counts at the end.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use ferrvault_sim::plan::Plan;
use ferrvault_sim::scenario::Scenario;
use ferrvault_sim::{Catch, Failure, Outcome, Progress, Setup, Tally, run, variants};

/// After so many failures the rest is not worth the time.
pub(crate) const ENOUGH: usize = 1_000;
/// So many are shown with their story.
const TOLD: usize = 3;

/// The scenarios and the broken operators.
pub(crate) fn list(scenarios: &[Scenario]) {
    println!("{} scenarios", scenarios.len());
    for scenario in scenarios {
        println!("  {:<34} {}", scenario.name, scenario.about);
    }
    println!("{} broken operators", variants().len());
    for variant in variants() {
        println!("  {:<34} {}", variant.name, variant.about);
    }
}

/// Every scenario once, with what could have gone wrong in it.
pub(crate) fn clean(scenarios: &[Scenario], seed: u64) -> Tally {
    let mut tally = Tally { is_complete: true, ..Tally::default() };
    for scenario in scenarios {
        let plan = Plan::clean();
        let outcome = run(&Setup { scenario, plan, seed, broken: None, listens: true, tells: false });
        let faults: usize = outcome.places.iter().map(|(_, occasion)| occasion.troubles().len()).sum();
        println!("{:<34} {:>3} places, {faults:>5} faults", scenario.name, outcome.places.len());
        tally.runs.push((scenario.name, 1));
        if !outcome.violations.is_empty() {
            let (violations, story) = (outcome.violations, outcome.story);
            tally.failures.push(Failure { scenario: scenario.name, plan: Plan::clean(), violations, story });
        }
    }
    tally
}

/// A line that is written over itself on a terminal, and now and then elsewhere.
fn show(line: &str, is_due: bool) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{line}\x1b[K");
        let _ = std::io::stderr().flush();
    } else if is_due {
        eprintln!("{line}");
    }
}

/// Seconds between two lines where no terminal shows them.
const PERIOD: u64 = 30;

/// Progress of the singles.
pub(crate) fn so_far(begun: Instant) -> impl Fn(usize, usize) + Sync {
    move |done, total| {
        let elapsed = begun.elapsed();
        show(&format!("{done} of {total} runs, {} s", elapsed.as_secs()), elapsed.as_secs().is_multiple_of(PERIOD));
    }
}

/// Progress of the pairs.
pub(crate) fn pairs_so_far(begun: Instant) -> impl Fn(Progress) + Sync {
    move |progress| {
        let elapsed = begun.elapsed();
        show(&in_one_line(progress, elapsed), elapsed.as_secs().is_multiple_of(PERIOD));
    }
}

/// How far a run of pairs is, how fast, and how long the rest takes if it goes on like this. First faults are shuffled,
/// so those that are done say what the others cost.
fn in_one_line(progress: Progress, elapsed: Duration) -> String {
    const WIDTH: usize = 24;
    let Progress { firsts, of, pairs, earlier_firsts, earlier_pairs } = progress;
    let full = (firsts * WIDTH).checked_div(of).unwrap_or(WIDTH);
    let bar: String = (0..WIDTH).map(|cell| if cell < full { '#' } else { '.' }).collect();
    let done_now = firsts.saturating_sub(earlier_firsts);
    let milliseconds = usize::try_from(elapsed.as_millis()).unwrap_or(usize::MAX).max(1);
    let rate = pairs.saturating_sub(earlier_pairs).saturating_mul(1_000) / milliseconds;
    let left = match (of.saturating_sub(firsts) * milliseconds).checked_div(done_now * 60_000) {
        None => "nothing to judge the rest by yet".to_owned(),
        Some(minutes) => format!("about {} h {:02} min left", minutes / 60, minutes % 60),
    };
    format!("[{bar}] {firsts} of {of} first faults, {pairs} pairs, {rate}/s, {} s, {left}", elapsed.as_secs())
}

/// What did not hold, with the command that shows it again.
fn failed(failure: &Failure, seed: u64, with_story: bool) {
    println!("\n{}:{} does not hold", failure.scenario, failure.plan);
    for violation in &failure.violations {
        println!("  {violation}");
    }
    println!("  again: cargo xtask sim --seed {seed} --replay '{}:{}'", failure.scenario, failure.plan);
    if with_story {
        println!("{}", failure.story);
    }
}

/// The end of a run: failures, runs by scenario, and the sum. Whether everything held.
pub(crate) fn end(tally: &Tally, seed: u64, took: Duration) -> bool {
    show("", false);
    for (index, failure) in tally.failures.iter().enumerate() {
        failed(failure, seed, index < TOLD);
    }
    println!();
    for (name, runs) in &tally.runs {
        let failures = tally.failures.iter().filter(|failure| failure.scenario == *name).count();
        println!("{name:<34} {runs:>8} runs {failures:>5} that do not hold");
    }
    let complete = if tally.is_complete { "all of them" } else { "as far as there was time" };
    let (runs, failures) = (tally.total(), tally.failures.len());
    println!("{runs} runs, {complete}, in {} s with seed {seed}: {failures} that do not hold", took.as_secs());
    tally.failures.is_empty()
}

/// One broken operator.
pub(crate) fn caught(catch: &Catch) {
    let name = catch.variant.name;
    match &catch.caught {
        None => println!("{name:<32} SURVIVED {} runs", catch.runs),
        Some(failure) => {
            let mut invariants: Vec<_> = failure.violations.iter().map(|violation| violation.invariant).collect();
            invariants.sort_unstable();
            invariants.dedup();
            let invariants = invariants.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(" ");
            let faults = if failure.plan.is_empty() { "no fault".to_owned() } else { failure.plan.to_string() };
            println!("{name:<32} {invariants:<12} {}, {faults}", failure.scenario);
        }
    }
}

/// The sum of them. Whether all were caught.
pub(crate) fn all_caught(catches: &[Catch], took: Duration) -> bool {
    let caught = catches.iter().filter(|catch| catch.caught.is_some()).count();
    let runs: usize = catches.iter().map(|catch| catch.runs).sum();
    println!("{caught} of {} broken operators caught, {runs} runs in {} s", catches.len(), took.as_secs());
    caught == catches.len()
}

/// One run with its story.
pub(crate) fn told(outcome: &Outcome) {
    println!("{}", outcome.story);
    for violation in &outcome.violations {
        println!("{violation}");
    }
    if !outcome.all_happened {
        println!("not everything that was to go wrong came to pass: the run never got there");
    }
    if outcome.violations.is_empty() {
        println!("everything held; {} calls, {} places where things can go wrong", outcome.calls, outcome.places.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tells_the_rate_and_what_is_left_of_this_run_alone() {
        let minute = Duration::from_mins(1);
        let progress = Progress { firsts: 150, of: 900, pairs: 7_000, earlier_firsts: 100, earlier_pairs: 1_000 };
        let line = in_one_line(progress, minute);
        assert_eq!(
            line,
            "[####....................] 150 of 900 first faults, 7000 pairs, 100/s, 60 s, about 0 h 15 min left"
        );
        let nothing_yet = in_one_line(Progress { firsts: 100, ..progress }, minute);
        assert!(nothing_yet.ends_with("nothing to judge the rest by yet"), "{nothing_yet}");
    }
}
