//! What the cluster and FerrVault hold, as far as the protocol looks at it.

use super::WORKLOADS;

/// What FerrVault and the target hold; one letter stands for one content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Content {
    #[default]
    A,
    B,
    C,
    /// What some earlier version named; nothing here ever holds it again.
    Forgotten,
}

/// The name of a version: its serial number and the content it was made for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) serial: u8,
    pub(crate) content: Content,
}

impl Name {
    /// What the Go operator left on a target that holds A.
    pub(crate) const LEGACY: Self = Self { serial: 100, content: Content::A };
    /// What the Go operator recorded for a content before that.
    pub(crate) const LEGACY_BEFORE: Self = Self { serial: 101, content: Content::Forgotten };
    /// A version that nothing refers to any more, so that nothing can ever carry it again.
    pub(super) const GONE: Self = Self { serial: 102, content: Content::Forgotten };

    pub(crate) const fn new(serial: u8, content: Content) -> Self {
        Self { serial, content }
    }

    pub(super) const fn is_fixed(self) -> bool {
        self.serial >= Self::LEGACY.serial
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::LEGACY => write!(f, "legacy(A)"),
            Self::LEGACY_BEFORE => write!(f, "legacy-before"),
            Self::GONE => write!(f, "gone"),
            Self { serial, content } => write!(f, "v{serial}({content:?})"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Target {
    /// `None`: somebody stripped the annotation.
    pub(crate) version: Option<Name>,
    pub(crate) content: Content,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum State {
    /// There is no entry.
    #[default]
    Absent,
    Restarted,
    Waiting,
    Failed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) version: Option<Name>,
    pub(crate) state: State,
}

/// What the `RolloutRestarted` condition says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Restarted {
    #[default]
    Unknown,
    True,
    False,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Status {
    pub(crate) last_rollout: Option<Name>,
    pub(crate) content: Option<Name>,
    pub(crate) rollouts: [Entry; WORKLOADS],
    pub(crate) restarted: Restarted,
}
