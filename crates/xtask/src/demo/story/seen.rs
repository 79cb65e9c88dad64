//! What the objects say, judged: pure functions from an object to what the story waits for. No text made here holds a
//! value.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use kube::api::ListParams;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, Reason, condition, marks};

use crate::programs::Values;

use super::super::objects::{NAMESPACE, PODS, WORKLOAD};
use super::super::observe::Look;

/// A version of the target that was seen.
pub(super) struct Target {
    /// The content's version, as the operator names it.
    pub(super) version: String,
}

/// The target equals the vault, belongs to its resource, and is not the earlier version.
pub(super) fn target(secret: Option<&Secret>, wanted: &Values, earlier: Option<&Target>) -> Look<Target> {
    let Some(secret) = secret else { return Look::NotYet("no Secret".to_owned()) };
    let data = secret.data.clone().unwrap_or_default();
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    let equal = data.len() == wanted.0.len()
        && wanted.0.iter().all(|(key, value)| data.get(key).is_some_and(|found| found.0 == **value));
    if !equal {
        return Look::NotYet(format!("a Secret with the keys {} that differs from the vault", keys.join(", ")));
    }
    let owned = secret.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "FerrVaultSecret");
    if !owned {
        return Look::NotYet("a Secret without an owner".to_owned());
    }
    let annotations = secret.metadata.annotations.as_ref();
    let Some(version) = annotations.and_then(|annotations| annotations.get(marks::CONTENT_HASH)) else {
        return Look::NotYet("a Secret without a version".to_owned());
    };
    if earlier.is_some_and(|earlier| earlier.version == *version) {
        return Look::NotYet("the earlier version".to_owned());
    }
    Look::Seen(Target { version: version.clone() })
}

/// The connection is ready.
pub(super) fn connection_ready(connection: &FerrVaultConnection) -> Look<()> {
    let conditions = connection.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if is_true(conditions, condition::READY, None) { Look::Seen(()) } else { Look::NotYet(shown(conditions)) }
}

/// The resource is ready and synced.
pub(super) fn synced(resource: &FerrVaultSecret) -> Look<()> {
    let conditions = resource.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let synced = is_true(conditions, condition::READY, Some(Reason::Synced));
    if synced { Look::Seen(()) } else { Look::NotYet(shown(conditions)) }
}

/// The resource is synced, owes no restart, and was restarted for this version; seen is when its last pass ended.
pub(super) fn settled(resource: &FerrVaultSecret, version: &str) -> Look<Timestamp> {
    let status = resource.status.clone().unwrap_or_default();
    let settled = is_true(&status.conditions, condition::READY, Some(Reason::Synced))
        && is_true(&status.conditions, condition::ROLLOUT_RESTARTED, None)
        && status.last_rollout_hash.as_deref() == Some(version);
    match status.last_attempted_at {
        Some(attempted) if settled => Look::Seen(attempted.0),
        _ => Look::NotYet(shown(&status.conditions)),
    }
}

/// What was seen instead.
pub(super) fn text<T>(look: &Look<T>) -> String {
    match look {
        Look::Seen(_) => String::new(),
        Look::NotYet(text) => text.clone(),
    }
}

fn is_true(conditions: &[Condition], type_: &str, reason: Option<Reason>) -> bool {
    conditions.iter().any(|condition| {
        condition.type_ == type_
            && condition.status == "True"
            && reason.is_none_or(|reason| condition.reason == reason.as_str())
    })
}

fn shown(conditions: &[Condition]) -> String {
    if conditions.is_empty() {
        return "no conditions".to_owned();
    }
    let one = |condition: &Condition| {
        format!("{}={} {}: {}", condition.type_, condition.status, condition.reason, condition.message)
    };
    conditions.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The workload and its pods at one moment.
pub(super) struct Pods {
    /// How often the Deployment was changed.
    pub(super) generation: i64,
    /// The version that it was restarted for, if ever.
    pub(super) mark: Option<String>,
    /// Its pods, except those on their way out.
    pub(super) uids: BTreeSet<String>,
    /// The rollout is over: every pod is of the present template, and ready.
    rolled_out: bool,
}

impl Pods {
    /// Looks at Deployment and pods.
    pub(super) async fn look(client: &kube::Client, mark: &str) -> Result<Self, kube::Error> {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        let deployment = deployments.get(WORKLOAD).await?;
        let pods = pods.list(&ListParams::default().labels(&format!("app={WORKLOAD}"))).await?;
        Ok(Self::of(&deployment, &pods.items, mark))
    }

    fn of(deployment: &Deployment, pods: &[Pod], mark: &str) -> Self {
        let template = deployment.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
        let annotations = template.and_then(|metadata| metadata.annotations.as_ref());
        let status = deployment.status.clone().unwrap_or_default();
        let all = i32::try_from(PODS).ok();
        let generation = deployment.metadata.generation;
        let rolled_out = status.observed_generation == generation
            && [status.replicas, status.updated_replicas, status.ready_replicas].into_iter().all(|count| count == all);
        let staying = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        Self {
            generation: generation.unwrap_or_default(),
            mark: annotations.and_then(|annotations| annotations.get(mark)).cloned(),
            uids: staying.filter_map(|pod| pod.metadata.uid.clone()).collect(),
            rolled_out,
        }
    }

    /// All of them run, and no others.
    pub(super) fn complete(&self) -> bool {
        self.rolled_out && self.uids.len() == PODS
    }

    /// None of them is one of the earlier ones.
    pub(super) fn share_none_with(&self, earlier: &Self) -> bool {
        self.uids.is_disjoint(&earlier.uids)
    }
}

impl std::fmt::Display for Pods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.mark.is_some() { "a mark" } else { "no mark" };
        let rolled_out = if self.rolled_out { "rolled out" } else { "rolling out" };
        write!(f, "generation {}, {} pods, {rolled_out}, {mark}", self.generation, self.uids.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeroize::Zeroizing;

    use super::*;

    fn vault(value: &str) -> Values {
        Values(vec![("K".to_owned(), Zeroizing::new(value.as_bytes().to_vec()))])
    }

    fn secret(value: &str, version: &str) -> Secret {
        let mut secret: Secret = serde_json::from_value(json!({
            "metadata": {
                "annotations": {marks::CONTENT_HASH: version},
                "ownerReferences": [{"apiVersion": "v", "kind": "FerrVaultSecret", "name": "n", "uid": "u"}],
            },
        }))
        .unwrap();
        let value = k8s_openapi::ByteString(value.as_bytes().to_vec());
        secret.data = Some([("K".to_owned(), value)].into());
        secret
    }

    #[test]
    fn a_target_is_seen_only_when_it_equals_the_vault_under_a_new_version() {
        let seen = |secret: &Secret, earlier: Option<&Target>| {
            matches!(target(Some(secret), &vault("canary"), earlier), Look::Seen(_))
        };
        assert!(seen(&secret("canary", "v1"), None));
        assert!(!seen(&secret("other", "v1"), None));
        assert!(!seen(&secret("canary", "v1"), Some(&Target { version: "v1".to_owned() })));
        assert!(seen(&secret("canary", "v2"), Some(&Target { version: "v1".to_owned() })));
        let mut foreign = secret("canary", "v1");
        foreign.metadata.owner_references = None;
        assert!(!seen(&foreign, None));
        assert!(matches!(target(None, &vault("canary"), None), Look::NotYet(_)));
    }

    #[test]
    fn what_is_said_of_a_wrong_target_holds_no_value() {
        let said = text(&target(Some(&secret("canary-1", "v1")), &vault("canary-2"), None));
        assert!(said.contains('K') && !said.contains("canary"), "{said}");
    }

    fn deployment(updated: usize) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"generation": 2},
            "spec": {"selector": {}, "template": {"metadata": {"annotations": {"mark": "v1"}}}},
            "status": {"observedGeneration": 2, "replicas": PODS, "updatedReplicas": updated, "readyReplicas": PODS},
        }))
        .unwrap()
    }

    fn pods(prefix: &str) -> Vec<Pod> {
        let pod = |number| serde_json::from_value(json!({"metadata": {"uid": format!("{prefix}{number}")}})).unwrap();
        (0..PODS).map(pod).collect()
    }

    #[test]
    fn pods_are_complete_when_all_are_of_the_present_template() {
        assert!(Pods::of(&deployment(PODS), &pods("a"), "mark").complete());
        assert!(!Pods::of(&deployment(PODS - 1), &pods("a"), "mark").complete());
        let both = [pods("a"), pods("b")].concat();
        assert!(!Pods::of(&deployment(PODS), &both, "mark").complete());
    }

    #[test]
    fn new_pods_are_told_from_old_ones() {
        let (old, new) =
            (Pods::of(&deployment(PODS), &pods("a"), "mark"), Pods::of(&deployment(PODS), &pods("b"), "mark"));
        assert!(new.share_none_with(&old));
        assert!(!old.share_none_with(&old));
        assert_eq!(old.mark.as_deref(), Some("v1"));
        assert_eq!(Pods::of(&deployment(PODS), &pods("a"), "another").mark, None);
    }
}
