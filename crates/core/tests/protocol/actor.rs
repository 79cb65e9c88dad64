//! A pass, one effect at a time, in the order of rule 4 and with its preconditions: what `secret/sync` and
//! `secret/restart` of the operator do around the real decisions.
//!
//! ```text
//!                          ┌─▶ owed workloads ─▶ look again ─┐
//! resource ─▶ target ─▶ reveal ─▶ workloads ─▶ debt ─▶ target ─▶ stamps ─▶ status
//!     └─▶ mark of the target ─▶ owed workloads ─▶ look again ──────┘
//! ```

use ferrvault_core::restart::Debt;
use ferrvault_core::sync::Change;

use crate::oracle::{Oracle, Plan, StepTaken, SyncQuestion};
use crate::world::{
    At, Content, Mark, Outcome, Pass, Read, Restart, Restarted, Status, Target, TargetWrite, WORKLOADS, World,
};

/// The protocol, rule by rule, so that a check that leaves one out can show what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Rule 3.
    pub(crate) debt_first: bool,
    /// Rule 4, writes: each on condition that its object is as it was read.
    pub(crate) status_precondition: bool,
    pub(crate) target_precondition: bool,
    pub(crate) workload_precondition: bool,
    /// Rule 4, reads: what is written is read before what it depends on.
    pub(crate) target_before_reveal: bool,
    /// Rule 4, *the Secret again*.
    pub(crate) second_look: bool,
    /// The resource again, too: a record written since it was read may be the only trace of a restart.
    pub(crate) status_again: bool,
    /// Rule 7: a deleted target comes back under `lastRolloutHash` only if no other version is seen anywhere.
    pub(crate) careful_recreation: bool,
    /// Rule 7: a workload that could not be read may carry any version.
    pub(crate) unreadable_is_doubt: bool,
    /// Other bytes without a version are other content, even if what they are to become was there before.
    pub(crate) bytes_without_version_count: bool,
}

impl Rules {
    /// What the product does.
    pub(crate) const PRODUCT: Self = Self {
        debt_first: true,
        status_precondition: true,
        target_precondition: true,
        workload_precondition: true,
        target_before_reveal: true,
        second_look: true,
        status_again: false,
        careful_recreation: true,
        unreadable_is_doubt: true,
        bytes_without_version_count: true,
    };
}

/// What FerrVault holds, change by change.
pub(crate) type Script = &'static [Content];

/// How an effect ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Well,
    /// An error, and nothing was done.
    Refused,
    /// An error, and it was done.
    Unanswered,
}

/// A broken invariant.
pub(crate) type Violation = String;

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

    /// What was read tells whether the workloads are read before the target is written.
    fn judge(&mut self, world: &mut World, pass: &mut Pass) -> At {
        let question = self.question(pass);
        if self.oracle.needs_workloads(question) { At::ReadWorkload(0) } else { self.decide(world, pass) }
    }

    fn question(&self, pass: &Pass) -> SyncQuestion {
        let mark = |read: Read<Mark>| match read.value {
            Mark::Unreadable if !self.rules.unreadable_is_doubt => Mark::Readable(None),
            mark => mark,
        };
        let [first, second] = pass.workloads;
        SyncQuestion {
            target: pass.target.map(|read| read.value),
            wanted: self.wanted(pass),
            status: pass.status.value,
            marks: first.zip(second).map(|(first, second)| [mark(first), mark(second)]),
        }
    }

    fn decide(&mut self, world: &mut World, pass: &mut Pass) -> At {
        let question = self.question(pass);
        let mut plan = self.oracle.plan(question, world.next_serial());
        let last = pass.status.value.last_rollout.filter(|last| last.content == self.wanted(pass));
        if let (Some(write), Some(version)) = (plan.write, last) {
            let unversioned = pass.target.is_some_and(|read| read.value.version.is_none());
            let careful = match write {
                TargetWrite::Create => self.rules.careful_recreation,
                TargetWrite::Patch => self.rules.bytes_without_version_count || !unversioned,
            };
            if !careful {
                plan = Plan { debt: None, version, change: Change::Recreated, ..plan };
            }
        }
        pass.version = Some(plan.version);
        pass.is_new_content = plan.change.is_new_content();
        match (plan.debt.filter(|_| self.rules.debt_first), plan.write) {
            (Some(debt), Some(write)) => {
                pass.debt = Some(debt);
                // Kept until the debt is on record: whether there is a target to patch says which write follows.
                assert_eq!(write, TargetWrite::Patch, "a debt is owed by a target that exists");
                At::RecordDebt
            }
            (None, Some(write)) => At::WriteTarget(write),
            (_, None) => self.synced(pass),
        }
    }

    /// Rule 3.
    fn record_debt(&mut self, world: &mut World, pass: &mut Pass, ending: Ending) -> At {
        let allowed = pass.status.current || !self.rules.status_precondition;
        let debt = pass.debt.take();
        if allowed && ending != Ending::Refused {
            world.status_written();
            world.status.last_rollout = debt;
            if ending == Ending::Well {
                pass.first = (world.budget.failures > 0).then_some(pass.status.value);
                pass.status = Read::now(world.status);
                return At::WriteTarget(TargetWrite::Patch);
            }
            pass.status.current = false;
        }
        if ending == Ending::Well { At::Idle } else { failed_write(pass) }
    }

    fn write_target(
        &mut self,
        world: &mut World,
        pass: &mut Pass,
        write: TargetWrite,
        ending: Ending,
    ) -> Result<At, Violation> {
        let allowed = match (write, pass.target) {
            (TargetWrite::Create, _) => world.target.is_none(),
            (TargetWrite::Patch, Some(read)) if self.rules.target_precondition => read.current,
            (TargetWrite::Patch, _) => world.target.is_some(),
        };
        if allowed && ending != Ending::Refused {
            let (version, content) = (pass.version.expect("a planned version"), self.wanted(pass));
            if pass.answer < world.written_answer {
                return Err(format!("I4: the target goes back to an answer that is older than {:?}", world.target));
            }
            world.written_answer = pass.answer;
            let before = world.target.and_then(|target| target.version);
            if before.is_some_and(|before| before != version && before.content == content) {
                return Err(format!(
                    "I3: {content:?} gets {version:?} in the place of {before:?}, which named it already"
                ));
            }
            world.write_target(version, content);
        }
        pass.target = None;
        Ok(match ending {
            Ending::Well if allowed => self.synced(pass),
            Ending::Well => At::Idle,
            _ => failed_write(pass),
        })
    }

    /// The sync stage ended well.
    fn synced(&mut self, pass: &mut Pass) -> At {
        pass.synced = true;
        (pass.target, pass.first, pass.answer) = (None, None, 0);
        if !pass.is_new_content {
            pass.workloads = [None; WORKLOADS];
        }
        self.pay(pass)
    }

    /// The restart stage, up to its first effect.
    fn pay(&mut self, pass: &mut Pass) -> At {
        let current = pass.version.expect("a version to restart for");
        let debt = self.oracle.debt(pass.status.value.last_rollout, current);
        pass.restart = match debt {
            Debt::Baseline => Restart::Baseline,
            Debt::Nothing => Restart::Nothing,
            Debt::Owed if pass.workloads.iter().all(Option::is_some) => return self.stamps(pass),
            Debt::Owed => return At::ReadOwed(0),
        };
        pass.workloads = [None; WORKLOADS];
        At::Report
    }

    /// Decides what to do about each workload and goes to the first that is to be stamped.
    fn stamps(&mut self, pass: &mut Pass) -> At {
        let current = pass.version.expect("a version to restart for");
        let marks = pass.workloads.map(|workload| workload.expect("a workload that was read").value);
        let steps = self.oracle.steps(current, pass.status.value, marks);
        pass.restart = Restart::Owed(steps.map(|step| match step {
            StepTaken::Done => Some(Outcome::Restarted),
            StepTaken::Fail => Some(Outcome::Failed),
            StepTaken::Stamp => None,
        }));
        next_stamp(pass)
    }

    fn stamp(&mut self, world: &mut World, pass: &mut Pass, index: usize, ending: Ending) -> Result<At, Violation> {
        let current = pass.version.expect("a version to restart for");
        let allowed = pass.workloads[index].is_some_and(|read| read.current) || !self.rules.workload_precondition;
        if allowed && ending != Ending::Refused {
            world.workload_written(index);
            if self.no_surprise && world.upstream == 0 {
                return Err(format!("I3: workload {index} is restarted although nothing changed"));
            }
            let stamped = &mut world.stamps(current)[index];
            if *stamped {
                return Err(format!("I2: workload {index} is restarted a second time for {current:?}"));
            }
            *stamped = true;
            world.marks[index] = Some(current);
            world.replace_pods(index);
        }
        let Restart::Owed(outcomes) = &mut pass.restart else { unreachable!("a stamp that is not owed") };
        outcomes[index] = Some(match ending {
            Ending::Well if allowed => Outcome::Restarted,
            Ending::Well => Outcome::Overtaken,
            _ => Outcome::Failed,
        });
        Ok(next_stamp(pass))
    }

    fn report(&mut self, world: &mut World, pass: &Pass) {
        let synced = pass.version.filter(|_| pass.synced).map(|version| (version, pass.is_new_content));
        let before = pass.status.value;
        let after = self.oracle.report(before, synced, pass.restart, pass.version);
        // A heartbeat carries times only, and there are no times here.
        if after == before {
            return;
        }
        if pass.status.current {
            world.status_written();
            world.status = after;
        } else if !self.rules.status_precondition {
            world.status_written();
            overwrite(&mut world.status, before, after);
        }
    }
}

fn mark(world: &World, index: usize, ending: Ending) -> Mark {
    if ending == Ending::Well { Mark::Readable(world.marks[index]) } else { Mark::Unreadable }
}

/// A write that ended in an error refuses the sync stage; the restart stage looks for itself, with the resource that
/// the pass began with.
fn failed_write(pass: &mut Pass) -> At {
    let status = match pass.first {
        Some(first) => Read { value: first, current: false },
        None => pass.status,
    };
    *pass = Pass { status, ..Pass::begin(status.value) };
    At::ReadMark
}

/// Goes to the next workload that is to be stamped, or to the report when there is none.
fn next_stamp(pass: &mut Pass) -> At {
    let Restart::Owed(outcomes) = &pass.restart else { unreachable!("stamps that are not owed") };
    for (index, outcome) in outcomes.iter().enumerate() {
        if outcome.is_some() {
            pass.workloads[index] = None;
        }
    }
    outcomes.iter().position(Option::is_none).map_or(At::Report, At::Stamp)
}

/// A patch without a precondition: what differs goes over whatever is there.
fn overwrite(status: &mut Status, before: Status, after: Status) {
    fn put<T: PartialEq>(field: &mut T, before: &T, after: T) {
        if *before != after {
            *field = after;
        }
    }
    put(&mut status.last_rollout, &before.last_rollout, after.last_rollout);
    put(&mut status.content, &before.content, after.content);
    put(&mut status.rollouts, &before.rollouts, after.rollouts);
    put(&mut status.restarted, &before.restarted, after.restarted);
}

/// What has to hold after every write: a version that some workload does not run on is a debt on record.
pub(crate) fn debt_is_on_record(world: &World) -> Result<(), Violation> {
    let Some(version) = world.target.and_then(|target| target.version) else { return Ok(()) };
    let behind = !world.pods.iter().all(|pods| pods.are_on(version));
    let last = world.status.last_rollout;
    if behind && (last.is_none() || last == Some(version)) {
        return Err(format!("I1: a workload does not run on {version:?}, and lastRolloutHash {last:?} owes nothing"));
    }
    Ok(())
}

/// What has to hold when nothing changes any more.
pub(crate) fn holds_at_rest(world: &World, upstream: Content) -> Result<(), Violation> {
    let Some(Target { version: Some(version), content }) = world.target else {
        return Err("I4: no target with a version at rest".to_owned());
    };
    if content != upstream || version.content != upstream {
        return Err(format!("I4: the target is {version:?} with {content:?} while FerrVault holds {upstream:?}"));
    }
    if !world.pods.iter().all(|pods| pods.are_on(version)) {
        return Err(format!("I1: the pods run on {:?}, the target is {version:?}", world.pods));
    }
    if world.status.last_rollout != Some(version) || world.status.content != Some(version) {
        return Err(format!("I5: the status {:?} does not tell of {version:?}", world.status));
    }
    if world.status.restarted != Restarted::True {
        return Err(format!("I5: nothing is owed, but the status is {:?}", world.status));
    }
    Ok(())
}
