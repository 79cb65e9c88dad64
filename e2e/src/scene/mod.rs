//! A namespace with a vault of the same name, and what a scenario does and sees there.
//!
//! A scene is a scenario's own: nothing in it is shared with another one, so that they can be played side by side.

mod seen;

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use xtask::process;

pub use seen::same_data;

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

    /// The pod templates of the workloads here, as the independent watch sees them.
    pub fn templates(&self) -> &Templates {
        &self.templates
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
