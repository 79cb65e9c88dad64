//! The restart stage: pays what is owed. One workload that is missing or refused never stops the others.

mod act;
mod observe;
mod turns;

use std::sync::Arc;

use ferrvault_api::FerrVaultSecret;
use ferrvault_api::secret::WorkloadRef;
use ferrvault_core::restart::{Debt, Look, WorkloadState, contradicted, debt, look_is_due, settle, steps};
use ferrvault_core::status::RestartReport;
use ferrvault_core::sync::Records;
use ferrvault_core::version::Version;

use super::sync::Held;
use crate::context::Context;
use crate::progress::Progress;

pub(super) use observe::read_workloads;

/// What became of the stage.
#[derive(Debug)]
pub(super) enum Ended {
    /// It knows; the status says what.
    Report(RestartReport),
    /// Nothing is owed, and the workloads were looked at all the same.
    Looked(RestartReport, Look),
    /// Somebody else was at work meanwhile: look again soon.
    Overtaken(&'static str),
    /// What it goes by could not be read: it cannot tell whether anything is owed, and tries again soon.
    Unread(String),
}

/// Runs the stage. `held`: the target as this pass's sync stage left it; `None` when there was none or it was refused.
pub(super) async fn run(
    ctx: &Context,
    resource: &Arc<FerrVaultSecret>,
    held: Option<&mut Held>,
    progress: &Progress,
) -> Ended {
    // The workloads were read before the target was written, and that write having succeeded no newer version existed
    // meanwhile (rule 4): stamp without a second look.
    let (current, read, seen) = match held {
        Some(held) if held.change.is_new_content() => (held.version.clone(), held.workloads.take(), None),
        Some(held) => (held.version.clone(), None, held.workloads.take()),
        None => {
            progress.at(format!("reading the version of Secret {}", resource.target_name()));
            match observe::current_version(ctx, resource).await {
                Ok(Some(version)) => (version, None, None),
                Ok(None) if contradicted(resource.status.as_ref(), None) => {
                    return Ended::Overtaken("a restart is owed, and its target was not seen");
                }
                Ok(None) => return Ended::Report(RestartReport::NotDue),
                Err(why) => return Ended::Unread(why),
            }
        }
    };
    match debt(Records::of(resource.status.as_ref()).last_rollout.as_ref(), &current) {
        Debt::Baseline => looked(ctx, resource, RestartReport::Baseline(current), read.or(seen), progress).await,
        Debt::Nothing if contradicted(resource.status.as_ref(), Some(&current)) => {
            Ended::Overtaken("a restart is owed, and its target was read as from before")
        }
        Debt::Nothing => looked(ctx, resource, RestartReport::Nothing, read.or(seen), progress).await,
        Debt::Owed => pay(ctx, resource, current, read, progress).await,
    }
}

/// Nothing is owed. A name that is mistyped should not have to wait for a restart to show, so the workloads are looked at
/// where the list may be new. `read`: as this pass has read them already.
async fn looked(
    ctx: &Context,
    resource: &FerrVaultSecret,
    report: RestartReport,
    read: Option<Vec<(WorkloadRef, WorkloadState)>>,
    progress: &Progress,
) -> Ended {
    if !look_is_due(resource) {
        return Ended::Report(report);
    }
    let workloads = match read {
        Some(workloads) => workloads,
        None => read_workloads(ctx, resource, progress).await,
    };
    Ended::Looked(report, Look::of(&workloads, ctx.clock.now()))
}

async fn pay(
    ctx: &Context,
    resource: &FerrVaultSecret,
    current: Version,
    read: Option<Vec<(WorkloadRef, WorkloadState)>>,
    progress: &Progress,
) -> Ended {
    let workloads = if let Some(workloads) = read {
        workloads
    } else {
        let workloads = read_workloads(ctx, resource, progress).await;
        // Rule 4: the second look. Without it a former leader stamps a version that is no longer the target's.
        progress.at(format!("looking at Secret {} again", resource.target_name()));
        match observe::current_version(ctx, resource).await {
            Ok(Some(version)) if version == current => {}
            Ok(_) => return Ended::Overtaken("the target changed while its workloads were read"),
            Err(why) => return Ended::Unread(why),
        }
        progress.at("looking at the resource again");
        match observe::records_stand(ctx, resource).await {
            Ok(true) => workloads,
            Ok(false) => return Ended::Overtaken("another replica recorded restarts meanwhile"),
            Err(why) => return Ended::Unread(why),
        }
    };
    let recorded = resource.status.as_ref().map(|status| status.rollouts.as_slice()).unwrap_or_default();
    let steps = steps(&current, recorded, workloads);
    progress.at("restarting workloads");
    let outcomes = act::act(ctx, resource, &current, steps).await;
    let settled = settle(&current, recorded, &outcomes, ctx.clock.now());
    Ended::Report(RestartReport::Owed { current, settled })
}
