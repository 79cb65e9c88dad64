//! From what became of each workload to the records of the status.

use ferrvault_api::secret::{Rollout, RolloutState, WorkloadRef};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::version::Version;

/// What is said of a workload that is waited for.
pub(crate) const DOES_NOT_EXIST: &str = "does not exist";

/// What became of one workload in this pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadOutcome {
    /// Stamped now, or found stamped.
    Restarted {
        /// Whether it is a Deployment on pause.
        paused: bool,
    },
    /// It does not exist.
    Missing,
    /// It changed between its read and its stamp; the next pass looks again. Normal, not an error.
    Overtaken,
    /// Read or stamp was refused; why.
    Failed(String),
}

/// The records after a restart stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// `status.rollouts`.
    pub rollouts: Vec<Rollout>,
    /// Whether every listed workload is done, so that `lastRolloutHash` moves to the current version (rule 6).
    pub paid: bool,
}

/// The new records: one entry per listed workload, in the order of the list.
pub fn settle(
    current: &Version,
    recorded: &[Rollout],
    outcomes: &[(WorkloadRef, WorkloadOutcome)],
    now: Timestamp,
) -> Settled {
    let rollouts =
        outcomes.iter().map(|(workload, outcome)| entry(current, recorded, workload, outcome, now)).collect();
    let paid = outcomes.iter().all(|(_, outcome)| matches!(outcome, WorkloadOutcome::Restarted { .. }));
    Settled { rollouts, paid }
}

fn entry(
    current: &Version,
    recorded: &[Rollout],
    workload: &WorkloadRef,
    outcome: &WorkloadOutcome,
    now: Timestamp,
) -> Rollout {
    let before = recorded.iter().find(|entry| entry.kind == workload.kind && entry.name == workload.name);
    let earlier_hash = || before.map(|entry| entry.hash.clone()).unwrap_or_default();
    let (state, hash, message) = match outcome {
        WorkloadOutcome::Restarted { paused: false } => {
            (RolloutState::Restarted, current.as_str().to_owned(), String::new())
        }
        WorkloadOutcome::Restarted { paused: true } => (
            RolloutState::Restarted,
            current.as_str().to_owned(),
            "stamped while its rollout was paused; resuming it restarts its pods".to_owned(),
        ),
        WorkloadOutcome::Missing => (RolloutState::Waiting, earlier_hash(), DOES_NOT_EXIST.to_owned()),
        WorkloadOutcome::Overtaken => {
            (RolloutState::Waiting, earlier_hash(), "changed while it was being restarted".to_owned())
        }
        WorkloadOutcome::Failed(why) => (RolloutState::Failed, earlier_hash(), why.clone()),
    };
    // `since` tells how long it has been in this state for this version, so a repeat of the same keeps it.
    let since = before
        .filter(|entry| entry.state == state && entry.hash == hash)
        .map_or(Time(now), |entry| entry.since.clone());
    Rollout { kind: workload.kind, name: workload.name.clone(), hash, state, since, message }
}

#[cfg(test)]
mod tests;
