//! Objects as a person would write them, and what there is to read from them. Pure.

use ferrvault_api::FerrVaultSecret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Objects with this label refuse changes: Deployments, `StatefulSets` and `DaemonSets` of their pod template,
/// Secrets of their data.
pub const SEALED: &str = "e2e.example/sealed";

/// Secrets whose name begins like this cannot be created.
pub const SEALED_NAME: &str = "sealed-";

/// The connection of a namespace that needs only one, and the Secret with its token.
pub const CONNECTION: &str = "main";
/// The Secret with the token of [`CONNECTION`], under the key `token`.
pub const TOKEN: &str = "main-token";

/// An object of the type that is wanted.
pub fn typed<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

/// Puts `patch` over `base`, maps merged and nulls removed, as a merge patch does.
pub fn merge(base: &mut Value, patch: Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    base.remove(&key);
                } else {
                    merge(base.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (base, patch) => *base = patch,
    }
}

/// A connection that asks with the token in [`TOKEN`].
pub fn connection(url: &str) -> Value {
    json!({"metadata": {"name": CONNECTION}, "spec": {"url": url, "tokenSecretRef": {"name": TOKEN, "key": "token"}}})
}

/// A resource that reads all of `vault` every second.
pub fn resource(name: &str, vault: &str, spec: Value) -> Value {
    let mut whole = json!({
        "metadata": {"name": name},
        "spec": {"connectionRef": {"name": CONNECTION}, "vault": vault, "refreshInterval": "1s"},
    });
    merge(&mut whole["spec"], spec);
    whole
}

/// A workload of any of the three kinds. Nobody runs its pods.
pub fn workload(kind: &str, name: &str) -> Value {
    let labels = json!({"app": name});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}});
    let mut spec = json!({"selector": {"matchLabels": labels}, "template": pod});
    if kind == "StatefulSet" {
        spec["serviceName"] = json!(name);
    }
    if kind != "DaemonSet" {
        spec["replicas"] = json!(1);
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// The entry of `spec.rolloutRestart` for a workload.
pub fn restart(kind: &str, name: &str) -> Value {
    json!({"kind": kind, "name": name})
}

/// The admission policies that make seals work, each with its binding.
pub fn seals() -> Vec<(&'static str, Value)> {
    let policy = |name: &str, group: &str, resources: &[&str], operations: &[&str], condition: &str, rule: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [
                    {"apiGroups": [group], "apiVersions": ["v1"], "resources": resources, "operations": operations},
                ]},
                "matchConditions": [{"name": "sealed", "expression": condition}],
                "validations": [{"expression": rule, "message": "this object is sealed"}],
            },
        })
    };
    let binding = |name: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        })
    };
    let labelled = format!("has(oldObject.metadata.labels) && '{SEALED}' in oldObject.metadata.labels");
    let named = format!("object.metadata.name.startsWith('{SEALED_NAME}')");
    let workloads = &["deployments", "statefulsets", "daemonsets"];
    let same_template = "object.spec.template == oldObject.spec.template";
    let same_data = "(has(object.data) ? object.data : {}) == (has(oldObject.data) ? oldObject.data : {})";
    vec![
        (
            "ValidatingAdmissionPolicy",
            policy("sealed-workloads", "apps", workloads, &["UPDATE"], &labelled, same_template),
        ),
        ("ValidatingAdmissionPolicyBinding", binding("sealed-workloads")),
        ("ValidatingAdmissionPolicy", policy("sealed-secrets", "", &["secrets"], &["UPDATE"], &labelled, same_data)),
        ("ValidatingAdmissionPolicyBinding", binding("sealed-secrets")),
        ("ValidatingAdmissionPolicy", policy("sealed-names", "", &["secrets"], &["CREATE"], &named, "false")),
        ("ValidatingAdmissionPolicyBinding", binding("sealed-names")),
    ]
}

/// The condition of this type.
pub fn condition<'c>(conditions: &'c [Condition], type_: &str) -> Option<&'c Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// The conditions of a resource.
pub fn conditions(resource: &FerrVaultSecret) -> &[Condition] {
    resource.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_sets_what_is_named_and_removes_what_is_null() {
        let mut base = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        merge(&mut base, json!({"a": {"b": null, "e": 3}, "d": [2], "f": {"g": 4}}));
        assert_eq!(base, json!({"a": {"c": 2, "e": 3}, "d": [2], "f": {"g": 4}}));
    }
}
