//! Why a stage ended without its work done: a reason everybody can read, a message that says what to change, and a hint
//! for the schedule. A user's mistake is a refusal, never an error of the pass.

use std::time::Duration;

use ferrvault_api::Reason;

/// One stage's "no", as it will stand in the `Ready` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Shared by condition, event, log and metric.
    pub reason: Reason,
    /// What is wrong and what to change. Names keys and objects, never a value.
    pub message: String,
    /// Keys that FerrVault does not have, sorted; only with [`Reason::MissingKeys`].
    pub missing_keys: Vec<String>,
    /// When to try again.
    pub retry: Retry,
    /// Whether a restart that is owed has to wait as well: what is wrong is the target, or the list of workloads, or the
    /// resource is to be left alone.
    pub holds_restarts: bool,
    /// Whether the pass saw that the target does not hold what the last success put there.
    pub target_is_lost: bool,
}

/// When a refused stage is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// As the table of the reason says ([`crate::schedule`]).
    ByReason,
    /// Soon, with backoff: the refusal came from something that passes by itself.
    Backoff,
    /// The other side said when.
    After(Duration),
}

impl Refusal {
    /// A refusal that is retried as the table of its reason says.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            missing_keys: Vec::new(),
            retry: Retry::ByReason,
            holds_restarts: false,
            target_is_lost: false,
        }
    }

    /// The same, retried soon with backoff.
    pub fn passing(reason: Reason, message: impl Into<String>) -> Self {
        Self { retry: Retry::Backoff, ..Self::new(reason, message) }
    }

    /// The same, for something that an owed restart cannot go on without.
    #[must_use]
    pub fn holding_restarts(mut self) -> Self {
        self.holds_restarts = true;
        self
    }

    /// The same, retried at the time the other side named.
    #[must_use]
    pub fn after(mut self, delay: Option<Duration>) -> Self {
        if let Some(delay) = delay {
            self.retry = Retry::After(delay);
        }
        self
    }

    /// Whether it passes by itself, so that the last success is worth telling.
    pub const fn is_transient(&self) -> bool {
        matches!(self.reason, Reason::Unreachable | Reason::RateLimited | Reason::ReconcileTimeout)
    }

    /// Whether a condition may stay True through it: the data was right and nothing says that it no longer is.
    pub const fn leaves_ready(&self) -> bool {
        self.is_transient() && !self.target_is_lost
    }
}

#[cfg(test)]
mod tests;
