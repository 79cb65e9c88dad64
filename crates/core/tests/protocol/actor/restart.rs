//! The restart stage, and the one status write at the end.

use ferrvault_core::restart::Debt;

use super::Stage;
use crate::oracle::StepTaken;
use crate::rules::{Ending, Violation};
use crate::sometimes::Sometimes;
use crate::world::{At, Mark, Outcome, Pass, Restart, Status, WORKLOADS, World};

impl Stage<'_> {
    /// The restart stage, up to its first effect.
    pub(super) fn pay(&mut self, pass: &mut Pass) -> At {
        let current = pass.version.expect("a version to restart for");
        let debt = self.oracle.debt(pass.status.value.last_rollout, current);
        pass.restart = match debt {
            Debt::Baseline => {
                self.sightings.saw(Sometimes::BaselineRecorded);
                Restart::Baseline
            }
            Debt::Nothing => Restart::Nothing,
            // All were read, or none was.
            Debt::Owed if pass.workloads.iter().any(Option::is_some) => return self.stamps(pass),
            Debt::Owed => return At::ReadOwed(0),
        };
        pass.workloads = [None; WORKLOADS];
        At::Report
    }

    /// Decides what to do about each workload and goes to the first that is to be stamped.
    pub(super) fn stamps(&mut self, pass: &mut Pass) -> At {
        let current = pass.version.expect("a version to restart for");
        let marks = pass.workloads.map(|workload| workload.map_or(Mark::Readable(None), |read| read.value));
        let mut status = pass.status.value;
        if !self.rules.records_count {
            status.rollouts = Status::default().rollouts;
        }
        let steps = self.oracle.steps(current, status, marks);
        pass.restart = Restart::Owed(steps.map(|step| match step {
            StepTaken::Done => Some(Outcome::Restarted),
            StepTaken::Wait if self.rules.absence_keeps_the_debt => Some(Outcome::Missing),
            StepTaken::Wait => Some(Outcome::Restarted),
            StepTaken::Fail => Some(Outcome::Failed),
            StepTaken::Stamp => None,
        }));
        for (step, mark) in steps.into_iter().zip(pass.workloads.iter().flatten()) {
            match (step, mark.value) {
                (StepTaken::Wait, _) => self.sightings.saw(Sometimes::AbsentWaitedFor),
                (StepTaken::Done, Mark::Readable(Some(mark))) if mark == current => {
                    self.sightings.saw(Sometimes::DoneByItsMark);
                }
                (StepTaken::Done, _) => self.sightings.saw(Sometimes::DoneByItsRecord),
                _ => {}
            }
        }
        next_stamp(pass)
    }

    pub(super) fn stamp(
        &mut self,
        world: &mut World,
        pass: &mut Pass,
        index: usize,
        ending: Ending,
    ) -> Result<At, Violation> {
        let current = pass.version.expect("a version to restart for");
        let exists = !world.missing[index];
        let is_as_read = pass.workloads[index].is_some_and(|read| read.current);
        let allowed = exists && (is_as_read || !self.rules.workload_precondition);
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
            let is_latecomer = index + 1 == WORKLOADS;
            self.sightings.saw(if is_latecomer { Sometimes::LatecomerRestarted } else { Sometimes::Stamped });
            world.marks[index] = Some(current);
            world.replace_pods(index);
        }
        self.saw_write(allowed, ending, Sometimes::StampRefused);
        let Restart::Owed(outcomes) = &mut pass.restart else { unreachable!("a stamp that is not owed") };
        outcomes[index] = Some(match ending {
            Ending::Well if allowed => Outcome::Restarted,
            Ending::Well => Outcome::Overtaken,
            _ => Outcome::Failed,
        });
        Ok(next_stamp(pass))
    }

    pub(super) fn report(&mut self, world: &mut World, pass: &Pass) -> Result<(), Violation> {
        let synced = pass.version.filter(|_| pass.synced).map(|version| (version, pass.is_new_content));
        let before = pass.status.value;
        let after = self.oracle.report(before, synced, pass.restart, pass.version);
        // A heartbeat carries times only, and there are no times here.
        if after == before {
            return Ok(());
        }
        let is_paid = matches!(pass.restart, Restart::Owed(_)) && after.last_rollout != before.last_rollout;
        if is_paid && world.is_one_missing() {
            return Err("I1: a debt is recorded as paid while a listed workload is missing".to_owned());
        }
        self.saw_write(pass.status.current, Ending::Well, Sometimes::StatusWriteRefused);
        if pass.status.current {
            world.status_written();
            world.status = after;
        } else if !self.rules.status_precondition {
            world.status_written();
            overwrite(&mut world.status, before, after);
        }
        Ok(())
    }
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
