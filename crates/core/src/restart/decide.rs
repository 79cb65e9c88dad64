//! From the versions on record and on the workloads to one step per workload.

use std::collections::BTreeSet;

use ferrvault_api::secret::{Rollout, WorkloadRef};
use ferrvault_api::{FerrVaultSecretStatus, condition};

use crate::version::Version;

/// Whether a restart is owed (rule 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Debt {
    /// Nothing was ever recorded: the target's version becomes the baseline and nothing restarts.
    Baseline,
    /// Every listed workload was restarted for the target's version.
    Nothing,
    /// The target's version is newer than what the workloads were restarted for.
    Owed,
}

/// Rule 2: a restart is owed while a version is on record and differs from the target's.
pub fn debt(last_rollout: Option<&Version>, current: &Version) -> Debt {
    match last_rollout {
        None => Debt::Baseline,
        Some(version) if version == current => Debt::Nothing,
        Some(_) => Debt::Owed,
    }
}

/// Whether what was read of the target says that nothing is owed while the status says that something is.
///
/// `read`: the version on the target, or nothing where no target of ours was seen. The status was written after a look at
/// the target, so the two agree unless the read was answered from before, or somebody meddled with the target just now.
/// Believing the read would end the retries of a debt that nothing else may bring up again; so it is looked at once more.
pub fn contradicted(status: Option<&FerrVaultSecretStatus>, read: Option<&Version>) -> bool {
    let Some(status) = status else { return false };
    let unpaid = status.conditions.iter().any(|c| c.type_ == condition::ROLLOUT_RESTARTED && c.status == "False");
    let text = read.map(Version::as_str);
    // The version that the last sync found there counts: once a sync has found this one, it is no mistake.
    unpaid
        && text.is_none_or(|text| {
            status.last_rollout_hash.as_deref() == Some(text) && status.content_hash.as_deref() != Some(text)
        })
}

/// A workload as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadState {
    /// It is there.
    Present {
        /// The precondition of the stamp.
        resource_version: String,
        /// The version stamped for this resource, if any.
        mark: Option<Version>,
        /// A paused Deployment takes the stamp and rolls out when it is resumed.
        paused: bool,
    },
    /// It does not exist (yet).
    Missing,
    /// It could not be read; why.
    Unreadable(String),
}

impl WorkloadState {
    /// The version stamped on it, if it could be seen.
    pub const fn mark(&self) -> Option<&Version> {
        match self {
            Self::Present { mark, .. } => mark.as_ref(),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }
}

/// What is to be done about one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was restarted for this version already.
    Done {
        /// Whether it is a Deployment on pause.
        paused: bool,
    },
    /// Stamp it, on condition that nobody wrote since it was read.
    Stamp {
        /// Of the read that this step follows from.
        resource_version: String,
        /// Whether it is a Deployment on pause.
        paused: bool,
    },
    /// Wait for it to appear.
    Wait,
    /// It could not be looked at; why.
    Fail(String),
}

/// The listed workloads, each once, in the order of the list.
///
/// A workload listed twice is one workload: stamping it twice would restart it twice.
pub fn distinct(listed: &[WorkloadRef]) -> Vec<WorkloadRef> {
    let mut seen = BTreeSet::new();
    listed.iter().filter(|workload| seen.insert(*workload)).cloned().collect()
}

/// Rule 5: a workload is stamped only if neither its mark nor its record carries the current version.
///
/// A missing mark with a record is *done*: tools that enforce a repository's state strip annotations they do not know.
pub fn steps(
    current: &Version,
    recorded: &[Rollout],
    workloads: Vec<(WorkloadRef, WorkloadState)>,
) -> Vec<(WorkloadRef, Step)> {
    let is_recorded = |workload: &WorkloadRef| {
        let entry = recorded.iter().find(|entry| entry.kind == workload.kind && entry.name == workload.name);
        entry.is_some_and(|entry| entry.hash == current.as_str())
    };
    let step = |workload: &WorkloadRef, state| match state {
        WorkloadState::Present { mark, paused, .. } if mark.as_ref() == Some(current) || is_recorded(workload) => {
            Step::Done { paused }
        }
        WorkloadState::Present { resource_version, paused, .. } => Step::Stamp { resource_version, paused },
        WorkloadState::Missing | WorkloadState::Unreadable(_) if is_recorded(workload) => Step::Done { paused: false },
        WorkloadState::Missing => Step::Wait,
        WorkloadState::Unreadable(why) => Step::Fail(why),
    };
    workloads
        .into_iter()
        .map(|(workload, state)| {
            let step = step(&workload, state);
            (workload, step)
        })
        .collect()
}

#[cfg(test)]
mod tests;
