//! The sync stage: makes the target equal to FerrVault's answer, or says why not.
//!
//! ```text
//! resource ─▶ checks ─▶ connection ─▶ checks ─▶ token ─▶ target ─▶ checks ─▶ answer ─▶ wanted ─▶ judge ─▶ decide
//! ```
//!
//! Holds I4 (the target only ever equals one complete answer), I6 (what is not ours is not written) and the first half of
//! the rollout protocol: rules 1, 3 and 7.

pub mod checks;
mod decide;
mod fate;
mod snapshot;
mod wanted;

pub use decide::{Change, Question, SyncPlan, TargetWrite, Verdict, decide, judge};
pub use fate::Fate;
pub use snapshot::{Marks, ObservedTarget, Ownership, Records, version_on_target};
pub use wanted::{WantedQuestion, wanted};
