//! Counts how often the pod template of each workload of a namespace changed: by watching them, independently of the
//! operator and of what it says it did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use serde_json::Value;
use tokio::task::JoinHandle;

/// A workload, by kind and name.
type Key = (String, String);

/// What was seen of one workload.
#[derive(Clone, Debug, Default)]
struct Seen {
    uid: String,
    resource_version: String,
    generation: i64,
    /// Its pod templates, each as it was when it was another than the one before.
    templates: Vec<Value>,
}

/// What was seen of one workload, for who judges many at once.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its generation, which the API server counts: a second count beside the watch's own.
    pub generation: i64,
    /// Its pod templates, from that of its creation on.
    pub templates: Vec<Value>,
}

/// The pod templates seen so far. Dropping it ends the watches.
pub struct Templates {
    seen: Arc<Mutex<BTreeMap<Key, Seen>>>,
    watches: Vec<JoinHandle<()>>,
}

impl Templates {
    /// Starts watching.
    pub fn watch(client: &Client, namespace: &str) -> Self {
        let seen = Arc::default();
        let watches = vec![
            watch::<Deployment>(client, namespace, &seen),
            watch::<StatefulSet>(client, namespace, &seen),
            watch::<DaemonSet>(client, namespace, &seen),
        ];
        Self { seen, watches }
    }

    /// How often the template of a workload changed since its creation; nothing when the watch has not come to
    /// `resource_version` yet.
    pub fn changes(&self, kind: &str, name: &str, resource_version: &str) -> Option<usize> {
        let seen = lock(&self.seen);
        let seen = seen.get(&(kind.to_owned(), name.to_owned()))?;
        (seen.resource_version == resource_version).then(|| seen.templates.len() - 1)
    }

    /// How many workloads changed at least `changes` times since their creation.
    pub fn reached(&self, changes: i64) -> usize {
        lock(&self.seen).values().filter(|seen| seen.generation > changes).count()
    }

    /// Everything that was seen, by kind and name.
    pub fn tally(&self) -> Vec<Tally> {
        let tally = |((kind, name), seen): (&Key, &Seen)| Tally {
            kind: kind.clone(),
            name: name.clone(),
            generation: seen.generation,
            templates: seen.templates.clone(),
        };
        lock(&self.seen).iter().map(tally).collect()
    }
}

impl Drop for Templates {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

fn watch<K>(client: &Client, namespace: &str, seen: &Arc<Mutex<BTreeMap<Key, Seen>>>) -> JoinHandle<()>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug + Send,
    K: serde::de::DeserializeOwned + serde::Serialize + 'static,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let seen = Arc::clone(seen);
    tokio::spawn(async move {
        let mut objects = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
        while let Some(object) = objects.next().await {
            if let Ok(object) = object {
                note(&mut lock(&seen), &object);
            }
        }
    })
}

fn note<K: Resource<DynamicType = ()> + serde::Serialize>(seen: &mut BTreeMap<Key, Seen>, object: &K) {
    let key = (K::kind(&()).into_owned(), object.meta().name.clone().unwrap_or_default());
    let uid = object.meta().uid.clone().unwrap_or_default();
    let entry = seen.entry(key).or_default();
    if entry.uid != uid {
        *entry = Seen { uid, ..Seen::default() };
    }
    entry.resource_version = object.meta().resource_version.clone().unwrap_or_default();
    entry.generation = object.meta().generation.unwrap_or_default();
    let template = serde_json::to_value(object).unwrap_or_default()["spec"]["template"].clone();
    if entry.templates.last() != Some(&template) {
        entry.templates.push(template);
    }
}

fn lock(seen: &Mutex<BTreeMap<Key, Seen>>) -> MutexGuard<'_, BTreeMap<Key, Seen>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
