//! What an actor keeps in mind while its pass runs, and what a cut makes it forget.

use super::{Name, Status, Target, WORKLOADS};

/// Something that was read, and whether it is still as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Read<T> {
    pub(crate) value: T,
    pub(crate) current: bool,
}

impl<T> Read<T> {
    pub(crate) const fn now(value: T) -> Self {
        Self { value, current: true }
    }

    /// Answered from before the last change.
    pub(crate) const fn before(value: T) -> Self {
        Self { value, current: false }
    }
}

/// A workload's mark, if it could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Mark {
    Readable(Option<Name>),
    /// There is no such workload.
    Absent,
    Unreadable,
}

/// What became of a workload in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Restarted,
    Missing,
    Overtaken,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TargetWrite {
    Create,
    Patch,
}

/// The step a pass does next. Everything before it is done, so being cut means never doing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum At {
    #[default]
    Idle,
    ReadTarget,
    Reveal,
    ReadWorkload(usize),
    RecordDebt,
    WriteTarget(TargetWrite),
    ReadMark,
    ReadOwed(usize),
    LookAgain,
    LookAtStatus,
    Stamp(usize),
    Report,
}

/// What the pass that runs has learnt. Whatever no later step needs is forgotten, so that equal states are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pass {
    /// The resource; the record of a debt renews it.
    pub(crate) status: Read<Status>,
    pub(crate) target: Option<Read<Target>>,
    /// Which of FerrVault's contents the answer was, by its place in the script.
    pub(crate) answer: u8,
    pub(crate) workloads: [Option<Read<Mark>>; WORKLOADS],
    pub(crate) debt: Option<Name>,
    /// The version of the target, as planned or as read.
    pub(crate) version: Option<Name>,
    pub(crate) is_new_content: bool,
    /// Whether the sync stage ended well.
    pub(crate) synced: bool,
    /// What the restart stage ended in: a baseline, nothing, or what became of each workload.
    pub(crate) restart: Restart,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Restart {
    #[default]
    NotDue,
    Baseline,
    Nothing,
    Owed([Option<Outcome>; WORKLOADS]),
}

impl Pass {
    pub(crate) fn begin(status: Read<Status>) -> Self {
        Self {
            status,
            target: None,
            answer: 0,
            workloads: [None; WORKLOADS],
            debt: None,
            version: None,
            is_new_content: false,
            synced: false,
            restart: Restart::NotDue,
        }
    }
}

/// One replica: the leader, or the one that has not noticed yet that it no longer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Actor {
    pub(crate) passes_left: u8,
    pub(crate) at: At,
    pub(crate) pass: Option<Pass>,
}
