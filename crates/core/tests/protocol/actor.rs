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
use crate::world::{At, Content, Mark, Pass, Read, WORKLOADS, World};

/// What passes run on.
pub(crate) struct Stage<'a> {
    pub(crate) oracle: &'a mut Oracle,
    pub(crate) rules: Rules,
    pub(crate) script: Script,
    /// Whether nothing is owed at the start, so that nothing may restart before the first change.
    pub(crate) no_surprise: bool,
}

impl Stage<'_> {
    fn wanted(&self, pass: &Pass) -> Content {
        self.script[usize::from(pass.answer)]
    }

    /// Begins a pass: reads the resource. `whole`: both stages; otherwise the restart stage alone.
    pub(crate) fn begin(&self, world: &mut World, who: usize, whole: bool) {
        let status = world.status;
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

    /// Carries out the step that the actor is at.
    pub(crate) fn step(&mut self, world: &mut World, who: usize, ending: Ending) -> Result<(), Violation> {
        let at = world.actors[who].at;
        let mut pass = world.actors[who].pass.expect("a pass that runs");
        let next = match at {
            At::Idle => unreachable!("no pass runs"),
            At::ReadTarget => {
                pass.target = world.target.map(Read::now);
                if self.rules.target_before_reveal { At::Reveal } else { self.judge(world, &mut pass) }
            }
            At::Reveal => {
                pass.answer = world.upstream;
                if self.rules.target_before_reveal { self.judge(world, &mut pass) } else { At::ReadTarget }
            }
            At::ReadWorkload(index) => {
                pass.workloads[index] = Some(Read::now(mark(world, index, ending)));
                if index + 1 < WORKLOADS { At::ReadWorkload(index + 1) } else { self.decide(world, &mut pass) }
            }
            At::RecordDebt => self.record_debt(world, &mut pass, ending),
            At::WriteTarget(write) => self.write_target(world, &mut pass, write, ending)?,
            At::ReadMark => match world.target.and_then(|target| target.version) {
                // No target, or none with a version: nothing can be owed, and the status stays.
                None => At::Idle,
                Some(version) => {
                    pass.version = Some(version);
                    self.pay(&mut pass)
                }
            },
            At::ReadOwed(index) => {
                pass.workloads[index] = Some(Read::now(mark(world, index, ending)));
                if index + 1 < WORKLOADS {
                    At::ReadOwed(index + 1)
                } else if self.rules.second_look {
                    At::LookAgain
                } else {
                    self.stamps(&mut pass)
                }
            }
            At::LookAgain => {
                let same = world.target.and_then(|target| target.version) == pass.version;
                match (same && ending == Ending::Well, self.rules.status_again) {
                    (false, _) => At::Report,
                    (true, true) => At::LookAtStatus,
                    (true, false) => self.stamps(&mut pass),
                }
            }
            // Had it changed, the record of this pass would be refused anyway.
            At::LookAtStatus if !pass.status.current => At::Idle,
            At::LookAtStatus => self.stamps(&mut pass),
            At::Stamp(index) => self.stamp(world, &mut pass, index, ending)?,
            At::Report => {
                self.report(world, &pass);
                At::Idle
            }
        };
        let actor = &mut world.actors[who];
        actor.at = next;
        actor.pass = (next != At::Idle).then_some(pass);
        Ok(())
    }
}

fn mark(world: &World, index: usize, ending: Ending) -> Mark {
    if ending == Ending::Well { Mark::Readable(world.marks[index]) } else { Mark::Unreadable }
}
