//! Stamps the workloads that lack the version, each on condition that nobody wrote since it was read.

use super::turns;
use crate::cluster::error::CallError;
use crate::context::Context;
use ferrvault_api::FerrVaultSecret;
use ferrvault_api::secret::WorkloadRef;
use ferrvault_core::restart::{Step, WorkloadOutcome};
use ferrvault_core::version::Version;

pub(super) async fn act(
    ctx: &Context,
    resource: &FerrVaultSecret,
    version: &Version,
    steps: Vec<(WorkloadRef, Step)>,
) -> Vec<(WorkloadRef, WorkloadOutcome)> {
    let made = turns::each(ctx.deadline, steps, |(workload, step)| async move {
        match step {
            Step::Done { paused } => WorkloadOutcome::Restarted { paused },
            Step::Wait => WorkloadOutcome::Missing,
            Step::Fail(why) => WorkloadOutcome::Failed(why),
            Step::Stamp { resource_version, paused } => {
                stamp(ctx, resource, &workload, &resource_version, version, paused).await
            }
        }
    });
    // Stamped or not: the mark tells the next pass.
    let unanswered = || failed(&CallError::TimedOut);
    made.await.into_iter().map(|((workload, _), outcome)| (workload, outcome.unwrap_or_else(unanswered))).collect()
}

async fn stamp(
    ctx: &Context,
    resource: &FerrVaultSecret,
    workload: &WorkloadRef,
    resource_version: &str,
    version: &Version,
    paused: bool,
) -> WorkloadOutcome {
    let now = ctx.clock.now();
    match ctx.cluster.stamp_workload(resource, workload, resource_version, version, now).await {
        Ok(()) => {
            tracing::info!(
                namespace = resource.metadata.namespace,
                resource = resource.metadata.name,
                workload = %workload,
                paused,
                "workload restarted"
            );
            WorkloadOutcome::Restarted { paused }
        }
        Err(CallError::Conflict) => WorkloadOutcome::Overtaken,
        Err(CallError::NotFound) => WorkloadOutcome::Missing,
        Err(error) => failed(&error),
    }
}

fn failed(error: &CallError) -> WorkloadOutcome {
    WorkloadOutcome::Failed(error.user_message_for("restarting it"))
}
