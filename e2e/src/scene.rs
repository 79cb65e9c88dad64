//! A namespace with a vault of the same name, and what a scenario does and sees there.
//!
//! A scene is a scenario's own: nothing in it is shared with another one, so that they can be played side by side.

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, condition, marks};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use xtask::process;

use crate::cluster::Cluster;
use crate::dev::MadeToken;
use crate::eventually::{SOON, eventually, yaml};
use crate::objects::{self, TOKEN};
use crate::templates::Templates;

/// Lines of the operator's log that a failure shows.
const TAIL: usize = 400;

/// A kind of object that lives in a namespace and is known to this crate.
pub trait Kind:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + 'static
{
}

impl<K> Kind for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + 'static
{
}

/// One scenario's namespace and vault.
pub struct Scene {
    /// Where it is.
    pub cluster: Rc<Cluster>,
    /// The name of namespace and vault.
    pub name: String,
    vault: RefCell<String>,
    templates: Templates,
    logs: RefCell<Vec<PathBuf>>,
}

impl Scene {
    /// Makes namespace and vault.
    pub async fn new(cluster: &Rc<Cluster>, label: &str) -> Self {
        let name = cluster.name(label);
        cluster.create_namespace(&name).await;
        let vault = RefCell::new(cluster.dev.vault(&name).await);
        let templates = Templates::watch(&cluster.client, &name);
        Self { cluster: Rc::clone(cluster), name, vault, templates, logs: RefCell::default() }
    }

    /// The log of an operator that works here, to be shown when the scenario fails.
    pub fn log(&self, path: &Path) {
        self.logs.borrow_mut().push(path.to_owned());
    }

    /// What the operators said about this namespace.
    fn said(&self) -> String {
        let mut said = String::new();
        for log in self.logs.borrow().iter() {
            let lines = process::tail(log, TAIL);
            let about: Vec<&str> = lines.lines().filter(|line| line.contains(&self.name)).collect();
            if !about.is_empty() {
                let _ = writeln!(said, "{} about {}:\n{}", log.display(), self.name, about.join("\n"));
            }
        }
        said
    }

    /// Waits as [`eventually`] does.
    pub async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Result<T, String>) -> T {
        eventually(what, SOON, look).await
    }

    // Objects.

    /// The API of a kind in this namespace.
    pub fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.cluster.client.clone(), &self.name)
    }

    /// Creates an object, unknown fields refused.
    pub async fn create<K: Kind>(&self, object: Value) -> K {
        self.try_create(object).await.unwrap()
    }

    /// Creates an object, or tells why the API server refuses it.
    pub async fn try_create<K: Kind>(&self, object: Value) -> Result<K, kube::Error> {
        self.api().create(&PostParams::default(), &objects::typed(object)).await
    }

    /// An object that is there.
    pub async fn get<K: Kind>(&self, name: &str) -> K {
        self.api().get(name).await.unwrap()
    }

    /// An object, if it is there.
    pub async fn find<K: Kind>(&self, name: &str) -> Option<K> {
        self.api().get_opt(name).await.unwrap()
    }

    /// Changes an object by a merge patch, as a person with kubectl does.
    pub async fn edit<K: Kind>(&self, name: &str, patch: Value) -> K {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Deletes an object.
    pub async fn delete<K: Kind>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until an object is gone.
    pub async fn gone<K: Kind>(&self, name: &str) {
        let what = format!("{} {name} is gone", K::kind(&()));
        self.until(&what, async || self.find::<K>(name).await.map_or(Ok(()), |object| Err(yaml(&object)))).await;
    }

    /// Waits until an object is as `judge` wants it; its error says what is missing.
    pub async fn until_it<K: Kind, T>(&self, name: &str, what: &str, judge: impl Fn(&K) -> Result<T, String>) -> T {
        let what = format!("{} {name}: {what}", K::kind(&()));
        let look = async || {
            let Some(object) = self.find::<K>(name).await else { return Err("there is none".to_owned()) };
            judge(&object).map_err(|why| format!("{why}\n{}", yaml(&object)))
        };
        self.until(&what, look).await
    }

    // FerrVault.

    /// The vault's identifier.
    pub fn vault(&self) -> String {
        self.vault.borrow().clone()
    }

    /// From now on the vault is this one.
    pub fn use_vault(&self, id: &str) {
        id.clone_into(&mut self.vault.borrow_mut());
    }

    /// Sets keys of the vault.
    pub async fn set(&self, values: &[(&str, &str)]) {
        self.cluster.dev.set(&self.vault(), values).await;
    }

    /// Deletes a key of the vault.
    pub async fn unset(&self, key: &str) {
        self.cluster.dev.unset(&self.vault(), key).await;
    }

    /// Makes a token for the vault and a connection that asks with it.
    pub async fn connect(&self) -> MadeToken {
        let token = self.cluster.dev.token(&self.vault()).await;
        self.put_token(&token.token).await;
        self.create::<FerrVaultConnection>(objects::connection(self.cluster.dev.url())).await;
        token
    }

    /// Writes the Secret that holds the connection's token.
    pub async fn put_token(&self, token: &str) {
        self.cluster.canaries.note(token);
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": TOKEN},
                            "stringData": {"token": token}});
        let params = PatchParams::apply("person").force();
        self.api::<Secret>().patch(TOKEN, &params, &Patch::Apply(object)).await.unwrap();
    }

    /// Creates a resource that reads the vault every second, with `spec` over that.
    pub async fn resource(&self, name: &str, spec: Value) -> FerrVaultSecret {
        self.create(objects::resource(name, &self.name, spec)).await
    }

    // What the operator says.

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

    /// Takes the resources away, so that no operator goes on with them while other scenarios are played.
    pub async fn close(&self) {
        let all = ListParams::default();
        self.api::<FerrVaultSecret>().delete_collection(&DeleteParams::default(), &all).await.unwrap();
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // While its scenario fails: what the operator had to say about it helps to understand why.
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
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
