//! A scene with an operator of its own: a release of the chart that watches the scene's namespace only, with Roles and no
//! `ClusterRole`, so that what is done to its rights or its process concerns nobody else.

use std::rc::Rc;

use ferrvault_api::FerrVaultSecret;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use xtask::programs::Operator;

use crate::cluster::{Cluster, Release};
use crate::objects;
use crate::scene::Scene;

/// A scene and the release that works there.
pub struct Own {
    /// The scene.
    pub scene: Scene,
    /// The release; its operators are started one by one.
    pub release: Release,
}

impl Own {
    /// Makes both; `values` for the chart besides the watched namespace.
    pub async fn new(cluster: &Rc<Cluster>, label: &str, values: Value) -> Self {
        let scene = Scene::new(cluster, label).await;
        let mut all = json!({"watchNamespace": scene.name, "crds": {"install": false}});
        objects::merge(&mut all, values);
        let release = cluster.install(&scene.name, all).await;
        Self { scene, release }
    }

    /// Starts an operator as pod `pod`, without waiting for anything but its probes to listen.
    pub async fn start_unready(&self, pod: &str) -> Operator {
        let operator = self.scene.cluster.start_operator(&self.release, pod).await;
        self.scene.log(operator.process().log());
        operator
    }

    /// Starts an operator as pod `pod` and waits until it is ready.
    pub async fn start(&self, pod: &str) -> Operator {
        let operator = self.start_unready(pod).await;
        operator.ready().await.unwrap();
        operator
    }

    /// Changes what the operator may do in the namespace that it watches.
    pub async fn change_rights(&self, change: impl Fn(&mut Vec<PolicyRule>)) {
        change_rights(self.scene.api(), change).await;
    }

    /// Changes what the operator may do in its own namespace.
    pub async fn change_rights_at_home(&self, change: impl Fn(&mut Vec<PolicyRule>)) {
        change_rights(Api::namespaced(self.scene.cluster.client.clone(), &self.release.namespace), change).await;
    }

    /// What the operator asked the API server about this namespace since request number `after`, watches left out: they
    /// are on record when they end.
    pub fn asked(&self, after: usize) -> Vec<String> {
        let mut requests = self.scene.cluster.requests_of(&self.release.user());
        requests.retain(|request| request.namespace == self.scene.name && request.verb != "watch");
        requests.iter().skip(after).map(crate::audit::Request::told).collect()
    }

    /// A resource with the key `K`, synced; the resource and its version.
    pub async fn shop(&self, value: &str, spec: Value) -> (FerrVaultSecret, String) {
        self.scene.connect().await;
        self.scene.set(&[("K", value)]).await;
        self.scene.resource("shop", spec).await;
        let resource = self.scene.synced("shop").await;
        let version = self.scene.target("shop", &resource, &[("K", value.as_bytes())]).await;
        (resource, version)
    }
}

async fn change_rights(roles: Api<Role>, change: impl Fn(&mut Vec<PolicyRule>)) {
    let mut own = roles.list(&kube::api::ListParams::default()).await.unwrap().items.remove(0);
    change(own.rules.as_mut().unwrap());
    let name = own.metadata.name.clone().unwrap();
    roles.replace(&name, &PostParams::default(), &own).await.unwrap();
}

/// The rules that concern `resource`.
pub fn rules_for<'r>(rules: &'r mut [PolicyRule], resource: &str) -> impl Iterator<Item = &'r mut PolicyRule> {
    rules.iter_mut().filter(move |rule| rule.resources.iter().flatten().any(|name| name == resource))
}
