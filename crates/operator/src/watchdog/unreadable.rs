//! Says on objects that this version cannot read that it cannot read them.
//!
//! No pass ever sees such an object, so no pass can say so: its status would tell for ever what it told last. The object
//! is read and written as plain JSON here, and only its condition `Ready` is touched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, Reason, condition};
use ferrvault_core::status::condition_of;
use kube::Resource;
use kube::api::ApiResource;
use tokio::time::Instant;

use crate::cluster::access::Cluster;
use crate::context::Context;
use crate::key::ObjectKey;

/// After a write that failed. There are few such objects, and no hurry: they were stored under another schema.
const AFTER_FAILURE: Duration = Duration::from_mins(1);

/// Objects looked at in one round, so that a server that hangs (5 s each) holds the watchdog up for 40 s at most.
const AT_A_TIME: usize = 4;

pub(super) struct Unreadable {
    ctx: Arc<Context>,
    cluster: Cluster,
    /// What was said last, or when to try again.
    told: BTreeMap<(String, ObjectKey), Told>,
}

#[derive(PartialEq)]
enum Told {
    Said(String),
    NotBefore(Instant),
}

impl Unreadable {
    pub(super) fn new(ctx: Arc<Context>, cluster: Cluster) -> Self {
        Self { ctx, cluster, told: BTreeMap::new() }
    }

    /// Says what has not been said yet.
    pub(super) async fn tell(&mut self) {
        let resources = of_kind::<FerrVaultSecret>(self.ctx.resources.unreadable());
        let connections = of_kind::<FerrVaultConnection>(self.ctx.connections.unreadable());
        let all: Vec<Found> = resources.chain(connections).collect();
        self.told.retain(|known, _| all.iter().any(|found| found.name() == *known));
        let now = Instant::now();
        let due = all.into_iter().filter(|found| match self.told.get(&found.name()) {
            None => true,
            Some(Told::Said(why)) => *why != found.why,
            Some(Told::NotBefore(until)) => *until <= now,
        });
        for found in due.take(AT_A_TIME).collect::<Vec<_>>() {
            let told = self.tell_of(&found).await;
            self.told.insert(found.name(), told);
        }
    }

    async fn tell_of(&self, found: &Found) -> Told {
        let Found { kind, key, why } = found;
        let message =
            format!("this version of the operator cannot read the object, so it does nothing about it: {why}");
        // The generation is not known before the object is read; the write fills it in.
        let new = condition_of(condition::READY, false, Reason::InvalidSpec, message, 0, self.ctx.clock.now());
        match self.cluster.write_condition_of_unreadable(kind, key, new).await {
            Ok(()) => Told::Said(why.clone()),
            Err(error) => {
                let error = error.user_message_for("writing the condition Ready");
                tracing::debug!(kind = kind.kind, %key, error, "an object that cannot be read does not say so");
                Told::NotBefore(Instant::now() + AFTER_FAILURE)
            }
        }
    }
}

/// An object that cannot be read, and why.
struct Found {
    kind: ApiResource,
    key: ObjectKey,
    why: String,
}

impl Found {
    fn name(&self) -> (String, ObjectKey) {
        (self.kind.plural.clone(), self.key.clone())
    }
}

fn of_kind<K: Resource<DynamicType = ()>>(unreadable: Vec<(ObjectKey, String)>) -> impl Iterator<Item = Found> {
    let kind = ApiResource::erase::<K>(&());
    unreadable.into_iter().map(move |(key, why)| Found { kind: kind.clone(), key, why })
}
