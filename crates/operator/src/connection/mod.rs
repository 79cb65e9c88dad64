//! The controller of connections: probes them, and keeps them while resources refer to them.
//!
//! ```text
//! due ─▶ connection, who refers to it ─▶ finalizer ─▶ token, /health, whose token ─▶ status, event ─▶ next wake
//! ```
//!
//! Where only its users are others than before, the finalizer is looked at and the rest waits for its time. A pass over a
//! resource whose token is refused puts what the connection says in doubt: it is checked before its time, once.

mod attempts;
mod doubt;
mod refused;
mod report;
mod token;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, Reason, condition, marks};
use ferrvault_core::connection::{CheckReport, FinalizerChange, TokenCheck, finalizer};
use ferrvault_core::refusal::Refusal;
use ferrvault_core::schedule::AUTH_RETRY;
use ferrvault_core::sync::checks;
use futures::FutureExt;

pub use self::attempts::Attempts;
pub use self::doubt::doubt;
pub use self::token::bearer;
use crate::admin::metrics::CONNECTION_CONTROLLER;
use crate::cluster::error::CallError;
use crate::cluster::store::Relation;
use crate::context::Context;
use crate::ferrvault;
use crate::key::ObjectKey;
use crate::progress::Progress;
use crate::queue::{Next, Work};

/// A connection that is being deleted while it is in use is looked at this often, besides each time that one of its
/// users goes.
const BLOCKED_RECHECK: Duration = Duration::from_secs(30);

/// What a pass over a connection has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Somebody refers to it who did not, or no longer does: hold it or let it go. A thousand resources made at once are no
    /// reason to probe a thousand times.
    Users,
    /// Its token was refused to a resource: everything, unless that was looked into already. A thousand resources whose
    /// token was revoked are no reason to probe a thousand times either.
    Doubt,
    /// Everything.
    #[default]
    Whole,
}

impl Work for Check {
    fn merge(&mut self, newer: Self) {
        *self = (*self).max(newer);
    }
}

/// One pass over the connection called `key`.
pub async fn pass(ctx: Arc<Context>, key: ObjectKey, due: Check) -> Next<Check> {
    let progress = Progress::default();
    let attempts = ctx.attempts.of(&key);
    let due = if due == Check::Doubt && !doubt::stands(&ctx, &key) { Check::Users } else { due };
    let whole = AssertUnwindSafe(whole(&ctx, &key, due, &progress)).catch_unwind();
    let after = match tokio::time::timeout(ctx.deadline, whole).await {
        Ok(Ok(After::Gone)) => {
            ctx.attempts.forget(&key);
            return Next::Done;
        }
        Ok(Ok(After::Checked)) => {
            ctx.attempts.keep(&key, 0);
            report::probe_interval(&ctx)
        }
        // The next probe comes when it would have come.
        Ok(Ok(After::Held)) => return Next::Keep,
        Ok(Ok(After::Blocked)) => BLOCKED_RECHECK,
        Ok(Ok(After::TokenRefused)) => {
            ctx.attempts.keep(&key, attempts.saturating_add(1));
            AUTH_RETRY
        }
        Ok(Ok(After::Again)) => report::retry(&ctx, &key, attempts),
        // The payload is dropped unread: it may hold anything. Where it happened was logged by the panic hook.
        Ok(Err(_)) => {
            report::panicked(&ctx, &key, &progress.step()).await;
            report::retry(&ctx, &key, attempts)
        }
        Err(_) => {
            report::cut(&ctx, &key, &progress.step()).await;
            report::retry(&ctx, &key, attempts)
        }
    };
    Next::Wake { after, work: Check::Whole }
}

/// The next pass after one whose very report panicked.
pub fn after_panic(ctx: &Context, key: &ObjectKey) -> Next<Check> {
    ctx.metrics.panicked(CONNECTION_CONTROLLER);
    Next::Wake { after: report::retry(ctx, key, ctx.attempts.of(key)), work: Check::Whole }
}

/// How a pass ended.
enum After {
    /// The connection is gone, or free to go.
    Gone,
    /// FerrVault answers; the next probe is scheduled.
    Checked,
    /// Held while it is used, and let go otherwise; nothing else was looked at.
    Held,
    /// In use while being deleted.
    Blocked,
    /// FerrVault does not accept the token: servers lock out who insists.
    TokenRefused,
    /// Refused otherwise, or the connection changed under the pass.
    Again,
}

async fn whole(ctx: &Context, key: &ObjectKey, due: Check, progress: &Progress) -> After {
    progress.at("reading the connection");
    let Some(connection) = ctx.connections.get(key) else { return After::Gone };
    let users = ctx.resources.referring(Relation::Connection, key);
    let change = finalizer(&connection, users.len());
    let connection = match set_finalizer(ctx, connection, change, progress).await {
        Ok(connection) => connection,
        Err(error) => {
            report::not_written(key, &error, "writing the finalizer");
            // One that is gone is taken out of the store by its watch, which ends the passes. The word of one answer is not
            // enough for that: nothing would start the next one (I7).
            return After::Again;
        }
    };
    if due == Check::Users && ctx.attempts.knows(key) && was_checked(&connection) {
        return After::Held;
    }
    ctx.attempts.begin(key, due == Check::Doubt);
    let (report, after) = if connection.metadata.deletion_timestamp.is_some() {
        if users.is_empty() {
            return After::Gone;
        }
        let names = users.iter().map(|user| user.name.to_string()).collect();
        (CheckReport::DeletionBlocked(names), After::Blocked)
    } else {
        match probe(ctx, &connection, progress).await {
            Ok(token) => (CheckReport::Reachable(token), After::Checked),
            Err(refusal) if refusal.reason == Reason::AuthFailed => {
                (CheckReport::Refused(refusal), After::TokenRefused)
            }
            Err(refusal) => (CheckReport::Refused(refusal), After::Again),
        }
    };
    progress.at("writing the status");
    match report::report(ctx, &connection, &report).await {
        Ok(()) => after,
        Err(error) => {
            report::not_written(key, &error, "writing the status");
            After::Again
        }
    }
}

async fn set_finalizer(
    ctx: &Context,
    connection: Arc<FerrVaultConnection>,
    change: FinalizerChange,
    progress: &Progress,
) -> Result<Arc<FerrVaultConnection>, CallError> {
    let mut names: Vec<String> = connection.metadata.finalizers.clone().unwrap_or_default();
    match change {
        FinalizerChange::Keep => return Ok(connection),
        FinalizerChange::Add => names.push(marks::CONNECTION_FINALIZER.to_owned()),
        FinalizerChange::Remove => names.retain(|name| name != marks::CONNECTION_FINALIZER),
    }
    progress.at("writing the finalizer");
    let renewed = ctx.cluster.write_finalizers(connection.as_ref(), &names).await?;
    Ok(ctx.keep_connection(renewed))
}

/// Whether the status is about the connection as it is. One that is being deleted names its users in it.
fn was_checked(connection: &FerrVaultConnection) -> bool {
    let conditions = connection.status.iter().flat_map(|status| &status.conditions);
    let mut ready = conditions.filter(|found| found.type_ == condition::READY);
    connection.metadata.deletion_timestamp.is_none()
        && ready.any(|found| found.observed_generation == connection.metadata.generation)
}

/// Whether the connection could be used right now, and what was learned of its token.
async fn probe(ctx: &Context, connection: &FerrVaultConnection, progress: &Progress) -> Result<TokenCheck, Refusal> {
    checks::connection_spec(&connection.spec).map_or(Ok(()), Err)?;
    let endpoint = ferrvault::endpoint(&connection.spec)?;
    progress.at("reading the token");
    let bearer = bearer(ctx, connection, &endpoint).await?;
    progress.at("asking FerrVault for its health");
    ctx.ferrvault.health(&endpoint).await.map_err(|error| refused::by_health(&error))?;
    progress.at("asking FerrVault whose token it is");
    token::check(ctx, connection, &endpoint, bearer).await
}
