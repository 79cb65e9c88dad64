//! What must hold: after every write, and wherever everything stops. I2 and I4 are checked where they can break.

use crate::rules::Violation;
use crate::world::{Content, Restarted, State, Target, World};

/// What has to hold after every write: a version that some workload does not run on is a debt on record.
pub(crate) fn debt_is_on_record(world: &World) -> Result<(), Violation> {
    let Some(version) = world.target.and_then(|target| target.version) else { return Ok(()) };
    let behind = !world.present().all(|index| world.pods[index].are_on(version));
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
    if !world.present().all(|index| world.pods[index].are_on(version)) {
        return Err(format!("I1: the pods run on {:?}, the target is {version:?}", world.pods));
    }
    if world.status.content != Some(version) {
        return Err(format!("I5: the status {:?} does not tell of {version:?}", world.status));
    }
    // Rule 6: what is missing keeps the debt, and the condition says so.
    let owes = world.status.last_rollout != Some(version);
    if owes && world.is_one_missing() {
        let latecomer = world.status.rollouts[world.listed - 1];
        if world.status.restarted == Restarted::False && latecomer.state == State::Waiting {
            return Ok(());
        }
        return Err(format!("I5: a workload is waited for, but the status is {:?}", world.status));
    }
    if owes {
        return Err(format!("I5: the status {:?} does not tell of {version:?}", world.status));
    }
    if world.status.restarted != Restarted::True {
        return Err(format!("I5: nothing is owed, but the status is {:?}", world.status));
    }
    Ok(())
}
