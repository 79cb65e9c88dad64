//! Reads the listed workloads, and the target's version without its data.

use ferrvault_api::FerrVaultSecret;
use ferrvault_api::secret::WorkloadRef;
use ferrvault_core::restart::{WorkloadState, distinct};
use ferrvault_core::sync::checks;
use ferrvault_core::version::Version;

use super::turns;
use crate::cluster::error::CallError;
use crate::context::Context;
use crate::key::ObjectKey;
use crate::progress::Progress;

/// The listed workloads, each once, as they are now. What cannot be read is part of the observation, and so is an entry
/// that names nothing which could be read: it keeps the debt until somebody corrects it.
pub(in crate::secret) async fn read_workloads(
    ctx: &Context,
    resource: &FerrVaultSecret,
    progress: &Progress,
) -> Vec<(WorkloadRef, WorkloadState)> {
    progress.at("reading workloads");
    let listed = distinct(&resource.spec.rollout_restart);
    let read = turns::each(ctx.deadline, ctx.entropy.jitter(), listed, |workload| async move {
        if !checks::is_workload_name(&workload.name) {
            return WorkloadState::Unreadable("no workload can have this name".to_owned());
        }
        ctx.cluster.read_workload(resource, &workload).await
    });
    let unanswered = || WorkloadState::Unreadable(CallError::TimedOut.user_message_for("reading it"));
    read.await.into_iter().map(|(workload, state)| (workload, state.unwrap_or_else(unanswered))).collect()
}

/// Whether the records of restarts are still what they were when `resource` was read. A record may be the only trace of a
/// restart whose mark was stripped, and the resource was read before the workloads.
pub(super) async fn records_stand(ctx: &Context, resource: &FerrVaultSecret) -> Result<bool, String> {
    let records = |resource: &FerrVaultSecret| {
        let status = resource.status.clone().unwrap_or_default();
        (resource.metadata.uid.clone(), status.last_rollout_hash, status.rollouts)
    };
    let meta = &resource.metadata;
    let key = ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    match ctx.cluster.read_own::<FerrVaultSecret>(&key).await {
        // Kept, so that the next pass begins with what this one found even where the watch is behind.
        Ok(now) => Ok(now.is_some_and(|now| records(&ctx.keep(now)) == records(resource))),
        Err(error) => Err(error.user_message_for("reading the resource")),
    }
}

/// The version that the target carries now; `None` where there is no target of ours, so that nothing can be owed.
pub(super) async fn current_version(ctx: &Context, resource: &FerrVaultSecret) -> Result<Option<Version>, String> {
    match ctx.cluster.read_target_mark(resource).await {
        Ok(mark) => Ok(mark.filter(|mark| mark.is_ours).and_then(|mark| mark.version)),
        Err(error) => Err(error.user_message_for(&format!("reading Secret {}", resource.target_name()))),
    }
}
