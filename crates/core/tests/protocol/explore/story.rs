//! A violation, told from the beginning.

use std::fmt::Write as _;

use super::{Event, happen};
use crate::actor::Stage;
use crate::rules::{Ending, Violation};
use crate::world::{Name, World};

/// How it came to a violation.
pub(crate) struct Story {
    pub(crate) violation: Violation,
    pub(crate) steps: Vec<String>,
}

impl std::fmt::Debug for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.violation)?;
        self.steps.iter().enumerate().try_for_each(|(index, step)| writeln!(f, "{:>3}. {step}", index + 1))
    }
}

impl Story {
    /// How `events` lead from `start` to `violation`. `at_rest`: it only shows when everything stops.
    pub(super) fn of(
        violation: Violation,
        stage: &mut Stage<'_>,
        start: World,
        events: &[Event],
        at_rest: bool,
    ) -> Self {
        let mut steps = tell(stage, start, events);
        if at_rest {
            steps.push("everything stops, and one actor is left alone with the cluster".to_owned());
        }
        Self { violation, steps }
    }
}

/// The events once more, in words. Here actors keep their places and versions their names, so that a story can be read;
/// the canonical states beside it tell which actor an event means.
fn tell(stage: &mut Stage<'_>, start: World, events: &[Event]) -> Vec<String> {
    let (mut world, mut canonical, mut is_swapped) = (start, start, false);
    let mut lines = vec![format!("it begins with {}", cluster(&world))];
    for event in events {
        let event = *event;
        let meant = |who: usize| if is_swapped { 1 - who } else { who };
        let shown = match event {
            Event::Begin { who, whole, ending } => Event::Begin { who: meant(who), whole, ending },
            Event::Step { who, ending } => Event::Step { who: meant(who), ending },
            Event::Cut { who } => Event::Cut { who: meant(who) },
            other => other,
        };
        let mut line = in_words(&world, shown);
        let before = cluster(&world);
        // The last one ends in the violation that is told.
        let _ = happen(stage, &mut world, shown);
        let _ = happen(stage, &mut canonical, event);
        let after = cluster(&world);
        if before != after {
            let _ = write!(line, " => {after}");
        }
        lines.push(line);
        let swapped;
        (canonical, swapped) = canonical.canonical();
        is_swapped ^= swapped;
    }
    lines
}

fn in_words(world: &World, event: Event) -> String {
    const NAMES: [&str; 2] = ["first", "second"];
    match event {
        Event::Begin { who, whole, ending } => {
            let stages = if whole { "both stages" } else { "the restart stage" };
            let from = if ending == Ending::Stale { ", as it was before its last change" } else { "" };
            format!("{} actor begins a pass of {stages}: reads the resource{from}", NAMES[who])
        }
        Event::Step { who, ending } => {
            let end = match ending {
                Ending::Well => "",
                Ending::Refused => ", which fails",
                Ending::Unanswered => ", which is done and reported as failed",
                Ending::Stale => ", answered from before the last change",
            };
            format!("{} actor: {:?}{end}", NAMES[who], world.actors[who].at)
        }
        Event::Cut { who } => format!("{} actor is cut", NAMES[who]),
        other => format!("{other:?}"),
    }
}

fn cluster(world: &World) -> String {
    let name = |name: Option<Name>| name.map_or_else(|| "-".to_owned(), |name| format!("{name:?}"));
    let target = world
        .target
        .map_or_else(|| "none".to_owned(), |target| format!("{} holding {:?}", name(target.version), target.content));
    let status = &world.status;
    format!(
        "target {target}; lastRolloutHash {}, contentHash {}, rollouts {:?}; marks {:?}",
        name(status.last_rollout),
        name(status.content),
        status.rollouts.map(|entry| name(entry.version)),
        world.marks.map(name),
    )
}
