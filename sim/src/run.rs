//! One run: a scenario under a plan, from its beginning to the verdict.
//!
//! ```text
//! before ─▶ script, faults as planned ─▶ no faults, until every resource has come to its end ─▶ quiet ─▶ a last change
//!           I2 I3 I4 I5 I6 I8 at every write ................................................................
//!                                                     I1 I4 I5 at rest             I10           I7
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::act::{Act, NS};
use crate::broken::Variant;
use crate::cast;
use crate::check::{End, Invariant, Violation, gives_away, heartbeats_only};
use crate::faults::Occasion;
use crate::logs::Listener;
use crate::plan::{Place, Plan, Trouble};
use crate::scenario::{Scenario, Wake};
use crate::story;
use crate::world::World;

/// Time enough for everything that a fault delays: a refused token is tried again after 5 min, a watch that fell silent
/// is noticed after 100 s, and after either there is one more look.
const PATIENCE: Duration = Duration::from_mins(8);
/// An event that never arrives is made up for by the next list, which comes after an hour and the end of a watch (90 s).
const PATIENCE_WITH_LISTS: Duration = Duration::from_mins(75);
/// What has no schedule and failed is tried again after the default interval (1 h), and perhaps found by a list before.
const PATIENCE_WITHOUT_SCHEDULE: Duration = Duration::from_mins(150);
/// How often it is looked whether all has come to its end.
const LOOK: Duration = Duration::from_secs(1);
/// What may still be under way when all looks well: a late call (25 s), a pass of retries whose last one succeeded.
const LEFT_OVER: Duration = Duration::from_secs(40);
/// A pass that hangs is cut after 2 min, and its next one comes a second later.
const LEFT_OVER_BY_A_HANG: Duration = Duration::from_secs(130);
/// Twice the interval of a resource and a tenth: two looks in which nothing may happen.
const QUIET: Duration = Duration::from_secs(66);
/// Looks at FerrVault in that time, at most: one per 27 s.
const LOOKS: usize = 3;
/// A look (33 s) and what follows from it, a debt that is found by a second pass included.
const NOTICED_WITHIN: Duration = Duration::from_secs(45);
/// A workload that appears is restarted within this.
const PROMPT: Duration = Duration::from_secs(30);
/// What FerrVault holds in the end.
const LAST: char = 'Z';

/// What to run.
#[derive(Clone)]
pub struct Setup<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// What goes wrong.
    pub plan: Plan,
    /// Where all randomness comes from.
    pub seed: u64,
    /// A deliberately broken operator, or the real one.
    pub broken: Option<Variant>,
    /// Whether logs are searched for values. It costs a third of the time.
    pub listens: bool,
    /// Whether the story is wanted even if all is well.
    pub tells: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// Every place where something could have gone wrong.
    pub places: Vec<(Place, Occasion)>,
    /// Whether everything planned went wrong.
    pub all_happened: bool,
    /// The story, if it was wanted or something did not hold.
    pub story: String,
    /// How many calls there were altogether.
    pub calls: usize,
}

/// Runs it. Blocks until it is over; virtual time makes that milliseconds.
pub fn run(setup: &Setup<'_>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let Ok(runtime) = runtime else { return Outcome::default() };
    let listener = setup.listens.then(Listener::begin);
    let mut outcome = runtime.block_on(told(setup));
    for line in listener.map(Listener::end).unwrap_or_default() {
        let what = format!("a line of the log holds a value or a token: {line}");
        outcome.violations.push(Violation { invariant: Invariant::I8, at: Duration::ZERO, what });
    }
    outcome
}

async fn told(setup: &Setup<'_>) -> Outcome {
    let mut world = World::new(setup.seed, setup.broken);
    let ledger = world.ledger.clone();
    tokio::select! {
        biased;
        () = ledger.endless() => {}
        () = play(&mut world, setup) => {}
    }
    nothing_given_away(&world);
    let violations = world.ledger.violations();
    let story = if setup.tells || !violations.is_empty() { story::tell(&world) } else { String::new() };
    let outcome = Outcome {
        violations,
        places: world.faults.places(),
        all_happened: world.faults.fired() == setup.plan.len(),
        story,
        calls: world.api.last_call(),
    };
    world.end();
    outcome
}

/// The run itself, up to its end.
async fn play(world: &mut World, setup: &Setup<'_>) {
    for act in &setup.scenario.before {
        world.act(act).await;
    }
    world.ledger.books().begin();
    world.faults.arm(setup.plan.clone());
    let beginning = world.now();
    for (seconds, act) in &setup.scenario.script {
        let due = beginning + Duration::from_secs(*seconds);
        let wait = due.saturating_sub(world.now());
        world.pass(wait).await;
        world.act(act).await;
    }
    let end = beginning + Duration::from_secs(setup.scenario.counts_for);
    let wait = end.saturating_sub(world.now());
    world.pass(wait).await;
    world.faults.disarm();
    if come_to_rest(world, setup).await {
        if setup.plan.is_empty() {
            restarts_are_as_told(world, setup.scenario, beginning);
        }
        stay_at_rest(world, setup.scenario, &setup.plan).await;
        be_awake(world, setup.scenario).await;
    }
}

fn unrest(world: &World, ends: &[End]) -> Option<(Invariant, String)> {
    if let Some(who) = world.dead() {
        return Some((Invariant::I7, format!("{who} is no longer running, and nobody ended it")));
    }
    let books = world.ledger.books();
    ends.iter().find_map(|end| books.has_ended(NS, *end).err())
}

/// Lets time pass until every resource has come to its end.
pub(crate) async fn come_to_rest(world: &mut World, setup: &Setup<'_>) -> bool {
    let unscheduled = setup.scenario.wake == Wake::Edit;
    let drops = setup.plan.iter().any(|(_, trouble)| trouble == Trouble::Dropped);
    let patience = match (unscheduled, drops) {
        (true, _) => PATIENCE_WITHOUT_SCHEDULE,
        (false, true) => PATIENCE_WITH_LISTS,
        (false, false) => PATIENCE,
    };
    let limit = world.now() + patience;
    loop {
        let Some((invariant, what)) = unrest(world, &setup.scenario.ends) else { return true };
        if world.now() >= limit {
            let what = format!("{} min after the last fault: {what}", patience.as_secs() / 60);
            world.ledger.violate(world.now(), invariant, what);
            return false;
        }
        world.pass(LOOK).await;
    }
}

fn restarts_are_as_told(world: &World, scenario: &Scenario, beginning: Duration) {
    for (workload, from) in &scenario.prompt {
        let from = beginning + Duration::from_secs(*from);
        if !world.ledger.restarts(NS, workload).iter().any(|at| *at >= from && *at <= from + PROMPT) {
            let what = format!("nothing went wrong, and {workload} was not restarted within {PROMPT:?}");
            world.ledger.violate(world.now(), Invariant::I9, what);
        }
    }
    for (workload, times) in &scenario.restarts {
        let found = world.ledger.restarts(NS, workload).len();
        if found != *times {
            let invariant = if found > *times { Invariant::I3 } else { Invariant::I1 };
            let what = format!("nothing went wrong, and {workload} was restarted {found}x instead of {times}x");
            world.ledger.violate(world.now(), invariant, what);
        }
    }
}

/// I10: with nothing changing, nothing but heartbeats, and no pass but by the schedule.
async fn stay_at_rest(world: &mut World, scenario: &Scenario, plan: &Plan) {
    let hung = plan.iter().any(|(_, trouble)| trouble == Trouble::Hang);
    world.pass(if hung { LEFT_OVER_BY_A_HANG } else { LEFT_OVER }).await;
    let others = Arc::new(Mutex::new(Vec::new()));
    let (kept, stuck) = (Arc::clone(&others), scenario.stuck.clone());
    let from = world.now();
    world.api.on_write(move |write| {
        if write.at >= from
            && write.at < from + QUIET
            && cast::is_operator(&write.who)
            && !stuck.contains(&write.name.as_str())
            && !stuck.iter().any(|name| write.resource.starts_with("events") && write.name.starts_with(name))
            && let Err(what) = heartbeats_only(write)
        {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push((write.at, what));
        }
    });
    let asked: Vec<usize> = scenario.vaults.iter().map(|vault| world.ledger.answers_of(vault)).collect();
    world.pass(QUIET).await;
    for (at, what) in others.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        world.ledger.violate(at, Invariant::I10, format!("with nothing changing: {what}"));
    }
    let most = LOOKS * world.processes().max(1);
    for (vault, before) in scenario.vaults.iter().zip(asked) {
        let looks = world.ledger.answers_of(vault) - before;
        if looks > most {
            let what = format!("with nothing changing, FerrVault was asked about vault {vault} {looks}x in {QUIET:?}");
            world.ledger.violate(world.now(), Invariant::I10, what);
        }
    }
}

/// I7: whatever happened, the next change arrives, and by itself.
async fn be_awake(world: &mut World, scenario: &Scenario) {
    if scenario.wake == Wake::Nothing {
        return;
    }
    for vault in &scenario.vaults {
        world.act(&Act::Upstream(vault, LAST)).await;
    }
    if scenario.wake == Wake::Edit {
        for end in &scenario.ends {
            let patch = serde_json::json!({ "spec": { "refreshInterval": "0m" } });
            world.act(&Act::Change(crate::act::Kind::Resource, end.of(), patch)).await;
        }
    }
    let limit = world.now() + NOTICED_WITHIN;
    while let Some((_, what)) = unrest(world, &scenario.ends) {
        if world.now() >= limit {
            let what = format!("the next change did not arrive within {NOTICED_WITHIN:?}: {what}");
            return world.ledger.violate(world.now(), Invariant::I7, what);
        }
        world.pass(LOOK).await;
    }
}

/// I8, for what is no object: metrics, and requests other than those that carry a Secret.
fn nothing_given_away(world: &World) {
    let page = world.metrics.text().unwrap_or_default();
    if gives_away(&page) {
        world.ledger.violate(world.now(), Invariant::I8, "the page of metrics holds a value or a token".to_owned());
    }
    for record in world.api.journal() {
        let call = &record.call;
        if cast::is_operator(&call.who) && call.resource != "secrets" && gives_away(&call.body.to_string()) {
            world.ledger.violate(call.at, Invariant::I8, format!("{call} holds a value or a token"));
        }
    }
}
