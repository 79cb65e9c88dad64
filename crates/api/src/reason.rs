//! Why a condition is what it is. One enum, one string form, shared by condition, event, log and metric.

/// A reason of the `Ready`, `RolloutRestarted` or `Fresh` condition of a resource, or of `Ready` of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The target equals what FerrVault answered.
    Synced,
    /// FerrVault does not have every key that `spec.selector.names` wants.
    MissingKeys,
    /// `spec.connectionRef` names a connection that is not there.
    ConnectionNotFound,
    /// The token Secret is missing, unreadable or empty.
    TokenUnreadable,
    /// The token Secret lacks the key, or the target is the token Secret and the content lacks it.
    TokenKeyMissing,
    /// The connection's spec cannot be used.
    InvalidConnection,
    /// The resource's spec cannot be used.
    InvalidSpec,
    /// Mode `cloud` without organization or project.
    MissingCloudScope,
    /// FerrVault refused the token.
    AuthFailed,
    /// FerrVault knows no such vault.
    VaultNotFound,
    /// FerrVault did not answer, or not in its own language.
    Unreachable,
    /// FerrVault asked to come back later.
    RateLimited,
    /// A transform could not be applied.
    TransformError,
    /// The target could not be read.
    SecretReadFailed,
    /// The target could not be written.
    SecretWriteFailed,
    /// The target exists and belongs to something else.
    TargetConflict,
    /// FerrVault answered with nothing.
    EmptyAnswer,
    /// The pass was cut at its deadline.
    ReconcileTimeout,
    /// The pass ended in a mistake of the operator's own.
    InternalError,
    /// `spec.suspend` asks to leave the resource alone.
    Suspended,
    /// The status could not be written; of events and metrics alone, because no condition could show it.
    StatusWriteFailed,
    /// Every listed workload was restarted for the current version.
    Restarted,
    /// A restart is owed and none was tried yet, or a workload is waited for.
    RolloutPending,
    /// A restart is owed and was refused.
    RolloutFailed,
    /// Passes end as often as they should.
    Current,
    /// No pass has ended for longer than two refresh intervals and five minutes.
    Stale,
    /// A pass that was asked for has not ended within five minutes.
    Overdue,
    /// The connection answers.
    Reachable,
    /// The connection is kept from being deleted while resources refer to it.
    DeletionBlocked,
}

impl Reason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 29] = [
        Self::Synced,
        Self::MissingKeys,
        Self::ConnectionNotFound,
        Self::TokenUnreadable,
        Self::TokenKeyMissing,
        Self::InvalidConnection,
        Self::InvalidSpec,
        Self::MissingCloudScope,
        Self::AuthFailed,
        Self::VaultNotFound,
        Self::Unreachable,
        Self::RateLimited,
        Self::TransformError,
        Self::SecretReadFailed,
        Self::SecretWriteFailed,
        Self::TargetConflict,
        Self::EmptyAnswer,
        Self::ReconcileTimeout,
        Self::InternalError,
        Self::Suspended,
        Self::StatusWriteFailed,
        Self::Restarted,
        Self::RolloutPending,
        Self::RolloutFailed,
        Self::Current,
        Self::Stale,
        Self::Overdue,
        Self::Reachable,
        Self::DeletionBlocked,
    ];

    /// The one spelling of this reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Synced => "Synced",
            Self::MissingKeys => "MissingKeys",
            Self::ConnectionNotFound => "ConnectionNotFound",
            Self::TokenUnreadable => "TokenUnreadable",
            Self::TokenKeyMissing => "TokenKeyMissing",
            Self::InvalidConnection => "InvalidConnection",
            Self::InvalidSpec => "InvalidSpec",
            Self::MissingCloudScope => "MissingCloudScope",
            Self::AuthFailed => "AuthFailed",
            Self::VaultNotFound => "VaultNotFound",
            Self::Unreachable => "Unreachable",
            Self::RateLimited => "RateLimited",
            Self::TransformError => "TransformError",
            Self::SecretReadFailed => "SecretReadFailed",
            Self::SecretWriteFailed => "SecretWriteFailed",
            Self::TargetConflict => "TargetConflict",
            Self::EmptyAnswer => "EmptyAnswer",
            Self::ReconcileTimeout => "ReconcileTimeout",
            Self::InternalError => "InternalError",
            Self::Suspended => "Suspended",
            Self::StatusWriteFailed => "StatusWriteFailed",
            Self::Restarted => "Restarted",
            Self::RolloutPending => "RolloutPending",
            Self::RolloutFailed => "RolloutFailed",
            Self::Current => "Current",
            Self::Stale => "Stale",
            Self::Overdue => "Overdue",
            Self::Reachable => "Reachable",
            Self::DeletionBlocked => "DeletionBlocked",
        }
    }

    /// The reason spelled `text`, if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
