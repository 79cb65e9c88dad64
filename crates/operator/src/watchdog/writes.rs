//! Writes what the watchdog has to say: few at a time, not for long, and what is refused is left alone for a while.
//!
//! A server that hangs must not keep the watchdog from coming round to the others, and one that refuses must not be asked
//! ten thousand times every few seconds.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use ferrvault_api::{FerrVaultSecret, FerrVaultSecretStatus};
use ferrvault_core::freshness;
use futures::StreamExt;
use tokio::time::Instant;

use super::Finding;
use crate::announce;
use crate::cluster::access::Cluster;
use crate::cluster::error::CallError;
use crate::context::Context;
use crate::key::ObjectKey;

/// Writes in flight: at 10 ms each 400 a second, and of a server that passes also write to an eighth at most (32).
const IN_FLIGHT: usize = 4;

/// For one round. What does not fit goes first in the next one.
const ROUND: Duration = Duration::from_secs(20);

/// After so many failures a round ends: the next resource would fail as well.
const FAILURES: usize = 8;

/// A resource on which a write failed is left alone for this long. With eight failures in a round of 5 s, at most 96
/// writes a minute are in vain.
const AFTER_FAILURE: Duration = Duration::from_mins(1);

pub(super) struct Writes {
    ctx: Arc<Context>,
    cluster: Cluster,
    /// Where the last round ended.
    reached: Option<ObjectKey>,
    not_before: BTreeMap<ObjectKey, Instant>,
    /// Whether it was logged that writes fail.
    told: bool,
}

impl Writes {
    pub(super) fn new(ctx: Arc<Context>, cluster: Cluster) -> Self {
        Self { ctx, cluster, reached: None, not_before: BTreeMap::new(), told: false }
    }

    /// One round.
    pub(super) async fn carry_out(&mut self, findings: Vec<Finding>) {
        let now = Instant::now();
        self.not_before.retain(|_, until| *until > now);
        let mut due: BTreeMap<ObjectKey, Finding> = findings
            .into_iter()
            .filter(|finding| !self.not_before.contains_key(&finding.key))
            .map(|finding| (finding.key.clone(), finding))
            .collect();
        // First what the last round did not come to.
        let behind = self.reached.as_ref().map(|reached| {
            let behind = due.range((Bound::Excluded(reached), Bound::Unbounded)).next().map(|(key, _)| key.clone());
            behind.map(|key| due.split_off(&key)).unwrap_or_default()
        });
        let ordered = behind.into_iter().flatten().chain(due).map(|(_, finding)| finding);
        let (ctx, cluster) = (Arc::clone(&self.ctx), self.cluster.clone());
        let mut results = futures::stream::iter(ordered)
            .map(|finding| {
                let (ctx, cluster) = (&ctx, &cluster);
                async move {
                    let written = write(ctx, cluster, &finding).await;
                    (finding, written)
                }
            })
            .buffer_unordered(IN_FLIGHT);
        let mut failures = 0;
        let round = async {
            while let Some((finding, written)) = results.next().await {
                match written {
                    Ok(()) => self.told = false,
                    Err(error) => {
                        failures += 1;
                        self.failed(&finding, &error);
                    }
                }
                self.reached = Some(finding.key);
                if failures >= FAILURES {
                    break;
                }
            }
        };
        // What is cut off in flight is found wanting again at the next look.
        let _ = tokio::time::timeout(ROUND, round).await;
    }

    fn failed(&mut self, finding: &Finding, error: &CallError) {
        self.not_before.insert(finding.key.clone(), Instant::now() + AFTER_FAILURE);
        let (key, error) = (&finding.key, error.user_message_for("writing the condition Fresh"));
        if std::mem::replace(&mut self.told, true) {
            tracing::debug!(%key, error, "not written either");
        } else {
            tracing::warn!(%key, freshness = ?finding.freshness, error, "the watchdog cannot say so on the resource");
        }
    }
}

/// Says it on one resource. What was overtaken by a pass need not be said any more.
async fn write(ctx: &Context, cluster: &Cluster, finding: &Finding) -> Result<(), CallError> {
    match say(ctx, cluster, finding, &finding.resource).await {
        // The store may be behind: a watch that is dead is one of the things that this is about.
        Err(CallError::Conflict) => {}
        Err(CallError::NotFound | CallError::NotLeading) => return Ok(()),
        result => return result,
    }
    let Some(current) = cluster.read_own::<FerrVaultSecret>(&finding.key).await? else { return Ok(()) };
    let attempted = |resource: &FerrVaultSecret| {
        let status = resource.status.as_ref();
        (resource.metadata.uid.clone(), status.and_then(|status| status.last_attempted_at.clone()))
    };
    if attempted(&current) != attempted(&finding.resource) {
        return Ok(());
    }
    match say(ctx, cluster, finding, &current).await {
        Err(CallError::Conflict | CallError::NotFound | CallError::NotLeading) => Ok(()),
        result => result,
    }
}

async fn say(ctx: &Context, cluster: &Cluster, finding: &Finding, resource: &FerrVaultSecret) -> Result<(), CallError> {
    let Finding { key, freshness, interval, ages, .. } = finding;
    let rendered = freshness::render(resource, *freshness, *interval, *ages, ctx.clock.now());
    let Some((status, told)) = rendered else { return Ok(()) };
    let before: Option<&FerrVaultSecretStatus> = resource.status.as_ref();
    let renewed = cluster.write_status(resource, before, &status).await?;
    ctx.keep(renewed);
    if let Some(transition) = told {
        let (reason, detail) = (transition.reason, transition.message.as_str());
        if announce::is_good(&transition) {
            tracing::info!(%key, condition = transition.type_, %reason, detail, "condition changed");
        } else {
            tracing::warn!(%key, condition = transition.type_, %reason, detail, "condition changed");
        }
        announce::condition_changed(&ctx.events, resource, &transition, "Watch");
    }
    Ok(())
}
