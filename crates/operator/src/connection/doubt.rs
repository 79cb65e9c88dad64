//! A connection that says it is well while its token is refused to a resource: checked before its time (I5).
//!
//! Bounded twice, because every resource that uses it may bring the same news: what was checked just now is not checked
//! again, and a check that finds nothing wrong ends the matter until the next scheduled one. No check starts a pass over a
//! resource, so this cannot go round in circles (I10).

use ferrvault_api::condition;
use jiff::SignedDuration;

use crate::context::Context;
use crate::key::ObjectKey;

/// What a check found so recently is believed. A token that was revoked is refused to many passes at once; those that were
/// asking while it was checked have their answer within this.
const BELIEVED: SignedDuration = SignedDuration::from_secs(30);

/// A pass was refused the token of the connection `key`: has it checked soon, where that can tell anything new.
pub fn doubt(ctx: &Context, key: &ObjectKey) {
    if stands(ctx, key) {
        ctx.queues.doubt(key.clone());
    }
}

/// Whether the connection still says that it is well, from a check that is old enough to be wrong by now.
pub(super) fn stands(ctx: &Context, key: &ObjectKey) -> bool {
    let Some(connection) = ctx.connections.get(key) else { return false };
    let Some(status) = &connection.status else { return false };
    let says_well = status.conditions.iter().any(|found| {
        found.type_ == condition::READY
            && found.status == "True"
            && found.observed_generation == connection.metadata.generation
    });
    let old =
        status.last_checked_at.as_ref().is_none_or(|checked| ctx.clock.now().duration_since(checked.0) > BELIEVED);
    says_well && old && ctx.attempts.may_be_doubted(key)
}
