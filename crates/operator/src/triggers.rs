//! From what a watch saw to the keys that are due. Holds the other half of I10: what changed nothing that a pass looks at
//! starts none, and the echo of our own write least of all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, marks};
use ferrvault_core::sync::checks;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;

use crate::cluster::store::{Change, Kept, Relation};
use crate::cluster::watch::Sink;
use crate::connection::Check;
use crate::ferrvault::Credentials;
use crate::key::ObjectKey;
use crate::queue::{Queue, Urgency};
use crate::secret::Due;

/// So many resources that name one Secret are looked at for the next one to keep it. Two are a mistake; thousands, made to
/// go together, would each be looked at once for each of them. Beyond that they come to it at their interval.
const RIVALS: usize = 64;

/// The two queues.
#[derive(Clone, Debug)]
pub struct Queues {
    /// Passes over resources.
    pub resources: Queue<Due>,
    /// Passes over connections.
    pub connections: Queue<Check>,
}

impl Queues {
    fn resource(&self, resource: &FerrVaultSecret, due: Due, urgency: Urgency) {
        self.resources.add(key_of(&resource.metadata), group(resource), due, urgency);
    }

    fn connection(&self, key: ObjectKey, urgency: Urgency) {
        self.check(key, Check::Whole, urgency);
    }

    /// A pass was refused the token of this connection.
    pub fn doubt(&self, connection: ObjectKey) {
        self.check(connection, Check::Doubt, Urgency::Routine);
    }

    fn check(&self, key: ObjectKey, check: Check, urgency: Urgency) {
        let group = key.to_string().into();
        self.connections.add(key, group, check, urgency);
    }
}

/// The two stores, each telling the queues what its changes make due.
pub fn stores(queues: &Queues, credentials: Arc<Credentials>) -> (Kept<FerrVaultSecret>, Kept<FerrVaultConnection>) {
    let resources = {
        let queues = queues.clone();
        Kept::new(move |resources, change| resource_changed(&queues, resources, change))
    };
    let connections = {
        let (queues, resources) = (queues.clone(), resources.clone());
        Kept::new(move |_, change| connection_changed(&queues, &resources, &credentials, change))
    };
    (resources, connections)
}

/// Asks for a pass over everything: what a replica begins with when it starts to lead.
pub fn everything(queues: &Queues, resources: &Kept<FerrVaultSecret>, connections: &Kept<FerrVaultConnection>) {
    for resource in resources.all() {
        queues.resource(&resource, first_look(&resource), newcomer(&resource));
    }
    for connection in connections.all() {
        queues.connection(key_of(&connection.metadata), Urgency::Routine);
    }
}

/// What a resource shares its fate with: its connection.
fn group(resource: &FerrVaultSecret) -> Arc<str> {
    let namespace = resource.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", resource.spec.connection_ref.name).into()
}

/// The key of the object with this metadata.
pub fn key_of(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

/// A resource that no pass has seen goes before those that a restart of the operator brings along.
fn newcomer(resource: &FerrVaultSecret) -> Urgency {
    let known = resource.status.as_ref().is_some_and(|status| status.last_attempted_at.is_some());
    if known { Urgency::Routine } else { Urgency::Now }
}

/// What the first look at a resource has to do. It is waited for where it is more than a look: somebody made or edited
/// the resource, or asked for a pass, and no pass has succeeded since.
fn first_look(resource: &FerrVaultSecret) -> Due {
    let status = resource.status.as_ref();
    let never = status.is_none_or(|status| status.last_attempted_at.is_none());
    let edited = status.and_then(|status| status.observed_generation) != resource.metadata.generation;
    if never || edited || resource.refresh_is_due() { Due::sync().awaited() } else { Due::sync() }
}

fn resource_changed(queues: &Queues, resources: &Kept<FerrVaultSecret>, change: Change<FerrVaultSecret>) {
    let connection = |resource: &FerrVaultSecret| {
        let key = key_of(&resource.metadata).beside(resource.spec.connection_ref.name.as_str());
        queues.check(key, Check::Users, Urgency::Now);
    };
    match change {
        Change::Added(new) => {
            queues.resource(&new, first_look(&new), newcomer(&new));
            connection(&new);
        }
        Change::Changed { old, new } => {
            let edited = old.metadata.generation != new.metadata.generation
                || old.metadata.uid != new.metadata.uid
                || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
                || (holds(&new.metadata, marks::LEGACY_SECRET_FINALIZER)
                    && !holds(&old.metadata, marks::LEGACY_SECRET_FINALIZER));
            let refresh = new.refresh_request() != old.refresh_request() && new.refresh_is_due();
            if edited || refresh {
                queues.resource(&new, Due::sync().awaited(), Urgency::Now);
            }
            let going = old.metadata.deletion_timestamp != new.metadata.deletion_timestamp;
            if going || old.metadata.uid != new.metadata.uid || old.target_name() != new.target_name() {
                next_keeper(queues, resources, &old);
            }
            if old.spec.connection_ref != new.spec.connection_ref {
                connection(&old);
                connection(&new);
            }
        }
        // The pass finds nothing, forgets what was remembered, and leaves no wake.
        Change::Removed(old) => {
            queues.resource(&old, Due::sync(), Urgency::Routine);
            next_keeper(queues, resources, &old);
            connection(&old);
        }
    }
}

/// Whoever is next to get the Secret which `keeper` kept: it may be his now, and until then he says that it is not. The
/// others would only be refused it once more.
fn next_keeper(queues: &Queues, resources: &Kept<FerrVaultSecret>, keeper: &FerrVaultSecret) {
    let own = key_of(&keeper.metadata);
    let wanted = resources.first_referring(Relation::Target, &own.beside(keeper.target_name()), RIVALS);
    let others = wanted.into_iter().filter(|key| *key != own).filter_map(|key| resources.get(&key));
    let others = others.filter(|other| other.metadata.deletion_timestamp.is_none());
    if let Some(next) = others.min_by_key(|other| checks::rank(other)) {
        queues.resource(&next, Due::sync(), Urgency::Now);
    }
}

fn connection_changed(
    queues: &Queues,
    resources: &Kept<FerrVaultSecret>,
    credentials: &Credentials,
    change: Change<FerrVaultConnection>,
) {
    let (connection, users_too) = match change {
        Change::Added(new) => (new, true),
        Change::Changed { old, new } => {
            let edited = old.metadata.generation != new.metadata.generation || old.metadata.uid != new.metadata.uid;
            let going = old.metadata.deletion_timestamp != new.metadata.deletion_timestamp;
            if !edited && !going {
                return;
            }
            (new, edited)
        }
        Change::Removed(old) => {
            credentials.forget(old.metadata.uid.as_deref().unwrap_or_default());
            (old, true)
        }
    };
    let key = key_of(&connection.metadata);
    if users_too {
        users(queues, resources, &key, &Due::sync().awaited());
    }
    queues.connection(key, Urgency::Now);
}

fn users(queues: &Queues, resources: &Kept<FerrVaultSecret>, connection: &ObjectKey, due: &Due) {
    for key in resources.referring(Relation::Connection, connection) {
        queues.resources.add(key, connection.to_string().into(), due.clone(), Urgency::Now);
    }
}

fn holds(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().flatten().any(|name| name == finalizer)
}

/// Where the watch of Secrets ends: targets and token Secrets of ours count, everything else is let go at once.
#[derive(Debug)]
pub struct SecretSink {
    queues: Queues,
    resources: Kept<FerrVaultSecret>,
    connections: Kept<FerrVaultConnection>,
    /// Token Secrets by the resourceVersion last seen, so that a list after a broken watch is no news.
    tokens: BTreeMap<ObjectKey, String>,
    /// During a list: the Secrets of ours that came.
    listed: Option<BTreeSet<ObjectKey>>,
}

impl SecretSink {
    /// A sink that knows Secrets of ours by these stores.
    pub fn new(queues: Queues, resources: Kept<FerrVaultSecret>, connections: Kept<FerrVaultConnection>) -> Self {
        Self { queues, resources, connections, tokens: BTreeMap::new(), listed: None }
    }

    fn keeper(&self, secret: &ObjectKey, due: &Due) {
        for key in self.resources.referring(Relation::Target, secret) {
            if let Some(resource) = self.resources.get(&key) {
                self.queues.resource(&resource, due.clone(), Urgency::Now);
            }
        }
    }

    fn token_changed(&self, connections: Vec<ObjectKey>, due: &Due) {
        for connection in connections {
            users(&self.queues, &self.resources, &connection, due);
            self.queues.connection(connection, Urgency::Now);
        }
    }
}

impl Sink<PartialObjectMeta<Secret>> for SecretSink {
    fn relist_started(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    fn applied(&mut self, secret: PartialObjectMeta<Secret>) {
        let key = key_of(&secret.metadata);
        let version = secret.metadata.resource_version.clone().unwrap_or_default();
        let token_of = self.connections.referring(Relation::Token, &key);
        let is_target = !self.resources.referring(Relation::Target, &key).is_empty();
        if let Some(listed) = &mut self.listed
            && (is_target || !token_of.is_empty())
        {
            listed.insert(key.clone());
        }
        if is_target {
            self.keeper(&key, &Due::seen(version.clone()));
        }
        if token_of.is_empty() {
            self.tokens.remove(&key);
        } else if self.tokens.insert(key, version.clone()).as_ref() != Some(&version) {
            self.token_changed(token_of, &Due::seen(version).awaited());
        }
    }

    fn deleted(&mut self, gone: &ObjectMeta) {
        let key = key_of(gone);
        self.tokens.remove(&key);
        self.keeper(&key, &Due::gone());
        self.token_changed(self.connections.referring(Relation::Token, &key), &Due::sync().awaited());
    }

    /// What was deleted while no watch stood is missing from the list, and nobody else will tell. A target that was never
    /// made is missing as well, and is no reason to ask FerrVault ahead of the schedule.
    fn relist_done(&mut self) {
        let Some(listed) = self.listed.take() else { return };
        // The Go operator left no more than the time.
        let has_target = |resource: &FerrVaultSecret| {
            let status = resource.status.as_ref();
            status.is_some_and(|it| it.content_hash.is_some() || it.last_synced_at.is_some())
        };
        for resource in self.resources.all().into_iter().filter(|resource| has_target(resource)) {
            let target = key_of(&resource.metadata).beside(resource.target_name());
            if !listed.contains(&target) {
                self.queues.resource(&resource, Due::sync(), Urgency::Routine);
            }
        }
        let gone: Vec<ObjectKey> = self.tokens.keys().filter(|key| !listed.contains(key)).cloned().collect();
        for key in gone {
            self.tokens.remove(&key);
            self.token_changed(self.connections.referring(Relation::Token, &key), &Due::sync().awaited());
        }
    }

    fn undecodable(&mut self, namespace: &str, name: &str, why: &str) {
        // Metadata that cannot be read: nothing of ours is known to be in it.
        tracing::debug!(namespace, name, why, "metadata of a Secret cannot be read");
    }
}
