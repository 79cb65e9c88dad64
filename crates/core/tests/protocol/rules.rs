//! Which rules hold in an exploration, and the words that actors and explorer share.

use crate::world::Content;

/// The protocol, rule by rule, so that a check that leaves one out can show what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Rule 3.
    pub(crate) debt_first: bool,
    /// Rule 4, writes: each on condition that its object is as it was read.
    pub(crate) status_precondition: bool,
    pub(crate) target_precondition: bool,
    pub(crate) workload_precondition: bool,
    /// Rule 4, reads: what is written is read before what it depends on.
    pub(crate) target_before_reveal: bool,
    /// Rule 4, *the Secret again*.
    pub(crate) second_look: bool,
    /// The resource again, too: a record written since it was read may be the only trace of a restart.
    pub(crate) status_again: bool,
    /// Both of these looks are consistent reads: a GET that names no resourceVersion, which the API server answers from
    /// what is stored and never from a cache. Every other read may be answered from before.
    pub(crate) second_look_is_fresh: bool,
    /// Rule 5: a record counts, so that a mark which was stripped is no reason to restart again.
    pub(crate) records_count: bool,
    /// Rule 6: a workload that does not exist keeps the debt.
    pub(crate) absence_keeps_the_debt: bool,
    /// Rule 7: a deleted target comes back under `lastRolloutHash` only if no other version is seen anywhere.
    pub(crate) careful_recreation: bool,
    /// Rule 7: a workload that could not be read may carry any version.
    pub(crate) unreadable_is_doubt: bool,
    /// Other bytes without a version are other content, even if what they are to become was there before.
    pub(crate) bytes_without_version_count: bool,
}

impl Rules {
    /// What the product does.
    pub(crate) const PRODUCT: Self = Self {
        debt_first: true,
        status_precondition: true,
        target_precondition: true,
        workload_precondition: true,
        target_before_reveal: true,
        second_look: true,
        status_again: true,
        second_look_is_fresh: true,
        records_count: true,
        absence_keeps_the_debt: true,
        careful_recreation: true,
        unreadable_is_doubt: true,
        bytes_without_version_count: true,
    };
}

/// What FerrVault holds, change by change.
pub(crate) type Script = &'static [Content];

/// How an effect ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Well,
    /// An error, and nothing was done.
    Refused,
    /// An error, and it was done.
    Unanswered,
    /// A read: answered from before the last change of what is read.
    Stale,
}

/// A broken invariant.
pub(crate) type Violation = String;
