//! The custom resources of the operator and the vocabulary that every other crate shares: names of annotations,
//! finalizers and conditions. Types only; nothing here decides, reads a clock or talks to anything.

#![allow(unreachable_pub, reason = "the CRD derive repeats each spec where the lint cannot see its re-export")]
#![allow(
    clippy::duplicated_attributes,
    reason = "several printer columns of one type are not the same attribute twice"
)]

pub mod connection;
pub mod marks;
pub mod reason;
mod schema;
pub mod secret;

pub use connection::{FerrVaultConnection, FerrVaultConnectionSpec, FerrVaultConnectionStatus};
pub use reason::Reason;
pub use secret::{FerrVaultSecret, FerrVaultSecretSpec, FerrVaultSecretStatus};

/// The API group of both kinds.
pub const GROUP: &str = "ferrvault.com";
/// The served and stored version of both kinds.
pub const VERSION: &str = "v1alpha1";

/// Condition types that the operator writes.
pub mod condition {
    /// The target holds what FerrVault holds (resource), or FerrVault answers (connection).
    pub const READY: &str = "Ready";
    /// No restart is owed.
    pub const ROLLOUT_RESTARTED: &str = "RolloutRestarted";
    /// Passes end as often as they should: the resource is still looked after.
    pub const FRESH: &str = "Fresh";
}
