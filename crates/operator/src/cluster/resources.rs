//! Our own two kinds: fresh reads, status writes, finalizers.
//!
//! A status is written as a merge patch of what differs. With the resourceVersion of the read it follows from it is
//! refused when somebody wrote in between; without one it may carry times only.

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{ApiResource, DynamicObject, Patch};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::access::{Cluster, patch_params};
use super::error::CallError;
use super::secrets::namespace_of;
use crate::key::ObjectKey;

/// One of our own kinds.
pub trait OwnKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug
{
}

impl OwnKind for FerrVaultSecret {}
impl OwnKind for FerrVaultConnection {}

impl Cluster {
    /// Reads the object as it is now, past any store.
    pub async fn read_own<K: OwnKind>(&self, key: &ObjectKey) -> Result<Option<K>, CallError> {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        self.read(api.get_opt(&key.name)).await
    }

    /// Writes what differs between two statuses, on condition that the object is still the one that was read.
    pub async fn write_status<K: OwnKind, S: Serialize>(
        &self,
        object: &K,
        before: Option<&S>,
        after: &S,
    ) -> Result<K, CallError> {
        let mut patch = json!({ "status": difference(before, after)? });
        if let (Some(body), Some(version)) = (patch.as_object_mut(), &object.meta().resource_version) {
            body.insert("metadata".to_owned(), json!({ "resourceVersion": version }));
        }
        self.patch_status(object, &patch).await
    }

    /// Writes times and nothing else: whatever else was written since stays.
    pub async fn write_heartbeat<K: OwnKind, S: Serialize>(
        &self,
        object: &K,
        before: Option<&S>,
        after: &S,
    ) -> Result<K, CallError> {
        self.patch_status(object, &json!({ "status": difference(before, after)? })).await
    }

    /// Replaces the finalizers, on condition that the object is still the one that was read.
    pub async fn write_finalizers<K: OwnKind>(&self, object: &K, finalizers: &[String]) -> Result<K, CallError> {
        let meta = object.meta();
        let patch = json!({ "metadata": { "resourceVersion": meta.resource_version, "finalizers": finalizers } });
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace_of(object));
        let name = meta.name.clone().unwrap_or_default();
        self.write(api.patch(&name, &patch_params(), &Patch::Merge(&patch))).await
    }

    /// Puts `new` in the place of the condition of its type on an object that cannot be read as what it is, on condition
    /// that nobody writes in between. Nothing is written where it says so already, or where the object is gone.
    pub async fn write_condition_of_unreadable(
        &self,
        kind: &ApiResource,
        key: &ObjectKey,
        mut new: Condition,
    ) -> Result<(), CallError> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &key.namespace, kind);
        let Some(object) = self.read(api.get_opt(&key.name)).await? else { return Ok(()) };
        new.observed_generation = object.metadata.generation;
        let stored = object.data.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = stored.cloned().unwrap_or_default();
        let says =
            |condition: &Value, field: &str, text: &str| condition.get(field).and_then(Value::as_str) == Some(text);
        if let Some(old) = conditions.iter().find(|old| says(old, "type", &new.type_)) {
            if says(old, "reason", &new.reason) && says(old, "message", &new.message) {
                return Ok(());
            }
            let since = old.get("lastTransitionTime").and_then(Value::as_str).and_then(|text| text.parse().ok());
            if let Some(since) = since.filter(|_| says(old, "status", &new.status)) {
                new.last_transition_time = Time(since);
            }
        }
        conditions.retain(|old| !says(old, "type", &new.type_));
        conditions.insert(0, json!(new));
        let patch = json!({
            "metadata": { "resourceVersion": object.metadata.resource_version },
            "status": { "conditions": conditions },
        });
        self.write(api.patch_status(&key.name, &patch_params(), &Patch::Merge(&patch))).await.map(drop)
    }

    async fn patch_status<K: OwnKind>(&self, object: &K, patch: &Value) -> Result<K, CallError> {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace_of(object));
        let name = object.meta().name.clone().unwrap_or_default();
        self.write(api.patch_status(&name, &patch_params(), &Patch::Merge(patch))).await
    }
}

/// The merge patch from one status to the other: fields that differ whole, fields that went as null.
fn difference<S: Serialize>(before: Option<&S>, after: &S) -> Result<Value, CallError> {
    let fields = |status: &S| match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(CallError::Undecodable { what: "a status that is no object".to_owned() }),
    };
    let before = before.map(fields).transpose()?.unwrap_or_default();
    let after = fields(after)?;
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let mut patch: Map<String, Value> = gone.collect();
    patch.extend(after.into_iter().filter(|(name, value)| before.get(name) != Some(value)));
    Ok(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_changed_and_nulls_what_went() {
        let cases = [
            ("nothing before", None, json!({"a": 1}), json!({"a": 1})),
            ("the same", Some(json!({"a": [1]})), json!({"a": [1]}), json!({})),
            ("a list is replaced whole", Some(json!({"a": [1, 2]})), json!({"a": [2]}), json!({"a": [2]})),
            ("a field that went", Some(json!({"a": 1, "b": 2})), json!({"b": 2}), json!({"a": null})),
        ];
        for (case, before, after, expected) in cases {
            assert_eq!(difference(before.as_ref(), &after).unwrap(), expected, "{case}");
        }
    }
}
