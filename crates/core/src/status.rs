//! From the outcome of a pass to the status it leaves: one function, one write.
//!
//! Holds I5 (Ready=True Synced only for what this pass proved; RolloutRestarted=True only when nothing is owed) and the
//! cheap half of I10: a pass that changed nothing writes two times and nothing else.

use ferrvault_api::secret::{Rollout, RolloutState};
use ferrvault_api::{FerrVaultSecret, FerrVaultSecretStatus, Reason, condition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::freshness::{self, Freshness};
use crate::refusal::Refusal;
use crate::restart::Settled;
use crate::sync::Change;
use crate::version::{Form, Version};

/// Longest message of a condition: it is read in a terminal, and three hundred workloads must not fill one.
const MAX_MESSAGE: usize = 512;

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
    let mut draft = Draft::of(resource, now);
    draft.sync(sync);
    draft.restart(restart);
    if let (SyncReport::Synced { version, .. }, RestartReport::NotDue) = (sync, restart) {
        draft.unsettled(version);
    }
    draft.ended();
    draft.finish()
}

/// The status of a pass that was cut at its deadline while it was at `step`.
///
/// `lastAttemptedAt` stays: that pass was not completed, and its standing still is what tells.
pub fn render_timeout(resource: &FerrVaultSecret, step: &str, deadline: &str, now: Timestamp) -> Rendered {
    let mut draft = Draft::of(resource, now);
    let message = format!("the pass was cut after {deadline} while {step}; it is tried again");
    draft.refuse(&Refusal::new(Reason::ReconcileTimeout, message));
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

struct Draft<'r> {
    resource: &'r FerrVaultSecret,
    before: FerrVaultSecretStatus,
    status: FerrVaultSecretStatus,
    generation: i64,
    now: Timestamp,
    transitions: Vec<Transition>,
}

impl<'r> Draft<'r> {
    fn of(resource: &'r FerrVaultSecret, now: Timestamp) -> Self {
        let before = resource.status.clone().unwrap_or_default();
        let generation = resource.metadata.generation.unwrap_or_default();
        Self { resource, status: before.clone(), before, generation, now, transitions: Vec::new() }
    }

    fn sync(&mut self, report: &SyncReport) {
        match report {
            SyncReport::NotDue => {}
            SyncReport::Synced { version, keys, change } => {
                self.status.last_synced_at = Some(Time(self.now));
                if change.is_new_content() || self.is_unrecorded(version, *change) {
                    self.status.last_changed_at = Some(Time(self.now));
                }
                self.status.content_hash = Some(version.as_str().to_owned());
                self.status.synced_keys.clone_from(keys);
                self.status.missing_keys.clear();
                self.status.observed_generation = Some(self.generation);
                let message = synced_message(self.resource, keys.len());
                self.set(condition::READY, true, Reason::Synced, message);
            }
            SyncReport::Refused(refusal) => self.refuse(refusal),
        }
    }

    /// Whether the target holds a version that no status tells of: written by a pass that did not live to report it, or
    /// by a write that was carried out without an answer.
    fn is_unrecorded(&self, version: &Version, change: Change) -> bool {
        match &self.before.content_hash {
            Some(known) => known != version.as_str(),
            // Before the first report: a version of ours that is there already came from a pass of ours. One of the Go
            // operator says nothing, and naming what was there changes nothing.
            None => change != Change::Adopted && matches!(version.form(), Form::Keyed { .. }),
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        if refusal.reason == Reason::MissingKeys {
            self.status.missing_keys.clone_from(&refusal.missing_keys);
        }
        let synced = self.before.observed_generation == Some(self.generation) && self.is_true(condition::READY);
        let stays_true = refusal.is_transient() && synced;
        let message = match &self.before.last_synced_at {
            Some(Time(at)) if refusal.is_transient() => with_last_success(&refusal.message, *at),
            _ => refusal.message.clone(),
        };
        self.set(condition::READY, stays_true, refusal.reason, message);
    }

    fn restart(&mut self, report: &RestartReport) {
        match report {
            RestartReport::NotDue => {}
            RestartReport::Baseline(version) => {
                self.status.last_rollout_hash = Some(version.as_str().to_owned());
                self.nothing_owed();
            }
            RestartReport::Nothing => self.nothing_owed(),
            RestartReport::Owed { current, settled } => {
                self.status.rollouts.clone_from(&settled.rollouts);
                if settled.paid {
                    self.status.last_rollout_hash = Some(current.as_str().to_owned());
                    let message = paid_message(&settled.rollouts);
                    self.set(condition::ROLLOUT_RESTARTED, true, Reason::Restarted, message);
                } else {
                    let (reason, message) = owed(&settled.rollouts);
                    self.set(condition::ROLLOUT_RESTARTED, false, reason, message);
                }
            }
        }
    }

    /// The target was proved to hold `version`, and the restart stage then could not tell how far the workloads are: a
    /// condition that is still True from an older version would not be true any more.
    fn unsettled(&mut self, version: &Version) {
        let last = self.status.last_rollout_hash.as_deref();
        if last.is_some_and(|last| last != version.as_str()) && self.is_true(condition::ROLLOUT_RESTARTED) {
            let message =
                "a restart is owed for the content of the target; the workloads are looked at again".to_owned();
            self.set(condition::ROLLOUT_RESTARTED, false, Reason::RolloutPending, message);
        }
    }

    /// True as it was, for this generation. Its first time is no news: nothing was restarted.
    fn nothing_owed(&mut self) {
        let before = self.status.conditions.iter().position(|c| c.type_ == condition::ROLLOUT_RESTARTED);
        match before.and_then(|index| self.status.conditions.get_mut(index)) {
            Some(condition) if condition.status == "True" => condition.observed_generation = Some(self.generation),
            found => {
                let is_new = found.is_none();
                self.set(condition::ROLLOUT_RESTARTED, true, Reason::Restarted, "no restart is owed".to_owned());
                if is_new {
                    self.transitions.pop();
                }
            }
        }
    }

    /// The end of a pass is what `Fresh` is about, so it goes into the same write and needs none of its own. That no pass
    /// ends is for the watchdog to say, which does not depend on passes.
    fn ended(&mut self) {
        self.status.last_attempted_at = Some(Time(self.now));
        let freshness = if self.resource.is_suspended() { Freshness::Suspended } else { Freshness::Current };
        let was_false = freshness::said(Some(&self.before)).is_some_and(|before| before.status == "False");
        let new = freshness::ended(self.resource, freshness, self.now);
        let told = Transition {
            type_: condition::FRESH,
            is_true: true,
            reason: freshness.reason(),
            message: new.message.clone(),
        };
        merge(&mut self.status.conditions, new);
        if was_false {
            self.transitions.push(told);
        }
    }

    fn is_true(&self, type_: &str) -> bool {
        self.status.conditions.iter().any(|c| c.type_ == type_ && c.status == "True")
    }

    fn set(&mut self, type_: &'static str, is_true: bool, reason: Reason, message: String) {
        let new = condition_of(type_, is_true, reason, cut(message), self.generation, self.now);
        if merge(&mut self.status.conditions, new.clone()) {
            self.transitions.push(Transition { type_, is_true, reason, message: new.message });
        }
    }

    fn finish(self) -> Rendered {
        let without_times = |status: &FerrVaultSecretStatus| FerrVaultSecretStatus {
            last_attempted_at: None,
            last_synced_at: None,
            ..status.clone()
        };
        let only_times = self.resource.status.is_some() && without_times(&self.before) == without_times(&self.status);
        let write = if only_times { Write::Heartbeat } else { Write::Full };
        Rendered { status: self.status, write, transitions: self.transitions }
    }
}

/// A condition as Kubernetes spells it.
pub fn condition_of(
    type_: &str,
    is_true: bool,
    reason: Reason,
    message: String,
    generation: i64,
    now: Timestamp,
) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: reason.as_str().to_owned(),
        message,
        observed_generation: Some(generation),
        last_transition_time: Time(now),
    }
}

/// Puts `new` in the place of the condition of its type, keeping the transition time while the status is the same.
/// Conditions of other types are other writers' and stay. Returns whether status or reason are another than before.
pub fn merge(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time.clone();
    }
    let changed = old.status != new.status || old.reason != new.reason;
    *old = new;
    changed
}

fn synced_message(resource: &FerrVaultSecret, keys: usize) -> String {
    let mut message = format!("{keys} key(s) synced into {}", resource.target_name());
    let mut names = resource.wanted_names().to_vec();
    names.sort();
    let mut repeated: Vec<&str> = names
        .windows(2)
        .filter_map(|pair| if let [a, b] = pair { (a == b).then_some(a.as_str()) } else { None })
        .collect();
    repeated.dedup();
    if !repeated.is_empty() {
        message = format!("{message}; spec.selector.names lists {} more than once", repeated.join(", "));
    }
    message
}

fn paid_message(rollouts: &[Rollout]) -> String {
    if rollouts.is_empty() {
        return "no workload is listed".to_owned();
    }
    let paused: Vec<String> = rollouts
        .iter()
        .filter(|entry| !entry.message.is_empty())
        .map(|entry| format!("{}/{} is paused", entry.kind, entry.name))
        .collect();
    let mut message = format!("{} workload(s) restarted", rollouts.len());
    for note in paused {
        message.push_str("; ");
        message.push_str(&note);
    }
    message
}

/// Why a restart is still owed: each workload that waits, and why.
fn owed(rollouts: &[Rollout]) -> (Reason, String) {
    let waiting = || rollouts.iter().filter(|entry| entry.state != RolloutState::Restarted);
    let failed = waiting().any(|entry| entry.state == RolloutState::Failed);
    let reason = if failed { Reason::RolloutFailed } else { Reason::RolloutPending };
    let lines: Vec<String> =
        waiting().map(|entry| format!("{}/{}: {}", entry.kind, entry.name, entry.message)).collect();
    (reason, lines.join("; "))
}

/// RFC 3339 with whole seconds, as Kubernetes shows times.
fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// What fits into the message of a condition.
pub(crate) fn cut(message: String) -> String {
    cut_to(message, MAX_MESSAGE)
}

fn cut_to(message: String, limit: usize) -> String {
    if message.chars().count() <= limit {
        return message;
    }
    let mut short: String = message.chars().take(limit.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// The last success is what tells how old the data is, so it is the refusal that is cut.
fn with_last_success(message: &str, at: Timestamp) -> String {
    let success = format!("; last synced at {}", seconds(at));
    cut_to(message.to_owned(), MAX_MESSAGE.saturating_sub(success.len())) + &success
}

#[cfg(test)]
mod tests;
