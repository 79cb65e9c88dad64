//! The sync stage: observe, decide, act. Ends with a target that equals FerrVault's answer, or with a refusal.

mod act;
mod observe;

use std::sync::Arc;

use ferrvault_api::FerrVaultSecret;
use ferrvault_api::secret::WorkloadRef;
use ferrvault_core::refusal::Refusal;
use ferrvault_core::restart::WorkloadState;
use ferrvault_core::sync::{Change, Question, checks, decide};
use ferrvault_core::version::Version;

use crate::context::Context;
use crate::progress::Progress;
use crate::secret::propagation::News;

/// A target that was proved right.
#[derive(Debug)]
pub(super) struct Held {
    /// The resource as it is now; the record of a debt renews it.
    pub(super) resource: Arc<FerrVaultSecret>,
    /// The version of the target.
    pub(super) version: Version,
    /// The target's resourceVersion after this stage.
    pub(super) resource_version: String,
    /// Keys in it, sorted.
    pub(super) keys: Vec<String>,
    /// What it took.
    pub(super) change: Change,
    /// The workloads as they were read before the target was written; `None` where nothing was to be read.
    pub(super) workloads: Option<Vec<(WorkloadRef, WorkloadState)>>,
    /// When a new content was seen and written.
    pub(super) news: Option<News>,
}

/// How the stage ended early.
#[derive(Debug)]
pub(super) enum Ended {
    /// It was refused; the condition says why.
    Refused {
        /// Why.
        refusal: Refusal,
        /// Whether the target, if there is one, may still be looked at for a debt.
        target_is_ours: bool,
    },
    /// An object changed between its read and its write: decide again from fresh reads.
    Overtaken(String),
    /// This replica no longer leads.
    NotLeading,
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        use ferrvault_api::Reason::{InvalidSpec, TargetConflict};
        let target_is_ours = !matches!(refusal.reason, InvalidSpec | TargetConflict);
        Self::Refused { refusal, target_is_ours }
    }
}

/// Runs the stage for `resource`.
pub(super) async fn run(ctx: &Context, resource: &Arc<FerrVaultSecret>, progress: &Progress) -> Result<Held, Ended> {
    checks::resource(resource)?;
    let observed = observe::observe(ctx, resource, progress).await?;
    let plan = decide(Question {
        target: observed.target.as_ref().map(|read| &read.observed),
        wanted: &observed.wanted,
        records: &observed.records,
        marks: &observed.marks,
        unowned: observed.unowned,
        key: &ctx.operator_key,
        nonces: [ctx.entropy.nonce(), ctx.entropy.nonce()],
    });
    act::act(ctx, resource, observed, plan, progress).await
}
