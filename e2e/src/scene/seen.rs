//! What a scenario sees in its scene: conditions, passes, targets and restarts. Only what the API server holds is looked at;
//! a value is compared and never shown.

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, condition, marks};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::{Kind, Scene};
use crate::objects;

impl Scene {
    /// Waits until a resource's condition has this status and reason for the present generation.
    pub async fn until_condition(&self, name: &str, type_: &str, status: &str, reason: &str) -> FerrVaultSecret {
        self.until_it(name, &format!("{type_}={status} {reason}"), |resource: &FerrVaultSecret| {
            let generation = resource.metadata.generation;
            expect(objects::conditions(resource), type_, status, reason, generation).map(|_| resource.clone())
        })
        .await
    }

    /// Waits until a resource is Ready and synced, its present generation included.
    pub async fn synced(&self, name: &str) -> FerrVaultSecret {
        self.until_condition(name, condition::READY, "True", "Synced").await
    }

    /// Waits until a connection's condition Ready has this status and reason; the condition.
    pub async fn until_connection(&self, name: &str, status: &str, reason: &str) -> Condition {
        self.until_it(name, &format!("Ready={status} {reason}"), |connection: &FerrVaultConnection| {
            let conditions = connection.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
            expect(conditions, condition::READY, status, reason, connection.metadata.generation).cloned()
        })
        .await
    }

    /// Sits through `count` passes over a resource that begin from now on, and returns it as the last one left it.
    pub async fn passes(&self, name: &str, count: usize) -> FerrVaultSecret {
        let attempted = |resource: &FerrVaultSecret| {
            resource.status.as_ref().and_then(|status| status.last_attempted_at.clone()).map(|time| time.0)
        };
        let mut resource = self.get::<FerrVaultSecret>(name).await;
        // One more: a pass that ends now may have begun before.
        for number in 0..=count {
            let before = attempted(&resource);
            resource = self
                .until_it(name, &format!("pass {number} ends"), |now: &FerrVaultSecret| {
                    if attempted(now) == before { Err("still the same pass".to_owned()) } else { Ok(now.clone()) }
                })
                .await;
        }
        resource
    }

    // Targets.

    /// Waits until a Secret holds exactly these keys and values and is the resource's own; the version that it carries.
    pub async fn target(&self, name: &str, resource: &FerrVaultSecret, wanted: &[(&str, &[u8])]) -> String {
        self.until_it(name, "holds what the vault holds", |secret: &Secret| {
            same_data(secret, wanted)?;
            let owner = secret.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
            if owner.map(|owner| Some(&owner.uid)) != Some(resource.metadata.uid.as_ref()) {
                return Err("not owned by the resource".to_owned());
            }
            let annotations = secret.metadata.annotations.clone().unwrap_or_default();
            if annotations.get(marks::MANAGED_BY).map(String::as_str) != Some(marks::MANAGER) {
                return Err("not marked as managed".to_owned());
            }
            annotations.get(marks::CONTENT_HASH).cloned().ok_or_else(|| "no version".to_owned())
        })
        .await
    }

    // Workloads.

    /// Creates a workload.
    pub async fn workload(&self, kind: &str, name: &str) {
        let object = objects::workload(kind, name);
        match kind {
            "Deployment" => drop(self.create::<Deployment>(object).await),
            "StatefulSet" => drop(self.create::<StatefulSet>(object).await),
            _ => drop(self.create::<DaemonSet>(object).await),
        }
    }

    /// How often a workload's pod template changed since its creation, by the independent watch, which must agree with
    /// the workload's generation; and the annotations that its template has now.
    pub async fn restarts(&self, kind: &str, name: &str) -> (usize, Value) {
        match kind {
            "Deployment" => self.restarts_of::<Deployment>(name).await,
            "StatefulSet" => self.restarts_of::<StatefulSet>(name).await,
            _ => self.restarts_of::<DaemonSet>(name).await,
        }
    }

    async fn restarts_of<K: Kind>(&self, name: &str) -> (usize, Value) {
        let kind = K::kind(&());
        let what = format!("the watch has seen {kind} {name} as it is now");
        self.until(&what, async || {
            let object = self.get::<K>(name).await;
            let version = object.meta().resource_version.clone().unwrap_or_default();
            let seen = self.templates.changes(&kind, name, &version).ok_or("not yet")?;
            // Nobody but the operator changes a spec here, and the generation counts each change.
            assert_eq!(object.meta().generation, Some(1 + i64::try_from(seen).unwrap()), "{kind} {name}");
            let template = &serde_json::to_value(&object).unwrap()["spec"]["template"];
            Ok((seen, template["metadata"]["annotations"].clone()))
        })
        .await
    }

    /// Waits until a workload was restarted `count` times in all, the last time for `version` of this resource.
    pub async fn restarted(&self, kind: &str, name: &str, count: usize, resource: &FerrVaultSecret, version: &str) {
        let mark = marks::workload_mark(resource.metadata.uid.as_deref().unwrap());
        self.until(&format!("{kind} {name} is restarted for {version}"), async || {
            let (seen, annotations) = self.restarts(kind, name).await;
            assert!(seen <= count, "{kind} {name} was restarted {seen} times where {count} were due: {annotations}");
            let stamped = annotations[&mark] == version && annotations[marks::RESTARTED_AT].is_string();
            if seen == count && stamped { Ok(()) } else { Err(format!("{seen} restarts, {annotations}")) }
        })
        .await;
    }
}

/// Whether the condition is there as expected, for this generation.
fn expect<'c>(
    conditions: &'c [Condition],
    type_: &str,
    status: &str,
    reason: &str,
    generation: Option<i64>,
) -> Result<&'c Condition, String> {
    let found = objects::condition(conditions, type_).ok_or_else(|| format!("no condition {type_}"))?;
    if found.status == status && found.reason == reason && found.observed_generation == generation {
        return Ok(found);
    }
    Err(format!("{type_}={} {}: {}", found.status, found.reason, found.message))
}

/// Whether a Secret holds exactly these keys and values. What is said otherwise shows no value.
pub fn same_data(secret: &Secret, wanted: &[(&str, &[u8])]) -> Result<(), String> {
    let data = secret.data.clone().unwrap_or_default();
    let keys: Vec<&String> = data.keys().collect();
    let same = data.len() == wanted.len()
        && wanted.iter().all(|(key, value)| data.get(*key).is_some_and(|found| found.0 == *value));
    if same { Ok(()) } else { Err(format!("other data, under the keys {keys:?}")) }
}
