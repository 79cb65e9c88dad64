//! I5: what a status says when it is written.

use std::time::Duration;

use ferrvault_testkit::{EPOCH_SECONDS, WriteRecord};
use jiff::Timestamp;

use super::{Answer, Books, Invariant};
use crate::cast::Resource;

/// A status spells times in whole seconds or finer.
const ROUNDING: Duration = Duration::from_secs(1);
/// The longest pass: its answer is not older than this when the status is written.
const LONGEST_PASS: Duration = Duration::from_secs(140);

impl Books {
    pub(super) fn status_written(&mut self, write: &WriteRecord, uid: &str, before: Option<&Resource>) {
        let Some(keeper) = self.keepers.get(uid) else { return };
        let observed = keeper.as_observed().clone();
        let status = keeper.resource.status.clone();
        let was = before.map(|before| before.status.clone()).unwrap_or_default();
        let what = format!("the status of {}/{}", write.namespace, write.name);
        let mut wrong = Vec::new();
        if status.last_synced != was.last_synced
            && let Some(at) = status.last_synced
            && !self.was_deceived(&write.who, write.at)
            && !self.was_true_at(&observed, since_epoch(at))
        {
            wrong.push(format!("{what} says synced at {at}, when the target was not what FerrVault had answered"));
        }
        if status.last_rollout != was.last_rollout
            && was.last_rollout.is_some()
            && let Some(version) = &status.last_rollout
            && !keeper.is_paid(version)
        {
            wrong.push(format!("{what} says that every workload was restarted, and one was not"));
        }
        let settled = status.says("Ready", "True", "Synced") && status.says("RolloutRestarted", "True", "Restarted");
        if settled && status.content_hash != status.last_rollout && !self.was_deceived(&write.who, write.at) {
            wrong.push(format!("{what} says Synced and Restarted, and of two versions"));
        }
        for what in wrong {
            self.violate(write.at, Invariant::I5, what);
        }
    }

    /// Whether what a process writes now follows from a read that was answered from before. Nobody can tell such an
    /// answer from a true one; at rest the status has to be true all the same.
    fn was_deceived(&self, who: &str, at: Duration) -> bool {
        self.deceived.iter().any(|(deceived, since)| deceived == who && *since <= at && *since + LONGEST_PASS >= at)
    }

    /// Whether some process had an answer at `at` that the target equalled since it came.
    fn was_true_at(&self, resource: &Resource, at: Duration) -> bool {
        let until = at + ROUNDING;
        let asked = |(_, answer): &(usize, &Answer)| {
            answer.vault == resource.vault
                && same_names(&answer.names, &resource.names)
                && answer.at <= until
                && answer.at + LONGEST_PASS >= at
        };
        // The last one of each process: what it was answered before is no longer what it knows.
        let mut last: Vec<(usize, &Answer)> = Vec::new();
        for (place, answer) in self.answers.iter().enumerate().filter(asked) {
            last.retain(|(_, earlier)| earlier.who != answer.who || earlier.at + ROUNDING >= at);
            last.push((place, answer));
        }
        let history = self.secrets.get(&(resource.namespace.clone(), resource.target.clone()));
        let history = history.map(Vec::as_slice).unwrap_or_default();
        last.into_iter().any(|(place, answer)| {
            let wanted = resource.wanted(&answer.content);
            // The target was read before FerrVault was asked (rule 4), and need not have been the same since. The restart
            // stage reads it again, in the same instant.
            let looks = self.looks.iter().filter(|look| look.who == answer.who && look.answers <= place);
            let looks = looks.filter(|look| look.namespace == resource.namespace && look.name == resource.target);
            let since = looks.map(|look| look.at).max().unwrap_or(answer.at);
            let ends = history.iter().skip(1).map(|(at, _)| *at).chain([Duration::MAX]);
            history.iter().zip(ends).any(|((from, secret), to)| {
                let holds = secret.as_ref().is_some_and(|secret| Some(&secret.content) == wanted.as_ref());
                holds && *from <= until && to >= since
            })
        })
    }
}

fn same_names(asked: &[String], wanted: &[String]) -> bool {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    sorted(asked) == sorted(wanted)
}

fn since_epoch(at: Timestamp) -> Duration {
    let epoch = Timestamp::from_second(EPOCH_SECONDS).unwrap_or_default();
    at.duration_since(epoch).unsigned_abs()
}
