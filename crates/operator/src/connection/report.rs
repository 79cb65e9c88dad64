//! From what a check found to the connection's status, an event and the next probe.

use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultConnectionStatus, Reason};
use ferrvault_core::connection::{CheckReport, render};
use ferrvault_core::duration::GoDuration;
use ferrvault_core::refusal::Refusal;
use ferrvault_core::schedule;

use crate::admin::metrics::CONNECTION_CONTROLLER;
use crate::announce;
use crate::cluster::error::CallError;
use crate::context::Context;
use crate::key::ObjectKey;
use crate::settings::PROBE_INTERVAL;

/// A connection that is not Ready is probed again at least this often: its resources wait for it.
const RETRY_CAP: Duration = Duration::from_mins(1);

/// Writes the status: times only where nothing else changed.
pub(super) async fn report(
    ctx: &Context,
    connection: &FerrVaultConnection,
    report: &CheckReport,
) -> Result<(), CallError> {
    let (status, transition) = render(connection, report, ctx.clock.now());
    let before = connection.status.as_ref();
    let conditions = |status: &FerrVaultConnectionStatus| status.conditions.clone();
    let renewed = if before.map(conditions).as_ref() == Some(&status.conditions) {
        ctx.cluster.write_heartbeat(connection, before, &status).await?
    } else {
        ctx.cluster.write_status(connection, before, &status).await?
    };
    ctx.keep_connection(renewed);
    if let Some(transition) = transition {
        let (namespace, name) = (&connection.metadata.namespace, &connection.metadata.name);
        let (reason, detail) = (transition.reason, transition.message.as_str());
        if announce::is_good(&transition) {
            tracing::info!(namespace, connection = name, %reason, detail, "connection ready");
        } else {
            tracing::warn!(namespace, connection = name, %reason, detail, "connection not ready");
        }
        announce::condition_changed(&ctx.events, connection, &transition, "Probe");
    }
    Ok(())
}

/// The check was cut at its deadline while at `step`. Late in a process that was frozen, it is another replica's by now.
pub(super) async fn cut(ctx: &Context, key: &ObjectKey, step: &str) {
    if !ctx.leads() {
        tracing::info!(%key, step, "check of a connection cut at its deadline: this replica does not lead any more");
        return;
    }
    ctx.metrics.timeout(CONNECTION_CONTROLLER);
    tracing::warn!(%key, step, deadline = ?ctx.deadline, "check of a connection cut at its deadline");
    let message = format!("the check was cut after {} while {step}; it is tried again", GoDuration::from(ctx.deadline));
    short_write(ctx, key, Refusal::new(Reason::ReconcileTimeout, message)).await;
}

/// The check panicked while it was at `step`.
pub(super) async fn panicked(ctx: &Context, key: &ObjectKey, step: &str) {
    ctx.metrics.panicked(CONNECTION_CONTROLLER);
    tracing::error!(%key, step, "a check of a connection panicked");
    let message = format!("the check ended in a mistake of the operator while {step}; it is tried again");
    short_write(ctx, key, Refusal::new(Reason::InternalError, message)).await;
}

/// Shows how a check ended that did not come to its report.
async fn short_write(ctx: &Context, key: &ObjectKey, refusal: Refusal) {
    let Some(connection) = ctx.connections.get(key) else { return };
    let refused = CheckReport::Refused(refusal);
    if let Err(error) = report(ctx, &connection, &refused).await {
        not_written(key, &error, "writing the status");
    }
}

/// The time to the next scheduled probe, spread by a tenth so that connections do not probe in step.
pub(super) fn probe_interval(ctx: &Context) -> Duration {
    PROBE_INTERVAL.mul_f64(1.0 - 0.1 * ctx.entropy.jitter())
}

/// The time to the next try after a failed one.
pub(super) fn retry(ctx: &Context, key: &ObjectKey, attempts: u32) -> Duration {
    let attempts = attempts.saturating_add(1);
    ctx.attempts.keep(key, attempts);
    schedule::backoff(attempts, RETRY_CAP, ctx.entropy.jitter())
}

/// A write that did not go through. A conflict is normal: the next pass reads afresh.
pub(super) fn not_written(key: &ObjectKey, error: &CallError, tried: &str) {
    if error.is_conflict() || error.is_not_found() || *error == CallError::NotLeading {
        tracing::debug!(%key, tried, "overtaken");
    } else {
        tracing::warn!(%key, error = error.user_message_for(tried), "connection not written");
    }
}
