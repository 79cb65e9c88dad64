//! What the sync stage observes.

use ferrvault_api::FerrVaultSecretStatus;
use ferrvault_api::secret::WorkloadRef;

use crate::content::Content;
use crate::restart::WorkloadState;
use crate::version::{Form, Version};

/// Whose the target is, as its controller reference tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The resource's own UID.
    Ours,
    /// Nobody's.
    Nobody,
    /// Somebody else's.
    Another {
        /// The owner's kind.
        kind: String,
        /// The owner's name.
        name: String,
    },
}

/// The target as it was read.
#[derive(Clone, Debug)]
pub struct ObservedTarget {
    /// The precondition of every write that follows from this read.
    pub resource_version: String,
    /// `Opaque`, `kubernetes.io/tls`, ...
    pub type_: String,
    /// Whose it is.
    pub ownership: Ownership,
    /// Whether it carries `ferrvault.com/managed-by: ferrvault-operator`.
    pub managed_by_us: bool,
    /// Whether its data can never change (`immutable: true`).
    pub immutable: bool,
    /// The version it carries, if it is one ([`version_on_target`]).
    pub version: Option<Version>,
    /// Its data.
    pub content: Content,
}

/// Reads the version annotation of a target.
///
/// Text that no operator ever wrote counts as no version: somebody edited the annotation, and taking the edit for a new
/// version would restart every workload for it.
pub fn version_on_target(annotation: Option<&str>) -> Option<Version> {
    annotation.map(Version::parse).filter(|version| version.form() != Form::Foreign)
}

/// What the status says about versions, from the resource as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// `status.lastRolloutHash`.
    pub last_rollout: Option<Version>,
    /// `status.contentHash`.
    pub content: Option<Version>,
    /// `status.rollouts[].hash`.
    pub rollouts: Vec<Version>,
}

impl Records {
    /// Reads the records out of a status.
    pub fn of(status: Option<&FerrVaultSecretStatus>) -> Self {
        let Some(status) = status else { return Self::default() };
        let version = |text: &str| (!text.is_empty()).then(|| Version::parse(text));
        Self {
            last_rollout: status.last_rollout_hash.as_deref().and_then(version),
            content: status.content_hash.as_deref().and_then(version),
            rollouts: status.rollouts.iter().filter_map(|entry| version(&entry.hash)).collect(),
        }
    }

    /// Whether the status knows of no version at all: this resource has never written its target.
    pub fn is_empty(&self) -> bool {
        self.last_rollout.is_none() && self.content.is_none() && self.rollouts.is_empty()
    }
}

/// The versions stamped on the listed workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Every version seen on a workload.
    pub seen: Vec<Version>,
}

impl Marks {
    /// What the workloads tell. One that could not be read may carry any version, so it counts as carrying one that
    /// nobody knows: taking it for unmarked could bring a deleted target back under a version that it has left behind,
    /// and its restart would be lost.
    pub fn of(workloads: &[(WorkloadRef, WorkloadState)]) -> Self {
        let seen = workloads.iter().filter_map(|(_, state)| match state {
            WorkloadState::Present { mark, .. } => mark.clone(),
            WorkloadState::Missing => None,
            WorkloadState::Unreadable(_) => Some(Version::parse("unreadable")),
        });
        Self { seen: seen.collect() }
    }
}

#[cfg(test)]
mod tests;
