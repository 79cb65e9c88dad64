//! Stamps the workloads that lack the version, each on condition that nobody wrote since it was read.

use ferrvault_api::FerrVaultSecret;
use ferrvault_api::secret::WorkloadRef;
use ferrvault_core::restart::{Step, WorkloadOutcome};
use ferrvault_core::version::Version;
use futures::StreamExt;

use super::observe::AT_A_TIME;
use crate::cluster::error::CallError;
use crate::context::Context;

pub(super) async fn act(
    ctx: &Context,
    resource: &FerrVaultSecret,
    version: &Version,
    steps: Vec<(WorkloadRef, Step)>,
) -> Vec<(WorkloadRef, WorkloadOutcome)> {
    futures::stream::iter(steps)
        .map(async |(workload, step)| {
            let outcome = match step {
                Step::Done { paused } => WorkloadOutcome::Restarted { paused },
                Step::Wait => WorkloadOutcome::Missing,
                Step::Fail(why) => WorkloadOutcome::Failed(why),
                Step::Stamp { resource_version, paused } => {
                    let now = ctx.clock.now();
                    match ctx.cluster.stamp_workload(resource, &workload, &resource_version, version, now).await {
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
                        Err(error) => WorkloadOutcome::Failed(error.user_message_for("restarting it")),
                    }
                }
            };
            (workload, outcome)
        })
        .buffered(AT_A_TIME)
        .collect()
        .await
}
