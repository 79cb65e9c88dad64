//! The sentences of conditions: what is wrong, then what to change, short enough for a terminal. Where a sentence has to
//! be cut, it is the list that goes and never the remedy. Names and times only, never a value.

use ferrvault_api::secret::{Rollout, RolloutState};
use ferrvault_api::{FerrVaultSecret, Reason};
use jiff::Timestamp;

use crate::refusal::Refusal;
use crate::restart::{DOES_NOT_EXIST, Look};

/// Longest message of a condition: it is read in a terminal, and three hundred workloads must not fill one.
pub(super) const MAX_MESSAGE: usize = 512;

/// So many names of one kind are spelled out: two lines of a terminal. The rest is in lists of the status, or countable.
const NAMED: usize = 10;

/// `a, b, c and 2 more`.
pub(crate) fn some_of<S: AsRef<str>>(names: &[S], at_most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(at_most).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(at_most);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &rest
}

/// The first of `names`, for a sentence.
pub(crate) fn named<S: AsRef<str>>(names: &[S]) -> String {
    some_of(names, NAMED)
}

pub(super) fn synced(resource: &FerrVaultSecret, keys: usize) -> String {
    let mut message = format!("{keys} key(s) synced into {}", resource.target_name());
    let mut names = resource.wanted_names().to_vec();
    names.sort();
    let mut repeated: Vec<&str> = names
        .windows(2)
        .filter_map(|pair| if let [a, b] = pair { (a == b).then_some(a.as_str()) } else { None })
        .collect();
    repeated.dedup();
    if !repeated.is_empty() {
        message = format!("{message}; spec.selector.names lists {} more than once", named(&repeated));
    }
    message
}

pub(super) fn paid(rollouts: &[Rollout]) -> String {
    if rollouts.is_empty() {
        return "nothing to restart: no workload is listed".to_owned();
    }
    let paused: Vec<String> = rollouts
        .iter()
        .filter(|entry| !entry.message.is_empty())
        // Nobody looks whether it was resumed since: what is said has to stay true then.
        .map(|entry| {
            let at = seconds(entry.since.0);
            format!("{}/{} was paused at {at}, and resuming it restarts its pods", entry.kind, entry.name)
        })
        .collect();
    let mut message = format!("{} workload(s) restarted", rollouts.len());
    for note in paused {
        message.push_str("; ");
        message.push_str(&note);
    }
    message
}

/// Nothing is owed. `look`: what was seen of the workloads in this pass, where it looked.
pub(super) fn at_rest(resource: &FerrVaultSecret, rollouts: &[Rollout], look: Option<&Look>) -> String {
    let listed = &resource.spec.rollout_restart;
    if listed.is_empty() {
        return paid(&[]);
    }
    let is_listed = |entry: &&Rollout| listed.iter().any(|w| w.kind == entry.kind && w.name == entry.name);
    let records: Vec<Rollout> = rollouts.iter().filter(is_listed).cloned().collect();
    let message = if records.is_empty() { "no restart is owed".to_owned() } else { paid(&records) };
    match look.map(looked) {
        Some(note) => before(message, &note),
        None => message,
    }
}

/// With the time, because nobody looks again until the list may have changed: it stays true however old it gets.
fn looked(look: &Look) -> String {
    let at = seconds(look.at);
    let mut notes = Vec::new();
    if !look.missing.is_empty() {
        let names: Vec<String> = look.missing.iter().map(ToString::to_string).collect();
        notes.push(format!("; at {at} {} did not exist: create it, or correct spec.rolloutRestart", named(&names)));
    }
    if let Some((workload, why)) = look.unreadable.first() {
        let more = look.unreadable.len().saturating_sub(1);
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        notes.push(format!("; at {at} {workload}{others} could not be looked at: {why}"));
    }
    notes.concat()
}

/// Why a restart is still owed: each workload that waits, why, and what to do.
pub(super) fn owed(rollouts: &[Rollout]) -> (Reason, String) {
    let waiting = || rollouts.iter().filter(|entry| entry.state != RolloutState::Restarted);
    let failed = waiting().any(|entry| entry.state == RolloutState::Failed);
    let missing = waiting().any(|entry| entry.message == DOES_NOT_EXIST);
    let (reason, remedy) = match (failed, missing) {
        (true, _) => (
            Reason::RolloutFailed,
            "; it is tried again until it works: mend what is said here, or take it out of spec.rolloutRestart",
        ),
        (false, true) => (Reason::RolloutPending, "; create it, or take it out of spec.rolloutRestart"),
        (false, false) => (Reason::RolloutPending, "; it is tried again"),
    };
    let lines: Vec<String> =
        waiting().map(|entry| format!("{}/{}: {}", entry.kind, entry.name, entry.message)).collect();
    (reason, before(lines.join("; "), remedy))
}

/// A restart is owed and nobody retries it, because what `refusal` says stands in the way of both.
pub(super) fn held(refusal: &Refusal) -> String {
    format!("a restart is owed and waits for what Ready says ({}); status.rollouts has each workload", refusal.reason)
}

/// RFC 3339 with whole seconds, as Kubernetes shows times.
fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// The last success is what tells how old the data is.
pub(super) fn with_last_success(message: &str, at: Timestamp) -> String {
    before(message.to_owned(), &format!("; last synced at {}", seconds(at)))
}

/// What fits into the message of a condition.
pub(crate) fn cut(message: String) -> String {
    cut_to(message, MAX_MESSAGE)
}

/// `message` before `tail`, which is what matters where not both fit.
fn before(message: String, tail: &str) -> String {
    cut_to(message, MAX_MESSAGE.saturating_sub(tail.chars().count())) + tail
}

fn cut_to(message: String, limit: usize) -> String {
    if message.chars().count() <= limit {
        return message;
    }
    let mut short: String = message.chars().take(limit.saturating_sub(1)).collect();
    short.push('…');
    short
}
