//! The status while it is made: what was there before, changed by what each stage found, then compared.

use ferrvault_api::secret::RolloutState;
use ferrvault_api::{FerrVaultSecret, FerrVaultSecretStatus, Reason, condition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Rendered, RestartReport, SyncReport, Transition, Write, condition_of, cut, merge, messages};
use crate::freshness::{self, Freshness};
use crate::refusal::Refusal;
use crate::restart::Look;
use crate::sync::Change;
use crate::version::{Form, Version};

pub(super) struct Draft<'r> {
    resource: &'r FerrVaultSecret,
    before: FerrVaultSecretStatus,
    status: FerrVaultSecretStatus,
    generation: i64,
    now: Timestamp,
    transitions: Vec<Transition>,
}

impl<'r> Draft<'r> {
    pub(super) fn of(resource: &'r FerrVaultSecret, now: Timestamp) -> Self {
        let before = resource.status.clone().unwrap_or_default();
        let generation = resource.metadata.generation.unwrap_or_default();
        Self { resource, status: before.clone(), before, generation, now, transitions: Vec::new() }
    }

    pub(super) fn sync(&mut self, report: &SyncReport) {
        match report {
            SyncReport::NotDue => {}
            SyncReport::Synced { version, keys, change } => {
                self.status.last_synced_at = Some(Time(self.now));
                if change.is_new_content() || self.is_unrecorded(version, *change) {
                    self.status.last_changed_at = Some(Time(self.now));
                }
                self.status.content_hash = Some(version.as_str().to_owned());
                self.status.synced_target = Some(self.resource.target_name().to_owned());
                self.status.synced_keys.clone_from(keys);
                self.status.missing_keys.clear();
                self.status.observed_generation = Some(self.generation);
                let message = messages::synced(self.resource, keys.len());
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

    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        if refusal.reason == Reason::MissingKeys {
            self.status.missing_keys.clone_from(&refusal.missing_keys);
        }
        let synced = self.before.observed_generation == Some(self.generation) && self.is_true(condition::READY);
        let stays_true = refusal.leaves_ready() && synced;
        let message = match &self.before.last_synced_at {
            Some(Time(at)) if refusal.is_transient() => messages::with_last_success(&refusal.message, *at),
            _ => refusal.message.clone(),
        };
        self.set(condition::READY, stays_true, refusal.reason, message);
    }

    pub(super) fn restart(&mut self, report: &RestartReport, look: Option<&Look>) {
        match report {
            RestartReport::NotDue => {}
            RestartReport::Baseline(version) => {
                self.status.last_rollout_hash = Some(version.as_str().to_owned());
                self.nothing_owed(look);
            }
            RestartReport::Nothing => self.nothing_owed(look),
            RestartReport::Owed { current, settled } => {
                self.status.rollouts.clone_from(&settled.rollouts);
                if settled.paid {
                    self.status.last_rollout_hash = Some(current.as_str().to_owned());
                    let message = messages::paid(&settled.rollouts);
                    self.set(condition::ROLLOUT_RESTARTED, true, Reason::Restarted, message);
                } else {
                    let (reason, message) = messages::owed(&settled.rollouts);
                    self.set(condition::ROLLOUT_RESTARTED, false, reason, message);
                }
            }
        }
    }

    /// The target was proved to hold `version`, and the restart stage then could not tell how far the workloads are: a
    /// condition that is still True from an older version would not be true any more.
    pub(super) fn unsettled(&mut self, version: &Version) {
        let last = self.status.last_rollout_hash.as_deref();
        if last.is_some_and(|last| last != version.as_str()) && self.is_true(condition::ROLLOUT_RESTARTED) {
            let message =
                "a restart is owed for the content of the target; the workloads are looked at again".to_owned();
            self.set(condition::ROLLOUT_RESTARTED, false, Reason::RolloutPending, message);
        }
    }

    /// What `refusal` says keeps the restart stage from its work as well, and a debt that nobody retries has to say so.
    pub(super) fn held(&mut self, refusal: &Refusal) {
        let said =
            self.status.conditions.iter().find(|c| c.type_ == condition::ROLLOUT_RESTARTED && c.status == "False");
        let Some(reason) = said.map(|said| Reason::parse(&said.reason).unwrap_or(Reason::RolloutPending)) else {
            return;
        };
        self.set(condition::ROLLOUT_RESTARTED, false, reason, messages::held(refusal));
    }

    /// True as it was, word for word, until the resource or what was seen of its workloads is another. Its first time and
    /// other words are no news: nothing was restarted.
    fn nothing_owed(&mut self, look: Option<&Look>) {
        self.forgive();
        let said = self.status.conditions.iter().find(|c| c.type_ == condition::ROLLOUT_RESTARTED);
        let is_news = said.is_some_and(|said| said.status != "True");
        let stands =
            said.is_some_and(|said| said.status == "True" && said.observed_generation == Some(self.generation));
        if stands && look.is_none() {
            return;
        }
        let message = cut(messages::at_rest(self.resource, &self.status.rollouts, look));
        let told = Transition {
            type_: condition::ROLLOUT_RESTARTED,
            is_true: true,
            reason: Reason::Restarted,
            message: message.clone(),
        };
        let new = condition_of(told.type_, true, told.reason, message, self.generation, self.now);
        merge(&mut self.status.conditions, new);
        if is_news {
            self.transitions.push(told);
        }
    }

    /// The target came back under the version that its workloads were restarted for, so what was owed for another one in
    /// between is not. Hashes stay: they are facts of the protocol, and a record without one has none.
    fn forgive(&mut self) {
        self.status.rollouts.retain(|entry| entry.state == RolloutState::Restarted || !entry.hash.is_empty());
        for entry in self.status.rollouts.iter_mut().filter(|entry| entry.state != RolloutState::Restarted) {
            entry.state = RolloutState::Restarted;
            entry.since = Time(self.now);
            entry.message.clear();
        }
    }

    /// The end of a pass is what `Fresh` is about, so it goes into the same write and needs none of its own. That no pass
    /// ends is for the watchdog to say, which does not depend on passes.
    pub(super) fn ended(&mut self) {
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

    pub(super) fn finish(self) -> Rendered {
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
