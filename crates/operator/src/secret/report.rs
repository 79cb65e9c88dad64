//! From what became of a pass to one status write, events, metrics and the next wake.

use std::sync::Arc;
use std::time::Duration;

use ferrvault_api::secret::RolloutState;
use ferrvault_api::{FerrVaultSecret, FerrVaultSecretStatus, Reason, marks};
use ferrvault_core::duration::GoDuration;
use ferrvault_core::refusal::{Refusal, Retry};
use ferrvault_core::schedule::{self, StillOwed};
use ferrvault_core::status::{Rendered, RestartReport, SyncReport, Write, render, render_timeout};
use ferrvault_core::sync::Change;
use tokio::time::Instant;

use super::due::Memory;
use super::restart;
use crate::admin::metrics::{PassResult, SECRET_CONTROLLER};
use crate::announce;
use crate::cluster::error::CallError;
use crate::context::Context;
use crate::key::ObjectKey;
use crate::progress::Progress;

/// After this many passes in a row that found an object changed under them, somebody is told: two writers that fight
/// would otherwise do so in silence.
const FIGHT: u32 = 5;

/// What a pass found and did.
pub(super) struct Facts {
    pub(super) started: Instant,
    pub(super) resource: Arc<FerrVaultSecret>,
    pub(super) sync: SyncReport,
    pub(super) restart: restart::Ended,
    /// The target's resourceVersion, where the sync stage got as far.
    pub(super) target_version: Option<String>,
}

/// Writes the status, tells people and metrics, and says when to go on.
pub(super) async fn report(
    ctx: &Context,
    key: &ObjectKey,
    mut memory: Memory,
    facts: Facts,
    progress: &Progress,
) -> Memory {
    let Facts { started, resource, sync, restart, target_version } = facts;
    let (restart_report, unsettled) = match restart {
        restart::Ended::Report(report) => (report, None),
        restart::Ended::Unsettled(why) => (RestartReport::NotDue, Some(why)),
    };
    let rendered = render(&resource, &sync, &restart_report, ctx.clock.now());
    if target_version.is_some() {
        memory.target_version = target_version;
    }
    plan_sync(ctx, &resource, &sync, &mut memory);
    plan_restart(ctx, &resource, &restart_report, unsettled.as_deref(), &mut memory);
    if matches!(&sync, SyncReport::Refused(refusal) if refusal.reason == Reason::SecretWriteFailed) {
        // A write without an answer may have been carried out, and then a restart is owed that no status tells of.
        memory.restart_at = memory.restart_at.or(memory.sync_at);
    }
    memory.known = true;

    progress.at("writing the status");
    let written = write_status(ctx, &resource, &rendered).await;
    tell(ctx, key, &resource, &sync, &restart_report, &rendered, started);
    match written {
        Ok(()) => memory.conflicts = 0,
        Err(CallError::NotFound | CallError::NotLeading) => {}
        Err(error) => {
            // What this pass did is on the target and the workloads; only its record is missing. Look again soon.
            let asked_to_wait =
                matches!(&sync, SyncReport::Refused(refusal) if matches!(refusal.retry, Retry::After(_)));
            let sync_at = memory.sync_at;
            decide_again(ctx, &mut memory);
            if asked_to_wait {
                memory.sync_at = sync_at;
            }
            if !error.is_conflict() {
                tracing::warn!(%key, error = error.user_message_for("writing the status"), "status not written");
            }
        }
    }
    memory
}

/// A pass that could not even read its resource, or whose objects keep changing.
pub(super) fn unsettled(ctx: &Context, key: &ObjectKey, mut memory: Memory, why: &str) -> Memory {
    decide_again(ctx, &mut memory);
    tracing::warn!(%key, why, "pass ended early");
    memory
}

/// A write was refused because its object is no longer the one that was read: decide again from fresh reads. Normal, so
/// nothing is written and nothing counted, until it goes on for too long.
pub(super) async fn overtaken(
    ctx: &Context,
    key: &ObjectKey,
    resource: &FerrVaultSecret,
    mut memory: Memory,
    tried: &str,
) -> Memory {
    decide_again(ctx, &mut memory);
    tracing::debug!(%key, tried, "overtaken, deciding again from fresh reads");
    if memory.conflicts >= FIGHT {
        let message = format!("{tried}: changed by somebody else on each of {} tries", memory.conflicts);
        let sync = SyncReport::Refused(Refusal::passing(Reason::SecretWriteFailed, message));
        let rendered = render(resource, &sync, &RestartReport::NotDue, ctx.clock.now());
        if let Err(error) = write_status(ctx, resource, &rendered).await {
            tracing::debug!(%key, error = error.user_message(), "status not written");
        }
        ctx.metrics.error(Reason::SecretWriteFailed);
    }
    memory
}

/// The pass was cut at its deadline while at `step`: counted, shown by a short write of its own, tried again.
pub(super) async fn cut(ctx: &Context, key: &ObjectKey, mut memory: Memory, step: &str) -> Memory {
    ctx.metrics.timeout(SECRET_CONTROLLER);
    ctx.metrics.error(Reason::ReconcileTimeout);
    ctx.metrics.pass_finished(PassResult::Timeout, ctx.deadline, ctx.clock.now());
    tracing::warn!(%key, step, deadline = ?ctx.deadline, "pass cut at its deadline");
    memory.known = true;
    // What the cut pass wrote last is unknown, so the next one trusts nothing it kept.
    decide_again(ctx, &mut memory);
    let Some(resource) = ctx.resources.get(key) else { return memory };
    let deadline = GoDuration::from_nanos(i64::try_from(ctx.deadline.as_nanos()).unwrap_or(i64::MAX)).to_string();
    let rendered = render_timeout(&resource, step, &deadline, ctx.clock.now());
    publish(ctx, &resource, &rendered);
    if let Err(error) = write_status(ctx, &resource, &rendered).await {
        tracing::warn!(%key, error = error.user_message_for("writing the status"), "status not written");
    }
    memory
}

/// A pass panicked: counted, logged by the queue, tried again with backoff.
pub(super) fn panicked(ctx: &Context, mut memory: Memory) -> Memory {
    ctx.metrics.pass_finished(PassResult::Error, Duration::ZERO, ctx.clock.now());
    decide_again(ctx, &mut memory);
    memory
}

/// Removes the finalizer that the Go operator added; without it nobody would, and the resource could never be deleted.
pub(super) async fn release_legacy_finalizer(
    ctx: &Context,
    resource: Arc<FerrVaultSecret>,
    progress: &Progress,
) -> Result<Arc<FerrVaultSecret>, String> {
    let held = resource.metadata.finalizers.iter().flatten();
    if !held.clone().any(|name| name == marks::LEGACY_SECRET_FINALIZER) {
        return Ok(resource);
    }
    progress.at("removing the former operator's finalizer");
    let kept: Vec<String> = held.filter(|name| *name != marks::LEGACY_SECRET_FINALIZER).cloned().collect();
    match ctx.cluster.write_finalizers(resource.as_ref(), &kept).await {
        Ok(renewed) => Ok(ctx.keep(renewed)),
        Err(error) => Err(error.user_message_for("removing the finalizer of the former operator")),
    }
}

/// The pass did not come to a record of what it did. Both stages are due soon, from fresh reads: a restart may be owed
/// that no status tells of, and FerrVault may be away just then.
fn decide_again(ctx: &Context, memory: &mut Memory) {
    memory.conflicts = memory.conflicts.saturating_add(1);
    let delay = schedule::backoff(memory.conflicts, schedule::BACKOFF_CAP, ctx.entropy.jitter());
    let at = Some(Instant::now() + delay);
    (memory.sync_at, memory.restart_at) = (at, at);
}

fn plan_sync(ctx: &Context, resource: &FerrVaultSecret, sync: &SyncReport, memory: &mut Memory) {
    let now = Instant::now();
    match sync {
        SyncReport::NotDue => {}
        SyncReport::Synced { .. } => {
            memory.sync_attempts = 0;
            memory.sync_at =
                schedule::refresh(ctx.cadence(resource), ctx.entropy.jitter()).and_then(|delay| now.checked_add(delay));
        }
        SyncReport::Refused(refusal) => {
            memory.sync_attempts += 1;
            let delay = schedule::retry(refusal, memory.sync_attempts, ctx.cadence(resource), ctx.entropy.jitter());
            memory.sync_at = now.checked_add(delay);
        }
    }
}

fn plan_restart(
    ctx: &Context,
    resource: &FerrVaultSecret,
    report: &RestartReport,
    unsettled: Option<&str>,
    memory: &mut Memory,
) {
    let owed = match report {
        RestartReport::Owed { settled, .. } if !settled.paid => {
            let failed = settled.rollouts.iter().any(|entry| entry.state == RolloutState::Failed);
            Some(if failed { StillOwed::Failed } else { StillOwed::Waiting })
        }
        _ if unsettled.is_some() => Some(StillOwed::Waiting),
        _ => None,
    };
    let Some(owed) = owed else {
        memory.restart_attempts = 0;
        memory.restart_at = None;
        return;
    };
    memory.restart_attempts += 1;
    let delay = schedule::restart_retry(owed, memory.restart_attempts, ctx.cadence(resource), ctx.entropy.jitter());
    memory.restart_at = Some(Instant::now() + delay);
}

async fn write_status(ctx: &Context, resource: &FerrVaultSecret, rendered: &Rendered) -> Result<(), CallError> {
    let before: Option<&FerrVaultSecretStatus> = resource.status.as_ref();
    let renewed = match rendered.write {
        Write::Heartbeat => ctx.cluster.write_heartbeat(resource, before, &rendered.status).await?,
        Write::Full => ctx.cluster.write_status(resource, before, &rendered.status).await?,
    };
    ctx.keep(renewed);
    Ok(())
}

/// Log, events and metrics: a line only when something changed.
fn tell(
    ctx: &Context,
    key: &ObjectKey,
    resource: &FerrVaultSecret,
    sync: &SyncReport,
    restart: &RestartReport,
    rendered: &Rendered,
    started: Instant,
) {
    let took = started.elapsed();
    let rollout_failed = matches!(restart, RestartReport::Owed { settled, .. } if !settled.paid);
    match sync {
        SyncReport::Synced { change, keys, .. } => {
            if *change != Change::Unchanged {
                let keys = keys.len();
                tracing::info!(%key, target = resource.target_name(), ?change, keys, took = ?took, "target written");
            }
        }
        SyncReport::Refused(refusal) => ctx.metrics.error(refusal.reason),
        SyncReport::NotDue => {}
    }
    if rollout_failed {
        ctx.metrics.error(Reason::RolloutFailed);
    }
    let failed = rollout_failed || matches!(sync, SyncReport::Refused(_));
    let result = if failed { PassResult::Error } else { PassResult::Success };
    ctx.metrics.pass_finished(result, took, ctx.clock.now());
    for transition in &rendered.transitions {
        let (reason, detail) = (transition.reason, transition.message.as_str());
        if transition.is_true {
            tracing::info!(%key, condition = transition.type_, %reason, detail, "condition changed");
        } else {
            tracing::warn!(%key, condition = transition.type_, %reason, detail, "condition changed");
        }
    }
    publish(ctx, resource, rendered);
}

fn publish(ctx: &Context, resource: &FerrVaultSecret, rendered: &Rendered) {
    for transition in &rendered.transitions {
        let action = if transition.type_ == ferrvault_api::condition::READY { "Sync" } else { "Restart" };
        announce::condition_changed(&ctx.events, resource, transition, action);
    }
}
