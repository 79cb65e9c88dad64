//! Reads what the sync stage decides on, in the order of rule 4: resource (already at hand), connection, token, target,
//! FerrVault's answer, and the workloads where the decision or the write depends on them.

use ferrvault_api::secret::WorkloadRef;
use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, Reason};
use ferrvault_core::content::Content;
use ferrvault_core::refusal::Refusal;
use ferrvault_core::restart::WorkloadState;
use ferrvault_core::sync::{Fate, Marks, Records, Verdict, WantedQuestion, checks, judge, wanted};
use tokio::time::Instant;

use super::{Ended, refused};
use crate::cluster::error::CallError;
use crate::cluster::secrets::TargetRead;
use crate::cluster::store::Relation;
use crate::connection;
use crate::context::Context;
use crate::ferrvault::{self, reveal_request};
use crate::key::ObjectKey;
use crate::progress::Progress;
use crate::secret::restart;

/// So many passes in a row wait for workloads that cannot be read before a target without a version gets a new one: 1, 2
/// and 4 s of backoff outlast an API server that restarts, and pods do not wait for their Secret any longer than that.
const PATIENCE: u32 = 3;

/// What the sync stage observed.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) target: Option<TargetRead>,
    pub(super) wanted: Content,
    pub(super) records: Records,
    pub(super) marks: Marks,
    pub(super) workloads: Option<Vec<(WorkloadRef, WorkloadState)>>,
    pub(super) unowned: bool,
    /// When FerrVault had answered.
    pub(super) answered: Instant,
}

pub(super) async fn observe(
    ctx: &Context,
    resource: &FerrVaultSecret,
    tries: u32,
    progress: &Progress,
) -> Result<Observed, Ended> {
    let namespace = resource.metadata.namespace.as_deref().unwrap_or_default();
    let named = ctx.connections.get(&ObjectKey::new(namespace, resource.spec.connection_ref.name.as_str()));
    let through = checks::connection(resource, named.as_deref())?.clone();
    let endpoint = ferrvault::endpoint(&through.spec)?;

    progress.at("reading the token of the connection");
    let bearer = match connection::bearer(ctx, &through, &endpoint).await {
        Ok(bearer) => bearer,
        Err(refusal) => return Err(without_bearer(ctx, resource, &through, refusal, progress).await.into()),
    };

    progress.at(format!("reading Secret {}", resource.target_name()));
    let target = ctx.cluster.read_target(resource).await.map_err(|error| target_unreadable(resource, &error))?;
    let fate = Fate::of(resource, target.as_ref().map(|read| &read.observed), &ctx.operator_key);
    progress.target_is(fate);
    checks::target(resource, &through, target.as_ref().map(|read| &read.observed))?;
    let named = ObjectKey::new(namespace, resource.target_name());
    let keepers = ctx.resources.referring(Relation::Target, &named);
    let keepers: Vec<_> = keepers.iter().filter_map(|keeper| ctx.resources.get(keeper)).collect();
    checks::unowned_target(resource, target.as_ref().map(|read| &read.observed), keepers.iter().map(AsRef::as_ref))?;

    progress.at(format!("asking FerrVault for vault {}", resource.spec.vault));
    let request = reveal_request(resource, &through.spec);
    let mut answer = ctx.ferrvault.reveal(&endpoint, &bearer, &request).await;
    if let Err(error) = &answer
        && ctx.credentials.is_stale(&through, error)
    {
        progress.at("exchanging the token of the connection anew");
        let bearer = connection::bearer(ctx, &through, &endpoint).await.map_err(|refusal| fate.told_in(refusal))?;
        progress.at(format!("asking FerrVault for vault {} again", resource.spec.vault));
        answer = ctx.ferrvault.reveal(&endpoint, &bearer, &request).await;
    }
    let answer = answer.map_err(|error| fate.told_in(refused::by_ferrvault(&error, resource, &through.spec)))?;

    let answered = Instant::now();

    let token_key = checks::token_key_in_target(resource, &through);
    let wanted = wanted(WantedQuestion { resource, fate, token_key }, answer)?;
    checks::target_immutable(resource, target.as_ref().map(|read| &read.observed), &wanted)?;

    let records = Records::of(resource.status.as_ref());
    let verdict = judge(target.as_ref().map(|read| &read.observed), &wanted, &ctx.operator_key);
    let workloads = if verdict.needs_workloads(&records) {
        Some(restart::read_workloads(ctx, resource, progress).await)
    } else {
        None
    };
    // Only where a version is looked for does an unknown mark cost anything: a restart that nobody needed.
    let unreadable = |(_, state): &(WorkloadRef, WorkloadState)| matches!(state, WorkloadState::Unreadable(_));
    if verdict != Verdict::Changed && tries < PATIENCE && workloads.iter().flatten().any(unreadable) {
        return Err(Ended::Overtaken("reading the workloads of a Secret that lost its version".to_owned()));
    }
    let marks = workloads.as_deref().map(Marks::of).unwrap_or_default();
    Ok(Observed { target, wanted, records, marks, workloads, unowned: token_key.is_some(), answered })
}

/// There is no token to ask with. Where that passes by itself, `Ready` may stay as it was, unless the target shows that it
/// may not: only then is it worth reading.
async fn without_bearer(
    ctx: &Context,
    resource: &FerrVaultSecret,
    through: &FerrVaultConnection,
    refusal: Refusal,
    progress: &Progress,
) -> Refusal {
    if !refusal.leaves_ready() {
        return refusal;
    }
    progress.at(format!("reading Secret {}", resource.target_name()));
    match ctx.cluster.read_target(resource).await {
        Ok(target) => {
            if let Err(conflict) = checks::target(resource, through, target.as_ref().map(|read| &read.observed)) {
                return conflict;
            }
            Fate::of(resource, target.as_ref().map(|read| &read.observed), &ctx.operator_key).told_in(refusal)
        }
        Err(_) => refusal,
    }
}

fn target_unreadable(resource: &FerrVaultSecret, error: &CallError) -> Refusal {
    let tried = format!("reading Secret {}", resource.target_name());
    refused::by_the_api_server(Reason::SecretReadFailed, &tried, error)
}
