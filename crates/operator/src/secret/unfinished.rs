//! How a pass ends that does not come to its report: overtaken, cut at its deadline, or by a panic.
//!
//! Whatever it did is on the target and the workloads, and no record tells of it. So the next pass trusts nothing that was
//! kept and looks at both stages; what people have to know meanwhile is shown by a short write of its own.

use std::time::Duration;

use ferrvault_api::{FerrVaultSecret, Reason};
use ferrvault_core::duration::GoDuration;
use ferrvault_core::refusal::Refusal;
use ferrvault_core::status::{Rendered, RestartReport, SyncReport, render, render_panic, render_timeout};

use super::due::Memory;
use super::report::{decide_again, not_written, publish, write_status};
use crate::admin::metrics::{PassResult, SECRET_CONTROLLER};
use crate::cluster::error::CallError;
use crate::context::Context;
use crate::key::ObjectKey;
use crate::progress::Progress;

/// After this many passes in a row that found an object changed under them, somebody is told: two writers that fight
/// would otherwise do so in silence.
const FIGHT: u32 = 5;

/// A pass that could not even read its resource, or not take the former operator's finalizer off it. Its conditions are
/// older than they look, and there may be no resource any more to say so on: counted as a status that was not written.
pub(super) fn unsettled(ctx: &Context, key: &ObjectKey, mut memory: Memory, why: &str) -> Memory {
    decide_again(ctx, key, &mut memory);
    if ctx.leads() {
        tracing::warn!(%key, why, "pass ended early");
        ctx.metrics.error(Reason::StatusWriteFailed);
    } else {
        tracing::info!(%key, why, "pass ended early: this replica does not lead any more");
    }
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
    decide_again(ctx, key, &mut memory);
    tracing::debug!(%key, tried, "overtaken, deciding again from fresh reads");
    if memory.conflicts >= FIGHT {
        let message = format!("{tried}: changed by somebody else on each of {} tries", memory.conflicts);
        let sync = SyncReport::Refused(Refusal::passing(Reason::SecretWriteFailed, message));
        let rendered = render(resource, &sync, &RestartReport::NotDue, ctx.clock.now());
        match write_status(ctx, resource, &rendered).await {
            // What was asked for was tried, and why it failed is on record.
            Ok(()) => memory.awaited_since = None,
            Err(CallError::NotLeading) => return memory,
            Err(error) => tracing::debug!(%key, error = error.user_message(), "status not written"),
        }
        ctx.metrics.error(Reason::SecretWriteFailed);
    }
    memory
}

/// The pass was cut at its deadline while at `step`: counted, shown by a short write of its own, tried again. A process that
/// was frozen finds its passes late as well; they are another replica's by then, which tells how they go.
pub(super) async fn cut(ctx: &Context, key: &ObjectKey, mut memory: Memory, progress: &Progress) -> Memory {
    let step = progress.step();
    if !ctx.leads() {
        tracing::info!(%key, step, "pass cut at its deadline: this replica does not lead any more");
        memory.known = true;
        decide_again(ctx, key, &mut memory);
        return memory;
    }
    ctx.metrics.timeout(SECRET_CONTROLLER);
    ctx.metrics.error(Reason::ReconcileTimeout);
    ctx.metrics.pass_finished(PassResult::Timeout, ctx.deadline, ctx.clock.now());
    tracing::warn!(%key, step, deadline = ?ctx.deadline, "pass cut at its deadline");
    memory.known = true;
    // What the cut pass wrote last is unknown, so the next one trusts nothing it kept.
    decide_again(ctx, key, &mut memory);
    let Some(resource) = ctx.resources.get(key) else { return memory };
    let (deadline, lost) = (GoDuration::from(ctx.deadline).to_string(), progress.lost());
    let rendered = render_timeout(&resource, &step, &deadline, lost.as_deref(), ctx.clock.now());
    short_write(ctx, key, &resource, &mut memory, &rendered).await;
    memory
}

/// The pass panicked while it was at `step`: counted, shown by a short write of its own, tried again.
pub(super) async fn panicked(ctx: &Context, key: &ObjectKey, memory: Memory, step: &str) -> Memory {
    tracing::error!(%key, step, "a pass panicked");
    let mut memory = unreported(ctx, key, memory);
    let Some(resource) = ctx.resources.get(key) else { return memory };
    let rendered = render_panic(&resource, step, ctx.clock.now());
    short_write(ctx, key, &resource, &mut memory, &rendered).await;
    memory
}

/// A pass panicked: counted, and tried again with backoff.
pub(super) fn unreported(ctx: &Context, key: &ObjectKey, mut memory: Memory) -> Memory {
    ctx.metrics.panicked(SECRET_CONTROLLER);
    ctx.metrics.error(Reason::InternalError);
    ctx.metrics.pass_finished(PassResult::Error, Duration::ZERO, ctx.clock.now());
    memory.known = true;
    // What it wrote last is unknown, as with a pass that was cut.
    decide_again(ctx, key, &mut memory);
    memory
}

/// Shows how a pass ended that did not come to its report. Not repeated: the next pass writes more.
async fn short_write(
    ctx: &Context,
    key: &ObjectKey,
    resource: &FerrVaultSecret,
    memory: &mut Memory,
    rendered: &Rendered,
) {
    publish(ctx, resource, rendered);
    match write_status(ctx, resource, rendered).await {
        Err(error) if !error.is_conflict() && !error.is_not_found() && error != CallError::NotLeading => {
            not_written(ctx, key, resource, memory, &error);
        }
        _ => {}
    }
}
