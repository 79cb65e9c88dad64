//! The connection's own checks: what its status says and whether it may go.

use ferrvault_api::{FerrVaultConnection, FerrVaultConnectionStatus, Reason, condition, marks};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::refusal::Refusal;
use crate::status::{Transition, condition_of, cut, merge, some_of};

/// At most this many resources are named in `DeletionBlocked`: five fit a terminal line.
const NAMED_DEPENDENTS: usize = 5;

/// What the finalizer of a connection has to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerChange {
    /// It is right.
    Keep,
    /// A resource refers to the connection: hold it.
    Add,
    /// Nothing refers to it: let go, so that neither it nor its namespace hangs when the operator is gone.
    Remove,
}

/// The finalizer is there exactly while a resource refers to the connection.
///
/// It is not added to a connection that is being deleted: the API refuses that.
pub fn finalizer(connection: &FerrVaultConnection, dependents: usize) -> FinalizerChange {
    let held = connection.metadata.finalizers.iter().flatten().any(|name| name == marks::CONNECTION_FINALIZER);
    let deleting = connection.metadata.deletion_timestamp.is_some();
    match (dependents > 0, held) {
        (true, false) if !deleting => FinalizerChange::Add,
        (false, true) => FinalizerChange::Remove,
        _ => FinalizerChange::Keep,
    }
}

/// What a check learned of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCheck {
    /// FerrVault knows it.
    Accepted,
    /// Nothing: FerrVault has no cheap question for it in this mode, or did not answer it.
    NotTold,
}

/// What a check of a connection found.
#[derive(Clone, Debug)]
pub enum CheckReport {
    /// FerrVault answers and the token can be read.
    Reachable(TokenCheck),
    /// Something is wrong.
    Refused(Refusal),
    /// It is being deleted while these resources, sorted, still refer to it.
    DeletionBlocked(Vec<String>),
}

/// The status after a check and whether people are to be told.
pub fn render(
    connection: &FerrVaultConnection,
    report: &CheckReport,
    now: Timestamp,
) -> (FerrVaultConnectionStatus, Option<Transition>) {
    let mut status = connection.status.clone().unwrap_or_default();
    let (is_true, reason, message) = match report {
        CheckReport::Reachable(token) => (true, Reason::Reachable, reachable_message(&connection.spec.url, *token)),
        CheckReport::Refused(refusal) => (false, refusal.reason, refusal.message.clone()),
        CheckReport::DeletionBlocked(names) => (false, Reason::DeletionBlocked, blocked_message(names)),
    };
    let message = cut(message);
    let generation = connection.metadata.generation.unwrap_or_default();
    let new = condition_of(condition::READY, is_true, reason, message.clone(), generation, now);
    let changed = merge(&mut status.conditions, new);
    status.last_checked_at = Some(Time(now));
    (status, changed.then_some(Transition { type_: condition::READY, is_true, reason, message }))
}

/// Says what was proved and what was not: a token that is revoked shows where it is used.
fn reachable_message(url: &str, token: TokenCheck) -> String {
    match token {
        TokenCheck::Accepted => format!("{url} answers and accepts the token"),
        TokenCheck::NotTold => format!("{url} answers; whether it accepts the token shows on the resources"),
    }
}

fn blocked_message(names: &[String]) -> String {
    format!(
        "still used by FerrVaultSecret {}; it is deleted when they are gone or refer to another connection",
        some_of(names, NAMED_DEPENDENTS)
    )
}

#[cfg(test)]
mod tests;
