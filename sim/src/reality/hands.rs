//! What people do in a scenario, done on a real cluster: in a namespace of the play's own, and with operators that are the
//! real controllers over the real clients, in this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_operator::admin::Metrics;
use ferrvault_operator::clock::Clock;
use ferrvault_operator::cluster::client::Clients;
use ferrvault_operator::cluster::operator_key;
use ferrvault_operator::cluster::watch::Scope;
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::ferrvault::Http;
use ferrvault_testkit::{Listening, ScriptedVault, VaultCall, VaultFault, build};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use super::NotAsSimulated;
use crate::act::{self, Act, Kind};
use crate::cast;
use crate::process::{KEY_SECRET, Process, Start};
use crate::world::{TOKEN_KEY, TOKEN_SECRET};

/// Between two looks of somebody who strips marks as soon as they are there.
const STRIPS_WITHIN: Duration = Duration::from_millis(10);

/// Everybody who does something in a play.
pub(super) struct Hands {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) system: String,
    pub(super) vault: ScriptedVault,
    ferrvault: Listening,
    config: kube::Config,
    running: BTreeMap<&'static str, Process>,
    key: Option<Value>,
    others: Vec<JoinHandle<()>>,
}

impl Drop for Hands {
    fn drop(&mut self) {
        std::mem::take(&mut self.running).into_values().for_each(Process::kill);
        self.others.iter().for_each(JoinHandle::abort);
    }
}

impl Hands {
    /// Two namespaces, a FerrVault that listens on loopback, and a connection to it with its token.
    pub(super) async fn new(config: kube::Config, namespace: &str) -> Result<Self, NotAsSimulated> {
        let vault = ScriptedVault::new();
        let ferrvault = vault.listen().await.map_err(NotAsSimulated::Listen)?;
        let client = Client::try_from(config.clone())?;
        let system = format!("{namespace}-system");
        let (running, key, others) = (BTreeMap::new(), None, Vec::new());
        let hands =
            Self { client, namespace: namespace.to_owned(), system, vault, ferrvault, config, running, key, others };
        for name in [&hands.namespace, &hands.system] {
            hands.create(&hands.of_kind(Kind::Namespace), json!({ "metadata": { "name": name } })).await?;
        }
        hands.vault.accept(act::token(1), None);
        hands.put(build::secret(act::NS, TOKEN_SECRET).key(TOKEN_KEY, act::token(1)).json()).await?;
        let connection = build::connection(act::NS, "conn").url(&hands.url()).token_in(TOKEN_SECRET, TOKEN_KEY);
        hands.put(connection.json()).await?;
        Ok(hands)
    }

    /// Where FerrVault listens.
    pub(super) fn url(&self) -> String {
        self.ferrvault.url()
    }

    /// A process that ended although nobody ended it.
    pub(super) fn dead(&self) -> Option<&'static str> {
        self.running.iter().find(|(_, process)| process.died()).map(|(who, _)| *who)
    }

    /// Lets one thing happen.
    pub(super) async fn act(&mut self, what: &Act) -> Result<(), NotAsSimulated> {
        match what {
            Act::Start(who) => self.start(who, false)?,
            Act::Stand(who) => self.start(who, true)?,
            Act::Stop(who) => {
                if let Some(process) = self.running.remove(who) {
                    process.stop().await;
                }
            }
            Act::Kill(who) => {
                if let Some(process) = self.running.remove(who) {
                    process.kill();
                }
            }
            // What is waited for is what comes about.
            Act::Wait(_) => {}
            Act::Put(object) => self.put(object.clone().json()).await?,
            Act::Change(kind, name, patch) => self.change(*kind, name, patch).await?,
            Act::Delete(kind, name) => self.delete(*kind, name).await?,
            Act::Upstream(vault, letter) => {
                for (key, value) in act::content(*letter).0 {
                    self.vault.set(vault, &key, value);
                }
            }
            Act::Unset(vault, key) => self.vault.unset(vault, key),
            Act::Token(number) => {
                self.vault.accept(act::token(*number), None);
                self.vault.revoke(act::token(number.saturating_sub(1)));
                self.put(build::secret(act::NS, TOKEN_SECRET).key(TOKEN_KEY, act::token(*number)).json()).await?;
            }
            Act::GoTarget(resource, letter) => {
                if let Some(owner) = self.read(Kind::Resource, resource).await? {
                    self.put(act::go_target(&owner, resource, *letter).json()).await?;
                }
            }
            Act::GoStatus(resource, letter) => {
                let left = act::go_status(*letter);
                self.change(Kind::Resource, resource, &left).await?;
                let patch = Patch::Merge(json!({ "status": left.get("status") }));
                self.of_kind(Kind::Resource).patch_status(resource, &PatchParams::default(), &patch).await?;
            }
            Act::GoMark(kind, name, resource, letter) => {
                if let Some(owner) = self.read(Kind::Resource, resource).await? {
                    self.change(*kind, name, &act::go_mark(&owner, *letter)).await?;
                }
            }
            Act::Strip(kind, name) => drop(strip(&self.of_kind(*kind), name).await?),
            Act::StripOnSight(kind, name, times) => self.strip_on_sight(*kind, name, *times),
            Act::Give(kind, name, to, owner) => {
                if let Some(owner) = self.read(*to, owner).await? {
                    self.change(*kind, name, &act::owned_by(&owner)).await?;
                }
            }
            Act::LoseKey => self.lose_key().await?,
            Act::SpoilKey => {
                self.key = self.keys().get_opt(KEY_SECRET).await?.and_then(|key| serde_json::to_value(key).ok());
                self.lose_key().await?;
                let spoilt = build::secret(&self.system, KEY_SECRET).key(operator_key::DATA_KEY, "too short").json();
                self.create(&self.keys(), spoilt).await?;
            }
            Act::MendKey => {
                if let Some(key) = self.key.take() {
                    self.lose_key().await?;
                    self.create(&self.keys(), key).await?;
                }
            }
            Act::Stall(vault) => {
                let stalled = (*vault).to_owned();
                let falls_silent = move |call: &VaultCall| {
                    if call.vault == stalled { VaultFault::Stall } else { VaultFault::None }
                };
                self.vault.on_call(falls_silent);
            }
        }
        Ok(())
    }

    fn start(&mut self, who: &'static str, elects: bool) -> Result<(), NotAsSimulated> {
        let process = Process::start(Start {
            who: who.to_owned(),
            clients: Clients::new(self.config.clone())?,
            watch_over: Clients::for_watchdog(self.config.clone())?,
            system: self.system.clone(),
            scope: Scope::Namespace(self.namespace.clone()),
            ferrvault: Arc::new(Http::default()),
            clock: Clock::system(),
            entropy: Entropy::system(),
            metrics: Metrics::default(),
            elects,
        });
        self.running.insert(who, process);
        Ok(())
    }

    // ---- objects

    fn of_kind(&self, kind: Kind) -> Api<DynamicObject> {
        let resource = match kind {
            Kind::Resource => ApiResource::erase::<FerrVaultSecret>(&()),
            Kind::Connection => ApiResource::erase::<FerrVaultConnection>(&()),
            Kind::Secret => ApiResource::erase::<Secret>(&()),
            Kind::Deployment => ApiResource::erase::<Deployment>(&()),
            Kind::StatefulSet => ApiResource::erase::<StatefulSet>(&()),
            Kind::DaemonSet => ApiResource::erase::<DaemonSet>(&()),
            Kind::Namespace => {
                return Api::all_with(self.client.clone(), &ApiResource::erase::<Namespace>(&()));
            }
        };
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    fn keys(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.system, &ApiResource::erase::<Secret>(&()))
    }

    async fn lose_key(&self) -> Result<(), NotAsSimulated> {
        gone(self.keys().delete(KEY_SECRET, &DeleteParams::default()).await.map(drop))
    }

    async fn create(&self, api: &Api<DynamicObject>, mut object: Value) -> Result<(), NotAsSimulated> {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| {
                !matches!(field.as_str(), "resourceVersion" | "uid" | "managedFields" | "namespace")
            });
        }
        let object: DynamicObject = serde_json::from_value(object)?;
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Makes an object be there as it is given.
    async fn put(&self, object: Value) -> Result<(), NotAsSimulated> {
        let kind = match cast::text(&object, "/kind") {
            "FerrVaultSecret" => Kind::Resource,
            "FerrVaultConnection" => Kind::Connection,
            "Secret" => Kind::Secret,
            "Deployment" => Kind::Deployment,
            "StatefulSet" => Kind::StatefulSet,
            _ => Kind::DaemonSet,
        };
        let api = self.of_kind(kind);
        let Some(live) = api.get_opt(cast::text(&object, "/metadata/name")).await? else {
            return self.create(&api, object).await;
        };
        let mut object: DynamicObject = serde_json::from_value(object)?;
        object.metadata.namespace = live.metadata.namespace;
        object.metadata.resource_version = live.metadata.resource_version;
        api.replace(live.metadata.name.as_deref().unwrap_or_default(), &PostParams::default(), &object).await?;
        Ok(())
    }

    async fn read(&self, kind: Kind, name: &str) -> Result<Option<Value>, NotAsSimulated> {
        let found = self.of_kind(kind).get_opt(name).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    async fn change(&self, kind: Kind, name: &str, patch: &Value) -> Result<(), NotAsSimulated> {
        gone(self.of_kind(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop))
    }

    async fn delete(&self, kind: Kind, name: &str) -> Result<(), NotAsSimulated> {
        let name = if kind == Kind::Namespace { self.namespace.as_str() } else { name };
        gone(self.of_kind(kind).delete(name, &DeleteParams::default()).await.map(drop))
    }

    fn strip_on_sight(&mut self, kind: Kind, name: &'static str, times: u32) {
        let api = self.of_kind(kind);
        self.others.push(tokio::spawn(async move {
            let mut left = times;
            while left > 0 {
                // A refused attempt is one that is made again.
                if strip(&api, name).await.unwrap_or(false) {
                    left -= 1;
                }
                tokio::time::sleep(STRIPS_WITHIN).await;
            }
        }));
    }
}

/// Removes every mark from the template of a workload; whether there was any.
async fn strip(api: &Api<DynamicObject>, name: &str) -> Result<bool, NotAsSimulated> {
    let Some(found) = api.get_opt(name).await? else { return Ok(false) };
    let version = found.metadata.resource_version.clone();
    let annotations = cast::template_annotations(&serde_json::to_value(found)?);
    let ours = annotations.into_keys().filter(|key| key.starts_with(PREFIX));
    let nulls: Map<String, Value> = ours.map(|key| (key, Value::Null)).collect();
    if nulls.is_empty() {
        return Ok(false);
    }
    let template = json!({ "metadata": { "annotations": nulls } });
    let patch = json!({ "metadata": { "resourceVersion": version }, "spec": { "template": template } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(true)
}

/// What all marks begin with.
const PREFIX: &str = "ferrvault.com/";

/// What is not there (any more) needs nothing done to it.
fn gone(outcome: Result<(), kube::Error>) -> Result<(), NotAsSimulated> {
    match outcome {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => Ok(other?),
    }
}
