//! The sync stage: what is decided from what was read, the debt, the target.

use ferrvault_core::sync::Change;

use super::Stage;
use crate::oracle::{Plan, SyncQuestion};
use crate::rules::{Ending, Violation};
use crate::sometimes::Sometimes;
use crate::world::{At, Mark, Pass, Read, TargetWrite, WORKLOADS, World};

impl Stage<'_> {
    /// What was read tells whether the workloads are read before the target is written.
    pub(super) fn judge(&mut self, world: &mut World, pass: &mut Pass) -> At {
        let question = self.question(pass);
        if self.oracle.needs_workloads(question) { At::ReadWorkload(0) } else { self.decide(world, pass) }
    }

    pub(super) fn question(&self, pass: &Pass) -> SyncQuestion {
        let mark = |read: Read<Mark>| match read.value {
            Mark::Unreadable if !self.rules.unreadable_is_doubt => Mark::Readable(None),
            mark => mark,
        };
        let read = pass.workloads.iter().flatten().count();
        let unlisted = Read::now(Mark::Readable(None));
        SyncQuestion {
            target: pass.target.map(|read| read.value),
            wanted: self.wanted(pass),
            status: pass.status.value,
            marks: (read > 0).then(|| pass.workloads.map(|workload| mark(workload.unwrap_or(unlisted)))),
        }
    }

    pub(super) fn decide(&mut self, world: &mut World, pass: &mut Pass) -> At {
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
        self.saw_plan(pass, plan);
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

    fn saw_plan(&mut self, pass: &Pass, plan: Plan) {
        let had_one = pass.status.value.content.is_some();
        let seen = match plan.change {
            Change::Replaced => Sometimes::TargetReplaced,
            Change::Recreated => Sometimes::CameBackUnderItsVersion,
            Change::Created if had_one => Sometimes::CameBackUnderANewVersion,
            Change::Repaired => Sometimes::TargetRepaired,
            Change::Created | Change::Adopted | Change::Unchanged => return,
        };
        self.sightings.saw(seen);
    }

    /// Rule 3.
    pub(super) fn record_debt(&mut self, world: &mut World, pass: &mut Pass, ending: Ending) -> At {
        let allowed = pass.status.current || !self.rules.status_precondition;
        let debt = pass.debt.take();
        if allowed && ending != Ending::Refused {
            world.status_written();
            world.status.last_rollout = debt;
            self.sightings.saw(Sometimes::DebtRecordedFirst);
            if ending == Ending::Well {
                pass.status = Read::now(world.status);
                return At::WriteTarget(TargetWrite::Patch);
            }
            pass.status.current = false;
        }
        self.saw_write(allowed, ending, Sometimes::StatusWriteRefused);
        if ending == Ending::Well { At::Idle } else { failed_write(pass) }
    }

    pub(super) fn write_target(
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
        self.saw_write(allowed, ending, Sometimes::TargetWriteRefused);
        pass.target = None;
        Ok(match ending {
            Ending::Well if allowed => self.synced(pass),
            Ending::Well => At::Idle,
            _ => failed_write(pass),
        })
    }

    /// A write was refused because its object had changed, or it was done and nobody said so.
    pub(super) fn saw_write(&mut self, allowed: bool, ending: Ending, refused: Sometimes) {
        if !allowed {
            self.sightings.saw(refused);
        } else if ending == Ending::Unanswered {
            self.sightings.saw(Sometimes::DoneWithoutAnAnswer);
        }
    }

    /// The sync stage ended well.
    pub(super) fn synced(&mut self, pass: &mut Pass) -> At {
        pass.synced = true;
        (pass.target, pass.answer) = (None, 0);
        if !pass.is_new_content {
            pass.workloads = [None; WORKLOADS];
        }
        self.pay(pass)
    }
}

/// A write that ended in an error refuses the sync stage; the restart stage looks for itself, with the resource as the
/// record of the debt renewed it.
fn failed_write(pass: &mut Pass) -> At {
    *pass = Pass::begin(pass.status);
    At::ReadMark
}
