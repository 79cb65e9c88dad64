//! What there is to tell of each object at the moment of a scrape: from the stores, what is remembered between passes,
//! and the queue.
//!
//! Asked on the thread of the scrape; takes the same short locks as a pass does and waits for nothing else. An object
//! that is being deleted is gone already, as far as numbers go: no pass will be made for it.

use std::collections::BTreeMap;
use std::time::Duration;

use ferrvault_api::secret::RolloutState;
use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, condition};
use ferrvault_core::freshness::{self, Ages};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use tokio::time::Instant;

use crate::admin::{ConnectionSeries, ObjectSeries, ResourceSeries};
use crate::context::Context;
use crate::key::ObjectKey;
use crate::queue::Queue;
use crate::secret::Due;
use crate::term::Term;
use crate::triggers::key_of;

/// What there is to tell of each object at this moment.
pub(crate) fn series(ctx: &Context, queue: &Queue<Due>, term: &Term) -> ObjectSeries {
    let awaited = term.since().map(|term| Awaited { since: queue.awaited(), term, now: Instant::now() });
    let resources = ctx.resources.all().into_iter();
    let resources = resources.filter(|resource| resource.metadata.deletion_timestamp.is_none()).map(|resource| {
        let key = key_of(&resource.metadata);
        let awaited = awaited.as_ref().and_then(|awaited| awaited.age(&key));
        of_resource(ctx, key, &resource, awaited)
    });
    let connections = ctx.connections.all().into_iter();
    let connections = connections.filter(|connection| connection.metadata.deletion_timestamp.is_none());
    ObjectSeries {
        resources: resources.collect(),
        connections: connections.map(|connection| of_connection(&connection)).collect(),
    }
}

/// Since when somebody waits for which pass, counted from the term in which passes are started.
struct Awaited {
    since: BTreeMap<ObjectKey, Instant>,
    term: Instant,
    now: Instant,
}

impl Awaited {
    fn age(&self, key: &ObjectKey) -> Option<Duration> {
        let since = *self.since.get(key)?;
        Some(self.now.saturating_duration_since(since.max(self.term)))
    }
}

fn of_resource(ctx: &Context, key: ObjectKey, resource: &FerrVaultSecret, awaited: Option<Duration>) -> ResourceSeries {
    let status = resource.status.as_ref();
    let suspended = resource.is_suspended();
    let owed = |state| {
        let rollouts = status.iter().flat_map(|status| &status.rollouts);
        rollouts.filter(|rollout| rollout.state == state).count()
    };
    ResourceSeries {
        created: resource.metadata.creation_timestamp.as_ref().map(|time| time.0),
        last_synced: status.and_then(|status| Some(status.last_synced_at.as_ref()?.0)),
        last_attempted: status.and_then(|status| Some(status.last_attempted_at.as_ref()?.0)),
        last_succeeded: ctx.memories.of(&key).succeeded_at,
        // Nothing is expected of a suspended one, as of one without a schedule.
        refresh_interval: if suspended { Duration::ZERO } else { ctx.cadence(resource).interval },
        fresh: is_fresh(resource, awaited),
        restarts_failed: owed(RolloutState::Failed),
        restarts_waiting: owed(RolloutState::Waiting),
        key,
    }
}

/// Whether passes over the resource end as they should: by what the watchdog has written, and, where it cannot write, by
/// what the queue knows. A scheduled pass that is merely late is told by the times, without a judgement of this process.
fn is_fresh(resource: &FerrVaultSecret, awaited: Option<Duration>) -> bool {
    let ages = Ages { attempted: Duration::ZERO, awaited: awaited.map(crate::hooks::stretched) };
    let in_time = freshness::judge(resource.is_suspended(), Duration::ZERO, ages).is_true();
    let conditions = resource.status.iter().flat_map(|status| &status.conditions);
    in_time && !says(conditions, condition::FRESH, "False")
}

fn of_connection(connection: &FerrVaultConnection) -> ConnectionSeries {
    let conditions = connection.status.iter().flat_map(|status| &status.conditions);
    ConnectionSeries { key: key_of(&connection.metadata), ready: says(conditions, condition::READY, "True") }
}

fn says<'a>(conditions: impl Iterator<Item = &'a Condition>, type_: &str, status: &str) -> bool {
    conditions.into_iter().any(|condition| condition.type_ == type_ && condition.status == status)
}
