//! A look at the listed workloads while nothing is owed, so that a name that is mistyped shows before a restart depends
//! on it. Only a sentence comes of it: no record, no debt and no hash is touched (I3).

use ferrvault_api::secret::WorkloadRef;
use ferrvault_api::{FerrVaultSecret, condition};
use jiff::Timestamp;

use super::WorkloadState;

/// What was seen that somebody may have to mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// When it was.
    pub at: Timestamp,
    /// Listed, and not there.
    pub missing: Vec<WorkloadRef>,
    /// Listed, and not to be read; why.
    pub unreadable: Vec<(WorkloadRef, String)>,
}

impl Look {
    /// What `workloads`, as they were read, tell.
    pub fn of(workloads: &[(WorkloadRef, WorkloadState)], at: Timestamp) -> Self {
        let mut look = Self { at, missing: Vec::new(), unreadable: Vec::new() };
        for (workload, state) in workloads {
            match state {
                WorkloadState::Present { .. } => {}
                WorkloadState::Missing => look.missing.push(workload.clone()),
                WorkloadState::Unreadable(why) => look.unreadable.push((workload.clone(), why.clone())),
            }
        }
        look
    }
}

/// Whether a pass that finds nothing owed looks at the workloads: once for each generation, which is when the list may
/// have changed, and when somebody asks for a pass. The rest of the time it would cost a read per workload and pass.
pub fn look_is_due(resource: &FerrVaultSecret) -> bool {
    if resource.spec.rollout_restart.is_empty() {
        return false;
    }
    let generation = resource.metadata.generation.unwrap_or_default();
    let conditions = resource.status.iter().flat_map(|status| &status.conditions);
    let looked = conditions.filter(|said| said.type_ == condition::ROLLOUT_RESTARTED && said.status == "True");
    let is_new = !looked.into_iter().any(|said| said.observed_generation == Some(generation));
    is_new || resource.refresh_is_due()
}

#[cfg(test)]
mod tests;
