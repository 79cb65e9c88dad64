//! From what became of a pass to one status write, events, metrics and the next wake.

use std::sync::Arc;

use ferrvault_api::secret::RolloutState;
use ferrvault_api::{FerrVaultSecret, FerrVaultSecretStatus, Reason, condition, marks};
use ferrvault_core::duration::GoDuration;
use ferrvault_core::refusal::{Refusal, Retry};
use ferrvault_core::schedule::{self, StillOwed};
use ferrvault_core::status::{Rendered, RestartReport, SyncReport, Write, render, render_with_look};
use ferrvault_core::sync::Change;
use tokio::time::Instant;

use super::due::{Memory, REPAIR_CAP};
use super::propagation::{self, News};
use super::restart;
use crate::admin::metrics::PassResult;
use crate::announce;
use crate::cluster::error::CallError;
use crate::context::Context;
use crate::key::ObjectKey;
use crate::progress::Progress;

/// What a pass found and did.
pub(super) struct Facts {
    pub(super) started: Instant,
    pub(super) resource: Arc<FerrVaultSecret>,
    pub(super) sync: SyncReport,
    pub(super) restart: restart::Ended,
    /// The target's resourceVersion, where the sync stage got as far.
    pub(super) target_version: Option<String>,
    /// The value of the annotation that asks for a pass, as read at its beginning; only where the sync stage was done.
    pub(super) request: Option<String>,
    /// When a new content was seen and written.
    pub(super) news: Option<News>,
}

/// Why the restart stage could not tell whether a restart is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unsettled {
    /// Somebody else was at work: normal.
    Overtaken,
    /// A read failed, and no condition says so: a metric and a line in the log do.
    Unread,
}

/// Writes the status, tells people and metrics, and says when to go on.
pub(super) async fn report(
    ctx: &Context,
    key: &ObjectKey,
    mut memory: Memory,
    facts: Facts,
    progress: &Progress,
) -> Memory {
    let Facts { started, resource, sync, restart, target_version, request, news } = facts;
    let (restart_report, look, unsettled) = match restart {
        restart::Ended::Report(report) => (report, None, None),
        restart::Ended::Looked(report, look) => (report, Some(look), None),
        restart::Ended::Overtaken(why) => {
            tracing::debug!(%key, why, "overtaken, deciding again from fresh reads");
            (RestartReport::NotDue, None, Some(Unsettled::Overtaken))
        }
        restart::Ended::Unread(why) => {
            tracing::warn!(%key, why, "whether a restart is owed cannot be told");
            (RestartReport::NotDue, None, Some(Unsettled::Unread))
        }
    };
    let rendered = render_with_look(&resource, &sync, &restart_report, look.as_ref(), ctx.clock.now())
        .answering(request.as_deref());
    if target_version.is_some() {
        memory.target_version = target_version;
    }
    plan_sync(ctx, &resource, &sync, &mut memory);
    plan_restart(ctx, &resource, &restart_report, unsettled, &mut memory);
    if matches!(&sync, SyncReport::Refused(refusal) if leaves_debt_unknown(refusal.reason)) {
        memory.restart_at = memory.restart_at.or(memory.sync_at);
    }
    memory.known = true;

    progress.at("writing the status");
    let written = write_status(ctx, &resource, &rendered).await;
    propagation::tell(&ctx.metrics, &mut memory, &resource, news, &restart_report, ctx.clock.now());
    if written == Err(CallError::NotLeading) {
        // No condition has changed, and what a replica ran into that had lost its right is no error: the next leader looks
        // for itself. Where the right was only late, this wake goes on.
        tracing::info!(%key, "pass ended without a record: this replica does not lead any more");
        decide_again(ctx, key, &mut memory);
        return memory;
    }
    let result = result_of(&sync, &restart_report, unsettled);
    ctx.metrics.pass_finished(result, started.elapsed(), ctx.clock.now());
    if unsettled == Some(Unsettled::Unread) {
        ctx.metrics.error(Reason::SecretReadFailed);
    }
    tell(ctx, key, &resource, &sync, &restart_report, &rendered);
    if result == PassResult::Success && written.is_ok() {
        memory.succeeded_at = Some(ctx.clock.now());
    }
    match written {
        Ok(()) => recorded(&mut memory),
        Err(error) => {
            // What this pass did is on the target and the workloads; only its record is missing. Look again soon. A
            // resource that is gone costs one look that finds nothing.
            let asked_to_wait =
                matches!(&sync, SyncReport::Refused(refusal) if matches!(refusal.retry, Retry::After(_)));
            let sync_at = memory.sync_at;
            decide_again(ctx, key, &mut memory);
            if asked_to_wait {
                memory.sync_at = sync_at;
            }
            if !error.is_conflict() && !error.is_not_found() {
                not_written(ctx, key, &resource, &mut memory, &error);
            }
        }
    }
    memory
}

/// A pass over a resource that is to be left alone: says so once, and leaves no wake.
pub(super) async fn suspended(
    ctx: &Context,
    key: &ObjectKey,
    mut memory: Memory,
    resource: &FerrVaultSecret,
    refusal: Refusal,
    progress: &Progress,
) -> Memory {
    memory.known = true;
    (memory.sync_at, memory.restart_at) = (None, None);
    (memory.sync_attempts, memory.restart_attempts) = (0, 0);
    let sync = SyncReport::Refused(refusal);
    let rendered = render(resource, &sync, &RestartReport::NotDue, ctx.clock.now());
    if rendered.write == Write::Heartbeat {
        recorded(&mut memory);
        return memory;
    }
    progress.at("writing the status");
    match write_status(ctx, resource, &rendered).await {
        Ok(()) => {
            log_transitions(key, &rendered);
            publish(ctx, resource, &rendered);
            recorded(&mut memory);
        }
        Err(CallError::NotFound) => {}
        Err(CallError::NotLeading) => decide_again(ctx, key, &mut memory),
        Err(error) => {
            decide_again(ctx, key, &mut memory);
            if !error.is_conflict() {
                not_written(ctx, key, resource, &mut memory, &error);
            }
        }
    }
    memory
}

/// The pass is on record: nobody waits for it any more.
fn recorded(memory: &mut Memory) {
    memory.conflicts = 0;
    memory.awaited_since = None;
    memory.told_of_status = false;
}

/// The conditions of the resource are older than they look, and none of them can say so: an event does, once.
pub(super) fn not_written(
    ctx: &Context,
    key: &ObjectKey,
    resource: &FerrVaultSecret,
    memory: &mut Memory,
    error: &CallError,
) {
    let detail = error.user_message_for("writing the status");
    tracing::warn!(%key, error = detail, "status not written");
    ctx.metrics.error(Reason::StatusWriteFailed);
    if !std::mem::replace(&mut memory.told_of_status, true) {
        announce::trouble(&ctx.events, resource, Reason::StatusWriteFailed, detail, "Report");
    }
}

/// Whether a restart may be owed that no status tells of. A write without an answer may have been carried out, and a
/// target that could not be read may hold what a former pass wrote.
fn leaves_debt_unknown(reason: Reason) -> bool {
    matches!(reason, Reason::SecretWriteFailed | Reason::SecretReadFailed)
}

/// Removes the finalizer that the Go operator added; without it nobody would, and the resource could never be deleted.
pub(super) async fn release_legacy_finalizer(
    ctx: &Context,
    resource: Arc<FerrVaultSecret>,
    progress: &Progress,
) -> Result<Arc<FerrVaultSecret>, CallError> {
    let held = resource.metadata.finalizers.iter().flatten();
    if !held.clone().any(|name| name == marks::LEGACY_SECRET_FINALIZER) {
        return Ok(resource);
    }
    progress.at("removing the former operator's finalizer");
    let kept: Vec<String> = held.filter(|name| *name != marks::LEGACY_SECRET_FINALIZER).cloned().collect();
    ctx.cluster.write_finalizers(resource.as_ref(), &kept).await.map(|renewed| ctx.keep(renewed))
}

/// The pass did not come to a record of what it did. Both stages are due soon, from fresh reads: a restart may be owed
/// that no status tells of, and FerrVault may be away just then.
pub(super) fn decide_again(ctx: &Context, key: &ObjectKey, memory: &mut Memory) {
    memory.conflicts = memory.conflicts.saturating_add(1);
    let kept = ctx.resources.get(key);
    let cap = kept.map_or(schedule::BACKOFF_CAP, |resource| ctx.cadence(&resource).backoff_cap());
    let delay = schedule::backoff(memory.conflicts, cap, ctx.entropy.jitter());
    let at = Some(Instant::now() + delay);
    (memory.sync_at, memory.restart_at) = (at, at);
    // Whoever was faster once is answered at once, whoever always is gets longer and longer pauses.
    memory.quiet_until = at.filter(|_| memory.conflicts > 1);
}

fn plan_sync(ctx: &Context, resource: &FerrVaultSecret, sync: &SyncReport, memory: &mut Memory) {
    let now = Instant::now();
    match sync {
        SyncReport::NotDue => {}
        SyncReport::Synced { change, .. } => {
            memory.sync_attempts = 0;
            memory.quiet_until = None;
            let repaired = matches!(change, Change::Repaired | Change::Recreated);
            if memory.held(repaired, now, ctx.entropy.jitter()) {
                put_back_later(ctx, resource);
            }
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

/// Somebody else keeps changing the target, and every pass finds it right or makes it so: no condition shows that it is
/// wrong in between.
fn put_back_later(ctx: &Context, resource: &FerrVaultSecret) {
    let (namespace, name, target) = (&resource.metadata.namespace, &resource.metadata.name, resource.target_name());
    let pause = GoDuration::from(REPAIR_CAP).to_string();
    tracing::warn!(
        namespace,
        resource = name,
        target,
        pause,
        "somebody else keeps changing the target; from now on it is put back after a pause, up to this long"
    );
    ctx.metrics.error(Reason::TargetConflict);
    let note = format!(
        "somebody else keeps changing Secret {target:?}; from now on it is put back after a pause of up to {pause}: find \
         out who writes it (kubectl get secret {target} -o yaml --show-managed-fields)"
    );
    announce::trouble(&ctx.events, resource, Reason::TargetConflict, note, "Sync");
}

fn plan_restart(
    ctx: &Context,
    resource: &FerrVaultSecret,
    report: &RestartReport,
    unsettled: Option<Unsettled>,
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

pub(super) async fn write_status(
    ctx: &Context,
    resource: &FerrVaultSecret,
    rendered: &Rendered,
) -> Result<(), CallError> {
    let before: Option<&FerrVaultSecretStatus> = resource.status.as_ref();
    let renewed = match rendered.write {
        Write::Heartbeat => ctx.cluster.write_heartbeat(resource, before, &rendered.status).await?,
        Write::Full => ctx.cluster.write_status(resource, before, &rendered.status).await?,
    };
    ctx.keep(renewed);
    Ok(())
}

/// A line only when the target was written.
pub(super) fn log_target(key: &ObjectKey, resource: &FerrVaultSecret, sync: &SyncReport, started: Instant) {
    let SyncReport::Synced { change, keys, .. } = sync else { return };
    if *change != Change::Unchanged {
        let (keys, took) = (keys.len(), started.elapsed());
        tracing::info!(%key, target = resource.target_name(), ?change, keys, ?took, "target written");
    }
}

/// Whether the pass came to what it is for.
fn result_of(sync: &SyncReport, restart: &RestartReport, unsettled: Option<Unsettled>) -> PassResult {
    let owed = matches!(restart, RestartReport::Owed { settled, .. } if !settled.paid);
    let unread = unsettled == Some(Unsettled::Unread);
    if owed || unread || matches!(sync, SyncReport::Refused(_)) { PassResult::Error } else { PassResult::Success }
}

/// Log, events and metrics: a line only when something changed.
fn tell(
    ctx: &Context,
    key: &ObjectKey,
    resource: &FerrVaultSecret,
    sync: &SyncReport,
    restart: &RestartReport,
    rendered: &Rendered,
) {
    if let SyncReport::Refused(refusal) = sync {
        ctx.metrics.error(refusal.reason);
    }
    if let RestartReport::Owed { settled, .. } = restart
        && settled.rollouts.iter().any(|rollout| rollout.state == RolloutState::Failed)
    {
        ctx.metrics.error(Reason::RolloutFailed);
    }
    log_transitions(key, rendered);
    publish(ctx, resource, rendered);
}

fn log_transitions(key: &ObjectKey, rendered: &Rendered) {
    for transition in &rendered.transitions {
        let (reason, detail) = (transition.reason, transition.message.as_str());
        if announce::is_good(transition) {
            tracing::info!(%key, condition = transition.type_, %reason, detail, "condition changed");
        } else {
            tracing::warn!(%key, condition = transition.type_, %reason, detail, "condition changed");
        }
    }
}

pub(super) fn publish(ctx: &Context, resource: &FerrVaultSecret, rendered: &Rendered) {
    for transition in &rendered.transitions {
        let action = match transition.type_ {
            condition::READY => "Sync",
            condition::FRESH => "Watch",
            _ => "Restart",
        };
        announce::condition_changed(&ctx.events, resource, transition, action);
    }
}
