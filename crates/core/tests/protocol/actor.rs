//! A pass, one effect at a time, in the order of rule 4 and with its preconditions: what `secret/sync` and
//! `secret/restart` of the operator do around the real decisions.
//!
//! ```text
//!                          ┌─▶ owed workloads ─▶ look again ─┐
//! resource ─▶ target ─▶ reveal ─▶ workloads ─▶ debt ─▶ target ─▶ stamps ─▶ status
//!     └─▶ mark of the target ─▶ owed workloads ─▶ look again ──────┘
//! ```

mod restart;
mod sync;

use crate::oracle::Oracle;
use crate::rules::{Ending, Rules, Script, Violation};
use crate::sometimes::{Sightings, Sometimes};
use crate::world::{At, Content, Mark, Name, Pass, Read, World};

/// What passes run on.
pub(crate) struct Stage<'a> {
    pub(crate) oracle: &'a mut Oracle,
    pub(crate) rules: Rules,
    pub(crate) script: Script,
    /// Whether nothing is owed at the start, so that nothing may restart before the first change.
    pub(crate) no_surprise: bool,
    /// What was seen on the way.
    pub(crate) sightings: Sightings,
}

impl Stage<'_> {
    fn wanted(&self, pass: &Pass) -> Content {
        self.script[usize::from(pass.answer)]
    }

    /// Begins a pass: reads the resource. `whole`: both stages; otherwise the restart stage alone.
    pub(crate) fn begin(&mut self, world: &mut World, who: usize, whole: bool, ending: Ending) {
        let status = match world.before.status.filter(|_| ending == Ending::Stale) {
            Some(before) => Read::before(before),
            None => Read::now(world.status),
        };
        if world.actors[1 - who].at != At::Idle {
            self.sightings.saw(Sometimes::BothInAPass);
        }
        let actor = &mut world.actors[who];
        actor.passes_left -= 1;
        actor.pass = Some(Pass::begin(status));
        actor.at = match (whole, self.rules.target_before_reveal) {
            (false, _) => At::ReadMark,
            (true, true) => At::ReadTarget,
            (true, false) => At::Reveal,
        };
    }

    /// Which endings a step can have besides the good one, while calls may fail.
    pub(crate) fn failures(at: At) -> &'static [Ending] {
        match at {
            At::ReadWorkload(_) | At::ReadOwed(_) | At::LookAgain => &[Ending::Refused],
            At::RecordDebt | At::WriteTarget(_) | At::Stamp(_) => &[Ending::Refused, Ending::Unanswered],
            // These are the same as a pass that is cut, or that does not have that stage.
            At::Idle | At::ReadTarget | At::Reveal | At::ReadMark | At::LookAtStatus | At::Report => &[],
        }
    }

    /// Whether the step that an actor is at is a read, and there is something from before to answer it with.
    pub(crate) fn can_be_stale(&self, world: &World, at: At) -> bool {
        match at {
            At::LookAgain | At::LookAtStatus if self.rules.second_look_is_fresh => false,
            At::ReadTarget | At::ReadMark | At::LookAgain => world.before.target.is_some(),
            At::ReadWorkload(index) | At::ReadOwed(index) => world.before.marks[index].is_some(),
            At::LookAtStatus => world.before.status.is_some(),
            At::Idle | At::Reveal | At::RecordDebt | At::WriteTarget(_) | At::Stamp(_) | At::Report => false,
        }
    }

    /// Carries out the step that the actor is at.
    pub(crate) fn step(&mut self, world: &mut World, who: usize, ending: Ending) -> Result<(), Violation> {
        let at = world.actors[who].at;
        let mut pass = world.actors[who].pass.expect("a pass that runs");
        let next = match at {
            At::Idle => unreachable!("no pass runs"),
            At::ReadTarget => {
                pass.target = match world.before.target.filter(|_| ending == Ending::Stale) {
                    Some(before) => before.map(Read::before),
                    None => world.target.map(Read::now),
                };
                if self.rules.target_before_reveal { At::Reveal } else { self.judge(world, &mut pass) }
            }
            At::Reveal => {
                pass.answer = world.upstream;
                if self.rules.target_before_reveal { self.judge(world, &mut pass) } else { At::ReadTarget }
            }
            At::ReadWorkload(index) => {
                pass.workloads[index] = Some(read_mark(world, index, ending));
                if index + 1 < world.listed { At::ReadWorkload(index + 1) } else { self.decide(world, &mut pass) }
            }
            At::RecordDebt => self.record_debt(world, &mut pass, ending),
            At::WriteTarget(write) => self.write_target(world, &mut pass, write, ending)?,
            At::ReadMark => match version_seen(world, ending) {
                // No target, or none with a version: nothing can be owed, and the status stays.
                None => At::Idle,
                Some(version) => {
                    pass.version = Some(version);
                    self.pay(&mut pass)
                }
            },
            At::ReadOwed(index) => {
                pass.workloads[index] = Some(read_mark(world, index, ending));
                if index + 1 < world.listed {
                    At::ReadOwed(index + 1)
                } else if self.rules.second_look {
                    At::LookAgain
                } else {
                    self.stamps(&mut pass)
                }
            }
            At::LookAgain => {
                let same = version_seen(world, ending) == pass.version && ending != Ending::Refused;
                match (same, self.rules.status_again) {
                    (false, _) => {
                        self.sightings.saw(Sometimes::SecondLookStopped);
                        At::Report
                    }
                    (true, true) => At::LookAtStatus,
                    (true, false) => self.stamps(&mut pass),
                }
            }
            // Had it changed, the record of this pass would be refused anyway.
            At::LookAtStatus if !records_stand(world, &pass, ending) => {
                self.sightings.saw(Sometimes::LookAtTheStatusStopped);
                At::Idle
            }
            At::LookAtStatus => self.stamps(&mut pass),
            At::Stamp(index) => self.stamp(world, &mut pass, index, ending)?,
            At::Report => {
                self.report(world, &pass)?;
                At::Idle
            }
        };
        let actor = &mut world.actors[who];
        actor.at = next;
        actor.pass = (next != At::Idle).then_some(pass);
        Ok(())
    }
}

/// The look at the resource again. Answered from before, it may show what this pass has read itself.
fn records_stand(world: &World, pass: &Pass, ending: Ending) -> bool {
    match world.before.status.filter(|_| ending == Ending::Stale) {
        Some(before) => before == pass.status.value,
        None => pass.status.current,
    }
}

fn read_mark(world: &World, index: usize, ending: Ending) -> Read<Mark> {
    match ending {
        Ending::Well => Read::now(world.mark(index)),
        Ending::Stale => world.before.marks[index].map_or(Read::now(world.mark(index)), Read::before),
        Ending::Refused | Ending::Unanswered => Read::now(Mark::Unreadable),
    }
}

/// The version on the target, as a read of it sees it.
fn version_seen(world: &World, ending: Ending) -> Option<Name> {
    let before = world.before.target.filter(|_| ending == Ending::Stale);
    before.unwrap_or(world.target).and_then(|target| target.version)
}
