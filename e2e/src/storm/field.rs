//! The field that a storm goes over: resources with one workload each, of all three kinds, that read one vault.
//!
//! Knows what FerrVault holds and what the API server holds. Whether the operator lives is no business of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ferrvault_api::{FerrVaultSecret, condition, marks};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use super::verdict::{Fault, Rested};
use crate::canaries::fresh;
use crate::objects::{self, TOKEN, restart};
use crate::own::Own;
use crate::scene::{Kind, Scene, same_data};

/// Kinds of workloads, taken in turn.
const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Requests in flight while objects are made: where an API server writes fastest on two cores.
const IN_FLIGHT: usize = 32;

/// How often each resource is read again by itself. A thousand of them then ask 17 times a second, which leaves a debug
/// build time for the rest.
const REFRESH: &str = "1m";

/// Faults that one resource can have at a time: one of each kind.
const FAULTS_EACH: usize = 4;

/// Between two looks at the whole field, which costs the API server megabytes.
const LOOK: Duration = Duration::from_secs(1);

/// The field.
pub struct Field<'o> {
    scene: &'o Scene,
    count: usize,
    round: Cell<usize>,
    first: String,
    held: RefCell<String>,
}

impl<'o> Field<'o> {
    /// Makes `count` resources and workloads in the scene of `own`.
    pub async fn sow(own: &'o Own, count: usize) -> Self {
        let scene = &own.scene;
        let first = fresh("storm");
        scene.set(&[("USER", "app"), ("PASSWORD", &first)]).await;
        scene.connect().await;
        let make = async |number: usize| {
            let (kind, name) = (KINDS[number % KINDS.len()], format!("r-{number:05}"));
            scene.workload(kind, &name).await;
            let spec = json!({"rolloutRestart": [restart(kind, &name)], "refreshInterval": REFRESH});
            scene.resource(&name, spec).await;
        };
        let make = &make;
        futures::stream::iter(0..count).map(make).buffer_unordered(IN_FLIGHT).collect::<Vec<()>>().await;
        Self { scene, count, round: Cell::new(0), held: RefCell::new(first.clone()), first }
    }

    /// How many resources there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many workloads have been restarted in this round.
    pub fn restarted(&self) -> usize {
        self.scene.templates().reached(i64::try_from(self.round.get()).unwrap())
    }

    /// Template changes so far, by the larger of the two counts for each workload.
    pub async fn restarts(&self) -> usize {
        self.rested().await.iter().map(Rested::changes).sum()
    }

    /// Another value: a new one, and in every second round the first one again, which is a change like any other.
    pub async fn rotate(&self) {
        self.round.set(self.round.get() + 1);
        let next = if self.round.get().is_multiple_of(2) { self.first.clone() } else { fresh("storm") };
        self.scene.set(&[("PASSWORD", &next)]).await;
        self.held.replace(next);
        self.make_due().await;
    }

    /// Makes every resource due: their connection's token was written.
    async fn make_due(&self) {
        let touch = json!({"metadata": {"annotations": {"touched": format!("{:?}", fastrand::u64(..))}}});
        self.scene.edit::<Secret>(TOKEN, touch).await;
    }

    /// Waits until everything holds the first value and nothing was restarted for it.
    pub async fn until_synced(&self, limit: Duration, tell: &dyn Fn(&str)) {
        let found = self.settle(limit, tell).await;
        assert!(found.is_empty(), "the field does not come up: {}", found[0]);
    }

    /// Waits until nothing is wrong any more, or nothing has come nearer to that for `patience`; what is wrong then.
    pub async fn settle(&self, patience: Duration, tell: &dyn Fn(&str)) -> Vec<Fault> {
        let (mut nearest, mut since) = (usize::MAX, Instant::now());
        loop {
            // The whole field is looked at only when there is hope: listing it takes from the same two cores.
            let due = if self.round.get() == 0 { 0 } else { self.count };
            let waiting = due.saturating_sub(self.restarted());
            let over = since.elapsed() >= patience;
            let left = if waiting == 0 || over {
                let faults = self.judge().await;
                // A doubling does not go away.
                let hopeless = faults.iter().any(|fault| matches!(fault, Fault::Doubled(_)));
                if faults.is_empty() || over || hopeless {
                    return faults;
                }
                tell(&format!("coming to rest: {} of {} left", faults.len(), self.count));
                faults.len()
            } else {
                tell(&format!("coming to rest: {} of {due} restarted", due - waiting));
                // Further than any number of faults.
                self.count * FAULTS_EACH + waiting
            };
            if left < nearest {
                (nearest, since) = (left, Instant::now());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Makes everything due once more and waits until a pass over each resource has ended. Nothing ended for `patience` is
    /// a failure.
    pub async fn look_again(&self, patience: Duration, tell: &dyn Fn(&str)) {
        let before = self.attempts().await;
        // Times are told in whole seconds: a pass that ends within the same one would not be seen.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.make_due().await;
        let (mut fewest, mut since) = (usize::MAX, Instant::now());
        loop {
            let now = self.attempts().await;
            let left = before.iter().filter(|(name, attempt)| now.get(*name) == Some(*attempt)).count();
            if left == 0 {
                return;
            }
            if left < fewest {
                (fewest, since) = (left, Instant::now());
            }
            assert!(since.elapsed() < patience, "no pass over {left} resources within {patience:?}");
            tell(&format!("a pass over everything: {left} left"));
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn attempts(&self) -> BTreeMap<String, Option<String>> {
        let attempt = |resource: FerrVaultSecret| {
            let attempted = resource.status.as_ref().and_then(|status| status.last_attempted_at.clone());
            (resource.name_any(), attempted.map(|time| time.0.to_string()))
        };
        self.all::<FerrVaultSecret>().await.into_iter().map(attempt).collect()
    }

    /// What is wrong now.
    pub async fn judge(&self) -> Vec<Fault> {
        let rested = self.rested().await;
        rested.iter().flat_map(|rested| rested.faults(self.round.get())).collect()
    }

    async fn rested(&self) -> Vec<Rested> {
        let resources = self.all::<FerrVaultSecret>().await;
        let secrets: BTreeMap<String, Secret> =
            self.all::<Secret>().await.into_iter().map(|secret| (secret.name_any(), secret)).collect();
        let tally: BTreeMap<_, _> =
            self.scene.templates().tally().into_iter().map(|tally| (tally.name.clone(), tally)).collect();
        let held = self.held.borrow().clone();
        let wanted = [("USER", &b"app"[..]), ("PASSWORD", held.as_bytes())];
        let rested = |resource: &FerrVaultSecret| {
            let name = resource.name_any();
            let mark = marks::workload_mark(resource.metadata.uid.as_deref().unwrap_or_default());
            let secret = secrets.get(&name);
            let version = secret.and_then(|secret| secret.annotations().get(marks::CONTENT_HASH).cloned());
            let seen = tally.get(&name);
            let marked =
                |template: &serde_json::Value| template["metadata"]["annotations"][&mark].as_str().map(str::to_owned);
            Rested {
                workload: seen.map_or_else(|| name.clone(), |seen| format!("{}/{name}", seen.kind)),
                generation: seen.map_or(0, |seen| seen.generation),
                marks: seen.map(|seen| seen.templates.iter().map(marked).collect()).unwrap_or_default(),
                current: secret.is_some_and(|secret| same_data(secret, &wanted).is_ok()),
                unsettled: unsettled(resource, version.as_deref(), self.round.get()),
                version,
            }
        };
        assert_eq!(resources.len(), self.count, "resources are missing");
        resources.iter().map(rested).collect()
    }

    /// All objects of a kind. Asked again while the API server is away.
    async fn all<K: Kind>(&self) -> Vec<K> {
        let list = async || {
            let listed = self.scene.api::<K>().list(&ListParams::default()).await;
            listed.map(|list| list.items).map_err(|error| error.to_string())
        };
        self.scene.until("a list", list).await
    }
}

/// What a status has to say against everything being done for `version`.
fn unsettled(resource: &FerrVaultSecret, version: Option<&str>, round: usize) -> Option<String> {
    let Some(status) = &resource.status else { return Some("no status".to_owned()) };
    let version = version.map(str::to_owned);
    if status.content_hash != version || status.last_rollout_hash != version {
        let (content, rollout) = (&status.content_hash, &status.last_rollout_hash);
        return Some(format!("contentHash {content:?}, lastRolloutHash {rollout:?}, target {version:?}"));
    }
    if round > 0 && (status.rollouts.len() != 1 || status.rollouts.iter().any(|it| Some(&it.hash) != version.as_ref()))
    {
        return Some(format!("rollouts {:?}", status.rollouts));
    }
    [condition::READY, condition::ROLLOUT_RESTARTED].into_iter().find_map(|type_| {
        let found = objects::condition(&status.conditions, type_);
        let fine =
            found.is_some_and(|it| it.status == "True" && it.observed_generation == resource.metadata.generation);
        let synced = type_ != condition::READY || found.is_some_and(|it| it.reason == "Synced");
        (!fine || !synced).then(|| match found {
            Some(it) => format!("{type_}={} {}: {}", it.status, it.reason, it.message),
            None => format!("no condition {type_}"),
        })
    })
}
