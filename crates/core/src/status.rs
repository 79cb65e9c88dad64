//! From the outcome of a pass to the status it leaves: one function, one write.
//!
//! Holds I5 (Ready=True Synced only for what this pass proved; RolloutRestarted=True only when nothing is owed) and the
//! cheap half of I10: a pass that changed nothing writes two times and nothing else.

mod conditions;
mod draft;
mod messages;

use ferrvault_api::{FerrVaultSecret, FerrVaultSecretStatus, Reason};
use jiff::Timestamp;

pub use self::conditions::{condition_of, merge};
use self::draft::Draft;
pub(crate) use self::messages::{cut, named, some_of};
use crate::refusal::Refusal;
use crate::restart::{Look, Settled};
use crate::sync::Change;
use crate::version::Version;

/// What became of the sync stage.
#[derive(Clone, Debug)]
pub enum SyncReport {
    /// It was not due.
    NotDue,
    /// The target was proved equal to FerrVault.
    Synced {
        /// The version the target holds.
        version: Version,
        /// Keys in the target, sorted.
        keys: Vec<String>,
        /// What it took.
        change: Change,
    },
    /// It ended early.
    Refused(Refusal),
}

/// What became of the restart stage.
#[derive(Clone, Debug)]
pub enum RestartReport {
    /// It was not due, or did not get as far as to know.
    NotDue,
    /// Nothing was on record: this version is the baseline.
    Baseline(Version),
    /// Nothing is owed.
    Nothing,
    /// A restart was owed; how far it got.
    Owed {
        /// The version it is owed for.
        current: Version,
        /// The records after it.
        settled: Settled,
    },
}

/// How the status has to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Only times moved: no precondition, and nothing of the protocol is touched.
    Heartbeat,
    /// Anything else: on condition that nobody wrote since the resource was read.
    Full,
}

/// A condition that is another than before: worth an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// `Ready`, `RolloutRestarted` or `Fresh`.
    pub type_: &'static str,
    /// Whether it is True now.
    pub is_true: bool,
    /// Its reason now.
    pub reason: Reason,
    /// Its message now.
    pub message: String,
}

/// The status after a pass.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The whole of it.
    pub status: FerrVaultSecretStatus,
    /// How to write it.
    pub write: Write,
    /// What changed in a way that people are told about.
    pub transitions: Vec<Transition>,
}

impl Rendered {
    /// The same of a pass that `request`, the value of the annotation `ferrvault.com/refresh` as the pass read it at its
    /// beginning, has asked for.
    #[must_use]
    pub fn answering(mut self, request: Option<&str>) -> Self {
        if request.is_some() && self.status.last_handled_refresh.as_deref() != request {
            self.status.last_handled_refresh = request.map(str::to_owned);
            self.write = Write::Full;
        }
        self
    }
}

/// The status of a completed pass.
pub fn render(resource: &FerrVaultSecret, sync: &SyncReport, restart: &RestartReport, now: Timestamp) -> Rendered {
    render_with_look(resource, sync, restart, None, now)
}

/// The same of a pass that looked at the workloads although nothing was owed.
pub fn render_with_look(
    resource: &FerrVaultSecret,
    sync: &SyncReport,
    restart: &RestartReport,
    look: Option<&Look>,
    now: Timestamp,
) -> Rendered {
    let mut draft = Draft::of(resource, now);
    draft.sync(sync);
    draft.restart(restart, look);
    match (sync, restart) {
        (SyncReport::Synced { version, .. }, RestartReport::NotDue) => draft.unsettled(version),
        (SyncReport::Refused(refusal), RestartReport::NotDue) if refusal.holds_restarts => draft.held(refusal),
        _ => {}
    }
    draft.ended();
    draft.finish()
}

/// The status of a pass that was cut at its deadline while it was at `step`.
///
/// `lost`: what it had seen of a target that is not what the last success put there. `lastAttemptedAt` stays: that pass was
/// not completed, and its standing still is what tells.
pub fn render_timeout(
    resource: &FerrVaultSecret,
    step: &str,
    deadline: &str,
    lost: Option<&str>,
    now: Timestamp,
) -> Rendered {
    let mut draft = Draft::of(resource, now);
    let mut refusal = Refusal::new(
        Reason::ReconcileTimeout,
        format!("the pass was cut after {deadline} while {step}; it is tried again"),
    );
    if let Some(lost) = lost {
        refusal.message = format!("{}; {lost}", refusal.message);
        refusal.target_is_lost = true;
    }
    draft.refuse(&refusal);
    draft.finish()
}

/// The status of a pass that panicked while it was at `step`. `lastAttemptedAt` stays, as with one that was cut.
pub fn render_panic(resource: &FerrVaultSecret, step: &str, now: Timestamp) -> Rendered {
    let mut draft = Draft::of(resource, now);
    let message = format!(
        "the pass ended in a mistake of the operator while {step}; the target keeps what it holds and the pass is tried again"
    );
    draft.refuse(&Refusal::new(Reason::InternalError, message));
    draft.finish()
}

#[cfg(test)]
mod tests;
