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
    // Only calls take turns: a list in which all but one are done leaves that one as long as any call has.
    let (mut outcomes, mut to_stamp) = (Vec::with_capacity(steps.len()), Vec::new());
    for (place, (workload, step)) in steps.into_iter().enumerate() {
        let settled = match step {
            Step::Done { paused } => WorkloadOutcome::Restarted { paused },
            Step::Wait => WorkloadOutcome::Missing,
            Step::Fail(why) => WorkloadOutcome::Failed(why),
            Step::Stamp { resource_version, paused } => {
                to_stamp.push((place, workload, resource_version, paused));
                continue;
            }
        };
        outcomes.push((place, (workload, settled)));
    }
    let made = turns::each(ctx.deadline, ctx.entropy.jitter(), to_stamp, |(_, workload, read_at, paused)| async move {
        stamp(ctx, resource, &workload, &read_at, version, paused).await
    });
    // Stamped or not: the mark tells the next pass.
    let unanswered = || failed(&CallError::TimedOut);
    let stamped = made.await.into_iter();
    outcomes.extend(stamped.map(|((place, workload, ..), made)| (place, (workload, made.unwrap_or_else(unanswered)))));
    outcomes.sort_unstable_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
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
        // Whoever leads now stamps it, or has done so: nothing was refused.
        Err(CallError::Conflict | CallError::NotLeading) => WorkloadOutcome::Overtaken,
        Err(CallError::NotFound) => WorkloadOutcome::Missing,
        Err(error) => failed(&error),
    }
}

fn failed(error: &CallError) -> WorkloadOutcome {
    WorkloadOutcome::Failed(error.user_message_for("restarting it"))
}
