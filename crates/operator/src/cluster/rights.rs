//! Which verbs the operator needs, and whether they are granted: asked of the API server itself
//! (`SelfSubjectAccessReview`), so that a right that is missing is named before the first call that needs it fails.
//!
//! Everybody who is known to an API server may ask about himself; no rule of the chart is needed for it.

use std::fmt;
use std::time::Duration;

use ferrvault_api::GROUP;
use futures::StreamExt;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::api::PostParams;
use kube::{Api, Client};

use super::error::{CALL_DEADLINE, CallError, deadline};
use super::watch::Scope;
use crate::key::ObjectKey;

/// Questions at a time.
const AT_A_TIME: usize = 8;

/// How often it is asked again for what is missing. Somebody is about to grant it and waits for the pod to be ready; a
/// few questions a minute cost nothing.
const AGAIN: Duration = Duration::from_secs(15);

/// One verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    verb: &'static str,
    group: &'static str,
    /// Plural, with `/subresource` where there is one.
    resource: &'static str,
    /// Empty: everywhere.
    namespace: String,
    /// Empty: whatever it is called.
    name: String,
}

/// `patch deployments.apps in namespace shop`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.name.is_empty() {
            write!(f, " named {}", self.name)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in namespace {}", self.namespace)?;
        }
        Ok(())
    }
}

/// What is needed where resources are watched, by group and resource. As the chart grants it, but for what only some
/// clusters ask for (`ferrvaultsecrets/finalizers`).
const WATCHED: [(&str, &str, &[&str]); 9] = [
    (GROUP, "ferrvaultsecrets", &["get", "list", "watch", "patch"]),
    (GROUP, "ferrvaultsecrets/status", &["patch"]),
    (GROUP, "ferrvaultconnections", &["get", "list", "watch", "patch"]),
    (GROUP, "ferrvaultconnections/status", &["patch"]),
    ("", "secrets", &["get", "list", "watch", "create", "patch"]),
    ("apps", "deployments", &["get", "patch"]),
    ("apps", "statefulsets", &["get", "patch"]),
    ("apps", "daemonsets", &["get", "patch"]),
    ("events.k8s.io", "events", &["create"]),
];

/// Every right that is needed in `scope`, for the operator key, and for the lease if there is an election. Making either
/// of the two is not among them: they may have been made by somebody else, and where they were not it shows by itself.
pub fn needed(scope: &Scope, key_secret: &ObjectKey, lease: Option<&ObjectKey>) -> Vec<Right> {
    let everywhere = match scope {
        Scope::Cluster => String::new(),
        Scope::Namespace(namespace) => namespace.clone(),
    };
    let watched = WATCHED.into_iter().flat_map(|(group, resource, verbs)| {
        let namespace = everywhere.clone();
        verbs.iter().map(move |verb| Right { verb, group, resource, namespace: namespace.clone(), name: String::new() })
    });
    let named = |verb, group, resource, of: &ObjectKey| Right {
        verb,
        group,
        resource,
        namespace: of.namespace.to_string(),
        name: of.name.to_string(),
    };
    let own = std::iter::once(named("get", "", "secrets", key_secret));
    let lease = lease
        .into_iter()
        .flat_map(|lease| ["get", "update"].map(|verb| named(verb, "coordination.k8s.io", "leases", lease)));
    watched.chain(own).chain(lease).collect()
}

/// Asks for `rights` until all of them are granted. `tell` hears after each round what is missing, or why it cannot be
/// known.
pub async fn until_granted(
    client: &Client,
    mut rights: Vec<Right>,
    mut tell: impl FnMut(&Result<Vec<Right>, CallError>),
) {
    loop {
        let missing = missing(client, &rights).await;
        tell(&missing);
        if let Ok(missing) = missing {
            if missing.is_empty() {
                return;
            }
            rights = missing;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Those of `rights` that are not granted, in their order.
async fn missing(client: &Client, rights: &[Right]) -> Result<Vec<Right>, CallError> {
    let mut answers = futures::stream::iter(rights.iter().cloned())
        .map(|right| async move {
            let granted = is_granted(client, &right).await;
            (right, granted)
        })
        .buffered(AT_A_TIME);
    let mut missing = Vec::new();
    while let Some((right, granted)) = answers.next().await {
        if !granted? {
            missing.push(right);
        }
    }
    Ok(missing)
}

async fn is_granted(client: &Client, right: &Right) -> Result<bool, CallError> {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (right.resource, None),
    };
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(right.verb.to_owned()),
                group: Some(right.group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                namespace: given(&right.namespace),
                name: given(&right.name),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = deadline(CALL_DEADLINE, reviews.create(&PostParams::default(), &review)).await?;
    Ok(answer.status.is_some_and(|status: SubjectAccessReviewStatus| status.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_right_is_named_as_people_grant_it() {
        let (key, lease) = (ObjectKey::new("ops", "key"), ObjectKey::new("ops", "lease"));
        let everywhere: Vec<String> = needed(&Scope::Cluster, &key, None).iter().map(ToString::to_string).collect();
        assert_eq!(everywhere.len(), 23);
        for expected in [
            "watch ferrvaultsecrets.ferrvault.com",
            "patch ferrvaultsecrets/status.ferrvault.com",
            "list secrets",
            "patch daemonsets.apps",
            "create events.events.k8s.io",
            "get secrets named key in namespace ops",
        ] {
            assert!(everywhere.iter().any(|right| right == expected), "{expected}: {everywhere:#?}");
        }
        let within: Vec<String> =
            needed(&Scope::Namespace("shop".to_owned()), &key, Some(&lease)).iter().map(ToString::to_string).collect();
        assert_eq!(within.len(), 25);
        for expected in [
            "patch deployments.apps in namespace shop",
            "update leases.coordination.k8s.io named lease in namespace ops",
        ] {
            assert!(within.iter().any(|right| right == expected), "{expected}: {within:#?}");
        }
    }

    #[test]
    fn workloads_are_neither_listed_nor_watched() {
        let rights = needed(&Scope::Cluster, &ObjectKey::new("ops", "key"), None);
        let on_apps = rights.iter().filter(|right| right.group == "apps");
        assert!(on_apps.clone().count() > 0 && on_apps.into_iter().all(|right| ["get", "patch"].contains(&right.verb)));
    }
}
