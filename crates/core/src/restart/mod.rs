//! The restart stage: which workloads still run on an older version, and when the debt is paid.
//!
//! ```text
//!            new version on the target                 every listed workload done
//!   none ───────────────────────────────▶ owed ─────────────────────────────────────▶ none
//!    ▲ baseline recorded                   │ ▲ a workload missing, refused or changed under us
//!   unset                                  └─┘ (the others go on)
//! ```
//!
//! Holds rules 2, 5 and 6 of the rollout protocol: I1 (nothing lost), I2 (nothing twice), I3 (no surprise).

mod decide;
mod look;
mod settle;

pub use decide::{Debt, Step, WorkloadState, contradicted, debt, distinct, steps};
pub use look::{Look, look_is_due};
pub(crate) use settle::DOES_NOT_EXIST;
pub use settle::{Settled, WorkloadOutcome, settle};
