//! The sync stage: observe, decide, act. Ends with a target that equals FerrVault's answer, or with a refusal.

mod act;
mod observe;
mod refused;

use std::sync::Arc;

use ferrvault_api::secret::WorkloadRef;
use ferrvault_api::{FerrVaultSecret, Reason};
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
        /// Whether the target, if there is one, may still be looked at for a debt, and the debt be paid.
        target_is_ours: bool,
        /// The resource as it is now, where the record of a debt renewed it.
        renewed: Option<Arc<FerrVaultSecret>>,
    },
    /// An object changed between its read and its write: decide again from fresh reads.
    Overtaken(String),
    /// This replica no longer leads.
    NotLeading,
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        // A target that could not be read is not asked for again in the same breath. What is wrong with the rest of the
        // spec is no reason to leave workloads on an older content.
        let target_is_ours = !refusal.holds_restarts && refusal.reason != Reason::SecretReadFailed;
        Self::Refused { refusal, target_is_ours, renewed: None }
    }
}

impl Ended {
    /// The same, after the resource was written: the report has to go by what it is now.
    fn after_record(mut self, resource: Arc<FerrVaultSecret>) -> Self {
        if let Self::Refused { renewed, .. } = &mut self {
            *renewed = Some(resource);
        }
        self
    }
}

/// Runs the stage for `resource`.
///
/// `tries`: passes in a row before this one that came to no record.
pub(super) async fn run(
    ctx: &Context,
    resource: &Arc<FerrVaultSecret>,
    tries: u32,
    progress: &Progress,
) -> Result<Held, Ended> {
    checks::resource(resource)?;
    let observed = observe::observe(ctx, resource, tries, progress).await?;
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
