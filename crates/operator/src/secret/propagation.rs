//! How long a changed content took: from the answer that brought it to the target, and to the last of its workloads.
//!
//! Measured where it can be measured and left out elsewhere: a number that is guessed would hide the ones that are not.
//! Between passes the moment is remembered; after a restart of the process, `lastChangedAt` stands for it.

use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_core::status::RestartReport;
use jiff::Timestamp;
use tokio::time::Instant;

use super::due::Memory;
use crate::admin::metrics::{Metrics, Stage};

/// A new content on its way into the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    /// When FerrVault had answered.
    pub(super) seen: Instant,
    /// When the target held it.
    pub(super) written: Instant,
}

/// Tells the metrics how far the content came in this pass.
pub(super) fn tell(
    metrics: &Metrics,
    memory: &mut Memory,
    resource: &FerrVaultSecret,
    news: Option<News>,
    restart: &RestartReport,
    now: Timestamp,
) {
    if let Some(News { seen, written }) = news {
        metrics.propagated(Stage::Written, written.saturating_duration_since(seen));
        memory.change_seen = Some(seen);
    }
    match restart {
        // A resource without workloads has nothing to come to.
        RestartReport::Owed { current, settled } if settled.paid && !settled.rollouts.is_empty() => {
            let remembered = memory.change_seen.map(|seen| seen.elapsed());
            if let Some(after) = remembered.or_else(|| on_record(resource, current.as_str(), now)) {
                metrics.propagated(Stage::Restarted, after);
            }
            memory.change_seen = None;
        }
        RestartReport::Owed { settled, .. } if !settled.paid => {}
        RestartReport::Owed { .. } | RestartReport::Baseline(_) | RestartReport::Nothing => memory.change_seen = None,
        RestartReport::NotDue => {}
    }
}

/// How long ago the content changed by the status, if it is this version that the status speaks of.
fn on_record(resource: &FerrVaultSecret, version: &str, now: Timestamp) -> Option<Duration> {
    let status = resource.status.as_ref().filter(|status| status.content_hash.as_deref() == Some(version))?;
    Duration::try_from(now.duration_since(status.last_changed_at.as_ref()?.0)).ok()
}
