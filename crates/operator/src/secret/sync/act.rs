//! Carries the plan of the sync stage out: the debt, then the target. Between the two a cut leaves a debt on record and
//! the old content, which the next pass finishes (rule 3).

use std::sync::Arc;

use ferrvault_api::{FerrVaultSecret, FerrVaultSecretStatus, Reason};
use ferrvault_core::sync::{SyncPlan, TargetWrite};
use ferrvault_core::version::Version;

use tokio::time::Instant;

use super::observe::Observed;
use super::{Ended, Held, refused};
use crate::cluster::error::CallError;
use crate::cluster::secrets::TargetContent;
use crate::context::Context;
use crate::progress::Progress;
use crate::secret::propagation::News;

pub(super) async fn act(
    ctx: &Context,
    resource: &Arc<FerrVaultSecret>,
    observed: Observed,
    plan: SyncPlan,
    progress: &Progress,
) -> Result<Held, Ended> {
    let resource = match &plan.debt {
        Some(version) => {
            progress.at("recording that a restart will be owed");
            record_debt(ctx, resource, version).await?
        }
        None => Arc::clone(resource),
    };
    let resource_version = match write_target(ctx, &resource, &observed, &plan, progress).await {
        Ok(resource_version) => resource_version,
        Err(ended) if plan.debt.is_some() => return Err(ended.after_record(resource)),
        Err(ended) => return Err(ended),
    };
    Ok(Held {
        resource,
        version: plan.version,
        resource_version,
        keys: observed.wanted.0.keys().cloned().collect(),
        change: plan.change,
        workloads: observed.workloads,
        news: plan.change.is_new_content().then(|| News { seen: observed.answered, written: Instant::now() }),
    })
}

/// Rule 3: before the target gets a new version, the version that the workloads run on is on record. A record that is
/// refused leaves the target as it is.
async fn record_debt(
    ctx: &Context,
    resource: &Arc<FerrVaultSecret>,
    version: &Version,
) -> Result<Arc<FerrVaultSecret>, Ended> {
    let before = resource.status.as_ref();
    let after = FerrVaultSecretStatus {
        last_rollout_hash: Some(version.as_str().to_owned()),
        ..before.cloned().unwrap_or_default()
    };
    match ctx.cluster.write_status(resource.as_ref(), before, &after).await {
        Ok(renewed) => Ok(ctx.keep(renewed)),
        Err(error) => Err(write_ended(&error, "recording a restart that will be owed")),
    }
}

/// Gives the target's resourceVersion afterwards.
async fn write_target(
    ctx: &Context,
    resource: &FerrVaultSecret,
    observed: &Observed,
    plan: &SyncPlan,
    progress: &Progress,
) -> Result<String, Ended> {
    let name = resource.target_name();
    let content = TargetContent { resource, version: &plan.version, unowned: observed.unowned };
    let written = match (&plan.write, &observed.target) {
        (None, Some(read)) => return Ok(read.observed.resource_version.clone()),
        (Some(TargetWrite::Patch { data, .. }), Some(read)) => {
            progress.at(format!("writing Secret {name}"));
            ctx.cluster.patch_target(content, read, data).await
        }
        (_, None) | (Some(TargetWrite::Create), _) => {
            progress.at(format!("creating Secret {name}"));
            ctx.cluster.create_target(content, &observed.wanted).await
        }
    };
    written.map_err(|error| write_ended(&error, &format!("writing Secret {name}")))
}

fn write_ended(error: &CallError, tried: &str) -> Ended {
    match error {
        // NotFound: deleted between read and write, so it has to be made and not patched.
        CallError::Conflict | CallError::AlreadyExists | CallError::NotFound => Ended::Overtaken(tried.to_owned()),
        CallError::NotLeading => Ended::NotLeading,
        error => refused::by_the_api_server(Reason::SecretWriteFailed, tried, error).into(),
    }
}
