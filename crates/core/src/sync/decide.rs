//! From what was observed to the one write the target needs, and the debt that has to be on record before it.
//!
//! Rule 1: content changed if and only if the wanted data is not the content of the target's version. Rule 3: a new
//! version over an old one is preceded by a debt. Rule 7: a deleted target comes back under the version it had, if that
//! can be told for certain.

use crate::content::{Content, DataPatch, data_patch};
use crate::sync::{Marks, ObservedTarget, Ownership, Records};
use crate::version::{OperatorKey, Verdict as Match, Version};

/// How the wanted content stands to the target: tells what has to be read before [`decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no target.
    Missing,
    /// The target carries no version: handed over by a person, or somebody stripped the annotation.
    Unversioned,
    /// The wanted content is the content of the target's version.
    Same,
    /// It is not.
    Changed,
}

impl Verdict {
    /// Whether the workloads must be read before the target is written.
    ///
    /// `Changed`: rule 4 wants them read before the write that they depend on. `Missing` and `Unversioned`: their marks
    /// tell which version the target had (rule 7), unless this resource has never written it.
    pub fn needs_workloads(self, records: &Records) -> bool {
        match self {
            Self::Same => false,
            Self::Changed => true,
            Self::Missing | Self::Unversioned => !records.is_empty(),
        }
    }
}

/// What happened to the target, in the words of logs and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing to write.
    Unchanged,
    /// Somebody edited it: same version, written back.
    Repaired,
    /// It was there without a version; it has one now.
    Adopted,
    /// It was gone and came back under the version it had.
    Recreated,
    /// It was not there and got its first or a new version.
    Created,
    /// New content, new version.
    Replaced,
}

impl Change {
    /// Whether the target's content is another than before.
    pub const fn is_new_content(self) -> bool {
        matches!(self, Self::Created | Self::Replaced)
    }
}

/// The write that makes the target right.
#[derive(Clone, Debug)]
pub enum TargetWrite {
    /// There is none: make it.
    Create,
    /// It is there: change what differs, on condition that nobody wrote since.
    Patch {
        /// Of the read that this plan follows from.
        resource_version: String,
        /// Keys to set and keys to remove.
        data: DataPatch,
    },
}

/// What the sync stage does, in this order: the debt, then the write.
#[derive(Clone, Debug)]
pub struct SyncPlan {
    /// To be stored as `lastRolloutHash` before the target is written.
    pub debt: Option<Version>,
    /// The one write; `None` where the target is right.
    pub write: Option<TargetWrite>,
    /// The version the target has once the plan is carried out.
    pub version: Version,
    /// What this amounts to.
    pub change: Change,
}

/// Holds the wanted content against the target.
pub fn judge(target: Option<&ObservedTarget>, wanted: &Content, key: &OperatorKey) -> Verdict {
    let Some(target) = target else { return Verdict::Missing };
    let Some(version) = &target.version else { return Verdict::Unversioned };
    match version.verify(key, wanted) {
        Match::Matches => Verdict::Same,
        Match::Differs => Verdict::Changed,
        // The key that could tell is gone; here, and only here, the bytes on the Secret decide.
        Match::KeyGone if target.content == *wanted => Verdict::Same,
        Match::KeyGone => Verdict::Changed,
    }
}

/// Everything [`decide`] looks at.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The target, if there is one.
    pub target: Option<&'a ObservedTarget>,
    /// The content it shall have.
    pub wanted: &'a Content,
    /// What the status knows of versions.
    pub records: &'a Records,
    /// What the workloads carry; only looked at where [`Verdict::needs_workloads`] asked for it.
    pub marks: &'a Marks,
    /// Whether the target is kept without an owner reference (it is the connection's token Secret).
    pub unowned: bool,
    /// The operator's key.
    pub key: &'a OperatorKey,
    /// Two fresh nonces: for the new version, and for naming content that never had one.
    pub nonces: [[u8; 8]; 2],
}

/// The plan for what was observed. Total: every snapshot has one.
pub fn decide(question: Question<'_>) -> SyncPlan {
    let Question { target, wanted, records, key, nonces: [nonce, naming], .. } = question;
    let fresh = || Version::make(key, nonce, wanted);
    let Some(target) = target else {
        let (version, change) = match lost_version(question) {
            Some(version) => (version, Change::Recreated),
            None => (fresh(), Change::Created),
        };
        return SyncPlan { debt: None, write: Some(TargetWrite::Create), version, change };
    };
    let write = Some(TargetWrite::Patch {
        resource_version: target.resource_version.clone(),
        data: data_patch(&target.content, wanted),
    });
    let kept = |version: Version| {
        let sound = target.content == *wanted && target.managed_by_us && ownership_is_right(target, question.unowned);
        let (write, change) = if sound { (None, Change::Unchanged) } else { (write.clone(), Change::Repaired) };
        SyncPlan { debt: None, write, version, change }
    };
    match (judge(Some(target), wanted, key), &target.version) {
        (Verdict::Same, Some(version)) => kept(version.clone()),
        (_, Some(version)) => {
            let debt = records.last_rollout.is_none().then(|| version.clone());
            SyncPlan { debt, write, version: fresh(), change: Change::Replaced }
        }
        // The bytes tell that the content is another, and a version that came back over other bytes would hide that from
        // whoever restarts for those bytes right now (a former leader that has just written them).
        (_, None) if target.content != *wanted => {
            // What pods run on now has no name any more; the debt needs one.
            let debt = records.last_rollout.is_none().then(|| Version::make(key, naming, &target.content));
            SyncPlan { debt, write, version: fresh(), change: Change::Replaced }
        }
        (_, None) => match lost_version(question) {
            Some(version) => SyncPlan { debt: None, write, version, change: Change::Repaired },
            None => SyncPlan { debt: None, write, version: fresh(), change: Change::Adopted },
        },
    }
}

fn ownership_is_right(target: &ObservedTarget, unowned: bool) -> bool {
    if unowned { target.ownership != Ownership::Ours } else { target.ownership == Ownership::Ours }
}

/// Rule 7: the version that a target without one had, if the wanted content is its content and nothing seen anywhere
/// speaks against it.
///
/// Refused, so that a new version is made and at worst one restart is one too many:
/// - a candidate that equals `lastRolloutHash` while another version is seen: a restart for that other version was owed
///   or under way, and coming back under `lastRolloutHash` would wipe the debt;
/// - any candidate while a workload carries a mark that the status does not know, unless it is that very mark: the
///   status is older than that stamp, so what it records is not the last version.
fn lost_version(question: Question<'_>) -> Option<Version> {
    let Question { wanted, records, marks, key, .. } = question;
    let recorded = || records.content.iter().chain(&records.rollouts).chain(&records.last_rollout);
    let unrecorded: Vec<&Version> = marks.seen.iter().filter(|mark| recorded().all(|known| known != *mark)).collect();
    let others = |candidate: &Version| {
        let seen = records.content.iter().chain(&records.rollouts).chain(&marks.seen);
        seen.into_iter().any(|version| version != candidate)
    };
    let certain = |candidate: &Version| {
        let latest = unrecorded.iter().all(|mark| *mark == candidate);
        let wipes_a_debt = records.last_rollout.as_ref() == Some(candidate) && others(candidate);
        latest && !wipes_a_debt && candidate.verify(key, wanted) == Match::Matches
    };
    let seen = records.content.iter().chain(&marks.seen).chain(&records.rollouts).chain(&records.last_rollout);
    seen.into_iter().find(|candidate| certain(candidate)).cloned()
}

#[cfg(test)]
mod tests;
