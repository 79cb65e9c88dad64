//! The controller of resources: one pass, two stages, one report.
//!
//! ```text
//! due ─▶ resource ─▶ sync stage ─▶ restart stage ─▶ status, events, metrics ─▶ next wake
//! ```
//!
//! Whatever a stage ends in, the report is written and a next wake is left (I7). A pass that hangs is cut at its deadline,
//! one that panics is caught; either is shown on the resource by a short write of its own, and tried again. A suspended
//! resource is left alone and has no wake: the edit that ends it is one.

mod due;
mod propagation;
mod report;
mod restart;
mod sync;
mod unfinished;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ferrvault_api::{FerrVaultSecret, Reason};
use ferrvault_core::status::{RestartReport, SyncReport};
use ferrvault_core::sync::checks;
use futures::FutureExt;
use tokio::time::Instant;

pub use self::due::{Due, Memories};
use self::due::{Memory, Stages};
use crate::connection;
use crate::context::Context;
use crate::ferrvault::{nothing_is_left, token_was_refused};
use crate::key::ObjectKey;
use crate::progress::Progress;
use crate::queue::Next;

/// One pass over the resource called `key`.
pub async fn pass(ctx: Arc<Context>, key: ObjectKey, due: Due) -> Next<Due> {
    let now = Instant::now();
    let mut memory = ctx.memories.of(&key);
    let Some(stages) = memory.stages(&due, now) else {
        memory.put_off(&due);
        let next = wake(&memory);
        ctx.memories.keep(&key, memory);
        return next;
    };
    memory.begin(&due);
    let progress = Progress::default();
    // What a panic leaves half done is the pass's own state, which is dropped with it.
    let whole = AssertUnwindSafe(whole(&ctx, &key, stages, memory.clone(), &progress)).catch_unwind();
    let memory = match tokio::time::timeout(ctx.deadline, whole).await {
        Ok(Ok(Some(memory))) => memory,
        Ok(Ok(None)) => {
            ctx.memories.forget(&key);
            return Next::Done;
        }
        // The payload is dropped unread: it may hold anything. Where it happened was logged by the panic hook.
        Ok(Err(_)) => unfinished::panicked(&ctx, &key, memory, &progress.step()).await,
        Err(_) => unfinished::cut(&ctx, &key, memory, &progress).await,
    };
    let next = wake(&memory);
    ctx.memories.keep(&key, memory);
    next
}

/// The next pass, when the earlier of the two stages is due.
fn wake(memory: &Memory) -> Next<Due> {
    let Some(at) = memory.next() else { return Next::Done };
    Next::Wake { after: at.saturating_duration_since(Instant::now()), work: memory.wake() }
}

/// The next pass after one whose very report panicked: as after one that was cut.
pub fn after_panic(ctx: &Context, key: &ObjectKey) -> Next<Due> {
    if ctx.resources.get(key).is_none() {
        return Next::Done;
    }
    let memory = unfinished::unreported(ctx, key, ctx.memories.of(key));
    let next = wake(&memory);
    ctx.memories.keep(key, memory);
    next
}

/// The pass itself; `None` when the resource is gone.
async fn whole(ctx: &Context, key: &ObjectKey, stages: Stages, memory: Memory, progress: &Progress) -> Option<Memory> {
    let started = Instant::now();
    progress.at("reading the resource");
    let resource = match read_resource(ctx, key, stages.fresh).await {
        Ok(found) => found?,
        Err(why) => return Some(unfinished::unsettled(ctx, key, memory, &why)),
    };
    let tried = "removing the finalizer of the former operator";
    let mut resource = match report::release_legacy_finalizer(ctx, Arc::clone(&resource), progress).await {
        Ok(renewed) => renewed,
        Err(error) if error.is_conflict() || error.is_not_found() => {
            return Some(unfinished::overtaken(ctx, key, &resource, memory, tried).await);
        }
        Err(error) => return Some(unfinished::unsettled(ctx, key, memory, &error.user_message_for(tried))),
    };
    if resource.metadata.deletion_timestamp.is_some() {
        return None;
    }
    if let Some(refusal) = checks::suspended(&resource) {
        return Some(report::suspended(ctx, key, memory, &resource, refusal, progress).await);
    }
    let request = resource.refresh_request().filter(|_| stages.sync).map(str::to_owned);

    let (sync, mut held, target_is_ours) = if stages.sync {
        let ended = sync::run(ctx, &resource, memory.conflicts, progress).await;
        nothing_is_left();
        match ended {
            Ok(held) => {
                progress.target_is_right();
                let report =
                    SyncReport::Synced { version: held.version.clone(), keys: held.keys.clone(), change: held.change };
                // Before the restarts that follow from it have lines of their own.
                report::log_target(key, &resource, &report, started);
                (report, Some(held), true)
            }
            Err(sync::Ended::Refused { refusal, target_is_ours, renewed }) => {
                if refusal.reason == Reason::AuthFailed && token_was_refused() {
                    connection::doubt(ctx, &key.beside(resource.spec.connection_ref.name.as_str()));
                }
                resource = renewed.unwrap_or(resource);
                (SyncReport::Refused(refusal), None, target_is_ours)
            }
            Err(sync::Ended::Overtaken(tried)) => {
                return Some(unfinished::overtaken(ctx, key, &resource, memory, &tried).await);
            }
            // Another term begins with a pass over everything; where the right was only late, this wake goes on.
            Err(sync::Ended::NotLeading) => {
                let mut memory = memory;
                report::decide_again(ctx, key, &mut memory);
                return Some(memory);
            }
        }
    } else {
        (SyncReport::NotDue, None, true)
    };
    let resource = held.as_ref().map_or(resource, |held| Arc::clone(&held.resource));

    let look_for_debt = held.is_some() || stages.restart || restart_may_be_owed(&resource);
    let restart = if look_for_debt && target_is_ours {
        restart::run(ctx, &resource, held.as_mut(), progress).await
    } else {
        restart::Ended::Report(RestartReport::NotDue)
    };
    let news = held.as_ref().and_then(|held| held.news);
    let seen = held.map(|held| held.resource_version);
    let facts = report::Facts { started, resource, sync, restart, target_version: seen, request, news };
    Some(report::report(ctx, key, memory, facts, progress).await)
}

async fn read_resource(ctx: &Context, key: &ObjectKey, fresh: bool) -> Result<Option<Arc<FerrVaultSecret>>, String> {
    let kept = ctx.resources.get(key);
    if !fresh || kept.is_none() {
        return Ok(kept);
    }
    match ctx.cluster.read_own::<FerrVaultSecret>(key).await {
        Ok(Some(found)) => Ok(Some(ctx.keep(found))),
        // One answer does not end the passes over a resource that the watch has not seen go: a server that has just started
        // may not know the kind yet. If it is gone, the watch says so, and the next look finds nothing.
        Ok(None) => Err("reading the resource: it was not found, and no watch has seen it go".to_owned()),
        Err(error) => Err(error.user_message_for("reading the resource")),
    }
}

/// Whether the status by itself tells of a debt, for passes whose sync stage did not get as far as the target.
fn restart_may_be_owed(resource: &FerrVaultSecret) -> bool {
    let Some(status) = &resource.status else { return false };
    let settled = status
        .conditions
        .iter()
        .any(|condition| condition.type_ == ferrvault_api::condition::ROLLOUT_RESTARTED && condition.status == "True");
    status.last_rollout_hash.is_some() && (!settled || status.content_hash != status.last_rollout_hash)
}
