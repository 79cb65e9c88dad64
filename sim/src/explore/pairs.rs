//! Every ordered pair of faults: the second one at every place that the run passes after the first has happened.
//!
//! Where a run goes after a fault is known only once it has gone there. So the unit of work is a first fault: its run
//! alone tells the places that follow, and each of them is tried with everything that can go wrong there. Units are
//! shuffled by the seed, so that a run with a time limit is a sample of everything; dealt out to shards; and written to a
//! file when they are done, so that a run can be resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use super::shrink::shrunk;
use super::{Effort, Failure, Tally, every_single, failure, on_all_threads, setup};
use crate::faults::Occasion;
use crate::plan::{Place, Plan, Trouble};
use crate::run::run;
use crate::scenario::Scenario;

/// One part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub number: usize,
    /// Parts altogether.
    pub of: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { number: 1, of: 1 };
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((number, of)) if 1 <= number && number <= of => Ok(Self { number, of }),
            _ => Err(format!("{text:?} is no shard; write 2/8 for the second of eight")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Which part of it.
    pub shard: Shard,
    /// Where it is written down what is done.
    pub notebook: PathBuf,
    /// Whether what is written there is not done again.
    pub resumes: bool,
}

/// How far a run of pairs is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// First faults that are done with all their seconds.
    pub firsts: usize,
    /// First faults of this shard.
    pub of: usize,
    /// Pairs run so far.
    pub pairs: usize,
    /// First faults that an earlier run had done.
    pub earlier_firsts: usize,
    /// Pairs that an earlier run had done.
    pub earlier_pairs: usize,
}

type First<'a> = (&'a Scenario, Place, Trouble);

/// Runs them.
pub fn pairs(scenarios: &[Scenario], effort: &Effort, what: &Pairs, progress: impl Fn(Progress) + Sync) -> Tally {
    let mut firsts: Vec<First<'_>> = Vec::new();
    for scenario in scenarios {
        let clean = run(&setup(scenario, Plan::clean(), effort.seed, false));
        let faults = every_single(&worth_pairing(clean.places));
        firsts.extend(faults.into_iter().map(|(place, trouble)| (scenario, place, trouble)));
    }
    fastrand::Rng::with_seed(effort.seed).shuffle(&mut firsts);
    let title = format!("# seed {} shard {} of {} first faults", effort.seed, what.shard, firsts.len());
    let (number, of) = (what.shard.number - 1, what.shard.of);
    let mine = firsts.into_iter().enumerate().filter(|(index, _)| index % of == number);
    let notebook = Notebook::open(what, &title);
    let jobs: Vec<First<'_>> = mine.map(|(_, first)| first).filter(|first| !notebook.has(first)).collect();
    let (earlier_firsts, earlier_pairs) = (notebook.done(), notebook.pairs());
    let failures: Mutex<Vec<Failure>> = Mutex::default();
    let is_complete = on_all_threads(
        &jobs,
        effort,
        |_, (scenario, place, trouble)| {
            let mut found = Vec::new();
            let Some(count) = seconds_of(scenario, (*place, *trouble), effort, &mut found) else { return true };
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            notebook.write(&(scenario, *place, *trouble), count, &found);
            failures.append(&mut found);
            failures.len() < effort.enough_failures
        },
        |_| {
            let (firsts, of, pairs) = (notebook.done(), earlier_firsts + jobs.len(), notebook.pairs());
            progress(Progress { firsts, of, pairs, earlier_firsts, earlier_pairs });
        },
    );
    let counts = notebook.counts();
    let runs = scenarios.iter().map(|scenario| (scenario.name, counts.get(scenario.name).copied().unwrap_or_default()));
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    Tally { runs: runs.collect(), failures, is_complete }
}

/// Events for people are written beside the pass and nobody looks at the answer: of what can go wrong with them, only
/// the end of the process is worth a second fault. The singles try everything.
fn worth_pairing(places: Vec<(Place, Occasion)>) -> Vec<(Place, Occasion)> {
    places.into_iter().filter(|(_, occasion)| *occasion != Occasion::Telling).collect()
}

/// Every second fault after this first one; how many there were, or nothing where time was up before the last.
fn seconds_of(
    scenario: &Scenario,
    (place, trouble): (Place, Trouble),
    effort: &Effort,
    found: &mut Vec<Failure>,
) -> Option<usize> {
    let first = Plan::clean().with(place, trouble);
    let alone = run(&setup(scenario, first.clone(), effort.seed, false));
    if !alone.violations.is_empty() {
        // A single that does not hold: every pair with it would only say so again.
        found.push(failure(scenario, first, alone));
        return Some(0);
    }
    let after = alone.places.iter().position(|(passed, _)| *passed == place).map_or(0, |index| index + 1);
    let rest = alone.places.into_iter().skip(after).collect();
    let seconds = every_single(&worth_pairing(rest));
    for (second, worse) in &seconds {
        if effort.is_over() {
            return None;
        }
        let plan = first.clone().with(*second, *worse);
        let outcome = run(&setup(scenario, plan.clone(), effort.seed, false));
        if !outcome.violations.is_empty() {
            let again = |plan: &Plan| run(&setup(scenario, plan.clone(), effort.seed, false));
            found.push(shrunk(failure(scenario, plan, outcome), again));
        }
    }
    Some(seconds.len())
}

/// What is done: a line for each first fault, as it is typed to replay it, and the number of its seconds.
struct Notebook {
    file: Option<Mutex<std::fs::File>>,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    done: BTreeSet<String>,
    counts: BTreeMap<String, usize>,
}

fn spelled((scenario, place, trouble): &First<'_>) -> String {
    format!("{}:{place}={trouble}", scenario.name)
}

impl Notebook {
    /// Opens it, and forgets what is in it unless it is of the same run.
    fn open(what: &Pairs, title: &str) -> Self {
        let before = std::fs::read_to_string(&what.notebook).unwrap_or_default();
        let goes_on = what.resumes && before.lines().next() == Some(title);
        let mut lines = Lines::default();
        if goes_on {
            for line in before.lines().skip(1) {
                let mut words = line.split_whitespace();
                if let (Some(first), Some(Ok(count))) = (words.next(), words.next().map(str::parse::<usize>)) {
                    lines.note(first, count);
                }
            }
        }
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(goes_on)
            .truncate(!goes_on)
            .write(true)
            .open(&what.notebook);
        let file = file.ok().map(|mut file| {
            if !goes_on {
                // A notebook that cannot be written costs the possibility to resume and nothing else.
                let _ = writeln!(file, "{title}");
            }
            Mutex::new(file)
        });
        Self { file, lines: Mutex::new(lines) }
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, first: &First<'_>) -> bool {
        self.lines().done.contains(&spelled(first))
    }

    fn done(&self) -> usize {
        self.lines().done.len()
    }

    fn pairs(&self) -> usize {
        self.lines().counts.values().sum()
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        self.lines().counts.clone()
    }

    fn write(&self, first: &First<'_>, count: usize, failures: &[Failure]) {
        self.lines().note(&spelled(first), count);
        let Some(file) = &self.file else { return };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        for failure in failures {
            let _ = writeln!(file, "# does not hold: {}:{}", failure.scenario, failure.plan);
        }
        let _ = writeln!(file, "{} {count}", spelled(first));
    }
}

impl Lines {
    fn note(&mut self, first: &str, count: usize) {
        if self.done.insert(first.to_owned()) {
            let scenario = first.split(':').next().unwrap_or_default();
            *self.counts.entry(scenario.to_owned()).or_default() += count;
        }
    }
}
