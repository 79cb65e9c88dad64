//! Every interleaving of two actors, breadth first, so that the story of a violation is a shortest one.
//!
//! Between any two steps a pass may be cut, FerrVault's content may change, and somebody may interfere with what the
//! cluster holds, as far as the scenario's budget goes. Wherever no pass runs, everything may also stop: then one actor
//! is left alone with the cluster, and what holds at rest has to hold after a few passes of it.

mod story;

use std::collections::VecDeque;

use crate::actor::Stage;
use crate::hash::Seen;
use crate::invariants::{debt_is_on_record, holds_at_rest};
use crate::oracle::Oracle;
use crate::rules::{Ending, Rules, Script, Violation};
use crate::sometimes::{Sightings, Sometimes};
use crate::world::{At, Budget, Content, Restart, Restarted, Target, World};
pub(crate) use story::Story;

/// Passes that one undisturbed actor needs at most: one that ends on what a cut left behind, one that pays, one that
/// finds nothing to do.
const PASSES_TO_REST: usize = 4;

/// What is explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) start: fn(&mut World),
    pub(crate) script: Script,
    /// Passes that each actor may begin.
    pub(crate) passes: [u8; 2],
    pub(crate) budget: Budget,
    pub(crate) rules: Rules,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    /// Events on the longest of the shortest ways to a state.
    pub(crate) depth: u32,
    pub(crate) rests: usize,
    pub(crate) asked: usize,
    pub(crate) sightings: Sightings,
    pub(crate) violation: Option<Story>,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    Begin { who: usize, whole: bool, ending: Ending },
    Step { who: usize, ending: Ending },
    Cut { who: usize },
    Upstream,
    DeleteTarget,
    StripMark(usize),
    Appear(usize),
    OtherRestarts,
    StripTarget,
    EditTarget,
}

/// Explores all of `scenario`, up to the first violation.
pub(crate) fn explore(scenario: Scenario) -> Explored {
    let mut start = World::new(scenario.passes, scenario.budget);
    (scenario.start)(&mut start);
    let mut oracle = Oracle::new(start.listed);
    let owed = start.target.zip(start.status.last_rollout).is_some_and(|(target, last)| target.version != Some(last));
    let Scenario { rules, script, budget, .. } = scenario;
    // A target that is lost while a workload cannot be read gets a new version: one restart too many, never one too few.
    let may_be_in_doubt = budget.failures > 0 && budget.deletions + budget.target_strips > 0;
    let no_surprise = !owed && !may_be_in_doubt;
    let mut stage = Stage { oracle: &mut oracle, rules, script, no_surprise, sightings: Sightings::default() };
    let start = start.canonical().0;

    let (mut seen, mut rested) = (Seen::default(), Seen::default());
    let mut parents: Vec<Option<(u32, Event)>> = vec![None];
    let mut waiting = VecDeque::from([(start, 0, 0)]);
    seen.insert(&start);
    let (mut found, mut depth) = (None, 0);

    'all: while let Some((world, from, steps)) = waiting.pop_front() {
        depth = steps;
        if world.actors.iter().all(|actor| actor.at == At::Idle)
            && let Err(violation) = rest(&mut stage, world, &mut rested)
        {
            found = Some((from, None, violation));
            break 'all;
        }
        for event in events(&stage, &world) {
            let mut next = world;
            if let Err(violation) = happen(&mut stage, &mut next, event) {
                found = Some((from, Some(event), violation));
                break 'all;
            }
            let (next, _) = next.canonical();
            if seen.insert(&next) {
                let index = u32::try_from(parents.len()).expect("as many states as fit");
                parents.push(Some((from, event)));
                waiting.push_back((next, index, steps + 1));
            }
        }
    }
    let violation = found.map(|(from, last, violation)| {
        let mut events: Vec<Event> = last.into_iter().collect();
        let mut at = from;
        while let Some((parent, event)) = parents[at as usize] {
            events.push(event);
            at = parent;
        }
        events.reverse();
        Story::of(violation, &mut stage, start, &events, last.is_none())
    });
    let sightings = stage.sightings;
    Explored { states: seen.len(), depth, rests: rested.len(), asked: oracle.asked(), sightings, violation }
}

fn events(stage: &Stage<'_>, world: &World) -> Vec<Event> {
    let mut events = Vec::with_capacity(16);
    for (who, actor) in world.actors.iter().enumerate() {
        if actor.at == At::Idle {
            if actor.passes_left > 0 {
                events.extend([true, false].map(|whole| Event::Begin { who, whole, ending: Ending::Well }));
                if world.before.status.is_some() {
                    events.extend([true, false].map(|whole| Event::Begin { who, whole, ending: Ending::Stale }));
                }
            }
            continue;
        }
        events.push(Event::Step { who, ending: Ending::Well });
        events.push(Event::Cut { who });
        if world.budget.failures > 0 {
            events.extend(Stage::failures(actor.at).iter().map(|ending| Event::Step { who, ending: *ending }));
        }
        if world.budget.stale > 0 && stage.can_be_stale(world, actor.at) {
            events.push(Event::Step { who, ending: Ending::Stale });
        }
    }
    events.extend((0..world.listed).filter(|index| world.missing[*index]).map(Event::Appear));
    if world.budget.others > 0 && !world.missing[0] {
        events.push(Event::OtherRestarts);
    }
    if usize::from(world.upstream) + 1 < stage.script.len() {
        events.push(Event::Upstream);
    }
    let Budget { deletions, strips, target_strips, edits, .. } = world.budget;
    if deletions > 0 && world.target.is_some() {
        events.push(Event::DeleteTarget);
    }
    if strips > 0 {
        events.extend((0..world.listed).filter(|index| world.marks[*index].is_some()).map(Event::StripMark));
    }
    if target_strips > 0 && world.target.is_some_and(|target| target.version.is_some()) {
        events.push(Event::StripTarget);
    }
    if edits > 0 && world.target.is_some_and(|target| target.content != Content::B) {
        events.push(Event::EditTarget);
    }
    events
}

fn happen(stage: &mut Stage<'_>, world: &mut World, event: Event) -> Result<(), Violation> {
    match event {
        Event::Begin { who, whole, ending } => {
            stage.begin(world, who, whole, ending);
            pay_for(stage, world, ending);
        }
        Event::Step { who, ending } => {
            stage.step(world, who, ending)?;
            pay_for(stage, world, ending);
        }
        Event::Appear(index) => world.appear(index),
        Event::OtherRestarts => {
            world.budget.others -= 1;
            world.workload_written(0);
            world.replace_pods(0);
            stage.sightings.saw(Sometimes::OtherResourceRestarted);
        }
        Event::Cut { who } => {
            let restart = world.actors[who].pass.map(|pass| pass.restart);
            if matches!(restart, Some(Restart::Owed(_))) && world.actors[who].at == At::Report {
                stage.sightings.saw(Sometimes::CutBetweenStampAndRecord);
            }
            let actor = &mut world.actors[who];
            (actor.at, actor.pass) = (At::Idle, None);
        }
        Event::Upstream => world.upstream += 1,
        Event::DeleteTarget => {
            world.budget.deletions -= 1;
            world.target_written();
            world.target = None;
        }
        Event::StripMark(index) => strip_mark(world, index),
        Event::StripTarget => {
            world.budget.target_strips -= 1;
            world.target_written();
            world.target = world.target.map(|target| Target { version: None, ..target });
        }
        Event::EditTarget => {
            world.budget.edits -= 1;
            world.target_written();
            world.target = world.target.map(|target| Target { content: Content::B, ..target });
        }
    }
    debt_is_on_record(world)
}

/// What an ending costs, once it has happened.
fn pay_for(stage: &mut Stage<'_>, world: &mut World, ending: Ending) {
    match ending {
        Ending::Well => {}
        Ending::Refused | Ending::Unanswered => world.budget.failures -= 1,
        Ending::Stale => {
            world.budget.stale -= 1;
            stage.sightings.saw(Sometimes::ReadFromBefore);
        }
    }
}

/// A mark that is stripped before its record is written takes the only trace of the restart away: then, and only then,
/// one restart more is allowed (rule 5).
fn strip_mark(world: &mut World, index: usize) {
    world.budget.strips -= 1;
    world.workload_written(index);
    let Some(mark) = world.marks[index].take() else { return };
    if world.status.rollouts[index].version != Some(mark) && world.status.last_rollout != Some(mark) {
        world.stamps(mark)[index] = false;
    }
}

/// Everything stops, and one actor is left to work undisturbed.
fn rest(stage: &mut Stage<'_>, world: World, rested: &mut Seen) -> Result<(), Violation> {
    let mut world = world;
    world.budget = Budget::default();
    for actor in &mut world.actors {
        actor.passes_left = 0;
    }
    world = world.canonical().0;
    if !rested.insert(&world) {
        return Ok(());
    }
    for _ in 0..PASSES_TO_REST {
        let before = world;
        world.actors[0].passes_left = 1;
        stage.begin(&mut world, 0, true, Ending::Well);
        while world.actors[0].at != At::Idle {
            stage.step(&mut world, 0, Ending::Well)?;
            debt_is_on_record(&world)?;
        }
        world = world.canonical().0;
        if world == before {
            let in_debt = world.status.restarted != Restarted::True;
            stage.sightings.saw(if in_debt { Sometimes::RestInDebt } else { Sometimes::RestInPeace });
            return holds_at_rest(&world, stage.script[usize::from(world.upstream)]);
        }
    }
    Err(format!("I10: {PASSES_TO_REST} passes do not come to rest: {:?} {:?}", world.target, world.status))
}
