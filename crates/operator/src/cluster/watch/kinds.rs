//! What is watched, and what is thrown away before anybody may keep it.
//!
//! Our two kinds come whole, behind a guard that contains an object which cannot be read. Secrets come as metadata only
//! and without that guard, because it would hide from the client library that metadata is all that may be asked for.

use std::fmt::Debug;

use ferrvault_api::connection::FerrVaultConnection;
use ferrvault_api::secret::FerrVaultSecret;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Sink, Watch, WatchHealth, resource_name};
use crate::entropy::Entropy;

/// Prefix of every annotation that means something to the operator.
const OURS: &str = "ferrvault.com/";

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every namespace.
    Cluster,
    /// This one only.
    Namespace(String),
}

impl Scope {
    /// The scope that a `--watch-namespace` value asks for: empty means every namespace.
    pub fn new(namespace: &str) -> Self {
        if namespace.is_empty() { Self::Cluster } else { Self::Namespace(namespace.to_owned()) }
    }

    fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match self {
            Self::Cluster => Api::all(client.clone()),
            Self::Namespace(namespace) => Api::namespaced(client.clone(), namespace),
        }
    }
}

/// A running watch.
#[derive(Debug)]
pub struct Started {
    /// How it is doing.
    pub health: WatchHealth,
    /// Its task: ends when told to stop. If it ends otherwise, the process is not worth keeping.
    pub task: JoinHandle<()>,
}

/// An object as the API server's answer is read.
pub(super) trait Watched:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static
{
    /// What the sink gets.
    type Object;

    /// The object, slimmed, if it could be read.
    fn open(self) -> Result<Self::Object, Box<InvalidObject>>;
}

impl<K> Watched for DeserializeGuard<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    type Object = K;

    fn open(self) -> Result<K, Box<InvalidObject>> {
        let mut object = self.0?;
        slim_custom(object.meta_mut());
        Ok(object)
    }
}

impl Watched for PartialObjectMeta<Secret> {
    type Object = Self;

    fn open(mut self) -> Result<Self, Box<InvalidObject>> {
        self.types = None;
        slim_secret(&mut self.metadata);
        Ok(self)
    }
}

/// Starts the watch of the resources.
pub fn spawn_resources(
    client: &Client,
    scope: &Scope,
    sink: impl Sink<FerrVaultSecret>,
    entropy: &Entropy,
    stop: &CancellationToken,
) -> Started {
    spawn::<DeserializeGuard<FerrVaultSecret>>(client, scope, sink, entropy, stop)
}

/// Starts the watch of the connections.
pub fn spawn_connections(
    client: &Client,
    scope: &Scope,
    sink: impl Sink<FerrVaultConnection>,
    entropy: &Entropy,
    stop: &CancellationToken,
) -> Started {
    spawn::<DeserializeGuard<FerrVaultConnection>>(client, scope, sink, entropy, stop)
}

/// Starts the watch of the metadata of Secrets. Of the annotations only ours arrive, and no label.
pub fn spawn_secrets(
    client: &Client,
    scope: &Scope,
    sink: impl Sink<PartialObjectMeta<Secret>>,
    entropy: &Entropy,
    stop: &CancellationToken,
) -> Started {
    spawn::<PartialObjectMeta<Secret>>(client, scope, sink, entropy, stop)
}

fn spawn<W: Watched>(
    client: &Client,
    scope: &Scope,
    sink: impl Sink<W::Object>,
    entropy: &Entropy,
    stop: &CancellationToken,
) -> Started {
    let health = WatchHealth::new(resource_name::<W>());
    let watch = Watch::<W, _>::new(scope.api(client), sink, health.clone(), entropy.clone());
    Started { health, task: tokio::spawn(watch.run(stop.clone())) }
}

/// Drops what no pass ever reads. Applies to answers of our own writes, too, which go into the same store.
pub(in crate::cluster) fn slim_custom(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    metadata.labels = None;
    metadata.generate_name = None;
    metadata.self_link = None;
    metadata.owner_references = None;
    keep_our_annotations(metadata);
}

fn slim_secret(metadata: &mut ObjectMeta) {
    let owners = metadata.owner_references.take();
    slim_custom(metadata);
    metadata.owner_references = owners;
    metadata.finalizers = None;
}

fn keep_our_annotations(metadata: &mut ObjectMeta) {
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|name, _| name.starts_with(OURS));
        if annotations.is_empty() {
            metadata.annotations = None;
        }
    }
}
