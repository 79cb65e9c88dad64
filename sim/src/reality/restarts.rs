//! Counts restarts on a real cluster, beside the operator and without asking it: every change of a pod template that
//! brings a mark which was not there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use ferrvault_api::marks;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use super::NotAsSimulated;
use crate::cast;

type Counts = Arc<Mutex<BTreeMap<String, usize>>>;

/// The counts of one namespace, until they are dropped.
pub(super) struct Restarts {
    counts: Counts,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Restarts {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Restarts {
    /// Counts from now on.
    pub(super) async fn count(client: &Client, namespace: &str) -> Result<Self, NotAsSimulated> {
        let counts = Counts::default();
        let tasks = vec![
            of_kind(Api::<Deployment>::namespaced(client.clone(), namespace), Arc::clone(&counts)).await?,
            of_kind(Api::<StatefulSet>::namespaced(client.clone(), namespace), Arc::clone(&counts)).await?,
            of_kind(Api::<DaemonSet>::namespaced(client.clone(), namespace), Arc::clone(&counts)).await?,
        ];
        Ok(Self { counts, tasks })
    }

    /// How often each workload was restarted so far. `Err` when a count has ended early.
    pub(super) fn so_far(&self) -> Result<BTreeMap<String, usize>, NotAsSimulated> {
        if self.tasks.iter().any(JoinHandle::is_finished) {
            return Err(NotAsSimulated::CountEnded);
        }
        Ok(self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

async fn of_kind<K>(api: Api<K>, counts: Counts) -> Result<JoinHandle<()>, NotAsSimulated>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned + Send + 'static,
{
    let there = api.list(&ListParams::default()).await?;
    let mut known: BTreeMap<String, BTreeSet<(String, String)>> =
        there.items.iter().map(|workload| (workload.name_any(), marks_of(workload))).collect();
    let version = there.metadata.resource_version.unwrap_or_default();
    // As long as the API server lets it be at all: longer than any play.
    let params = WatchParams::default().timeout(290);
    let events = api.watch(&params, &version).await?.map_err(drop);
    Ok(tokio::spawn(async move {
        let mut events = events.boxed();
        while let Some(Ok(event)) = events.next().await {
            match event {
                WatchEvent::Added(workload) | WatchEvent::Modified(workload) => {
                    let marks = marks_of(&workload);
                    let before = known.insert(workload.name_any(), marks.clone()).unwrap_or_default();
                    if !marks.is_subset(&before) {
                        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                        *counts.entry(workload.name_any()).or_default() += 1;
                    }
                }
                WatchEvent::Deleted(workload) => drop(known.remove(&workload.name_any())),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => return,
            }
        }
    }))
}

fn marks_of<K: Serialize>(workload: &K) -> BTreeSet<(String, String)> {
    let annotations = cast::template_annotations(&serde_json::to_value(workload).unwrap_or_default());
    annotations.into_iter().filter(|(name, _)| name.starts_with(marks::CONTENT_HASH)).collect()
}
