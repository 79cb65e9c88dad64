//! The generated definitions in a real API server: what it accepts, what it refuses and with which words, and that
//! everything the Go operator's schema let in still takes a status after the upgrade.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by it")]

mod admission;
mod upgrade;

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client, CustomResourceExt};
use serde_json::{Value, json};

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};

/// The API server takes a definition into use within a second or two; the rest is for a busy machine.
const SOON: Duration = Duration::from_mins(1);

/// Between two looks.
const POLL: Duration = Duration::from_millis(100);

const NAMESPACE: &str = "default";

/// Repeats `look` until it says yes.
async fn until<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    let waited = tokio::time::timeout(SOON, async {
        while !look().await {
            tokio::time::sleep(POLL).await;
        }
    });
    assert!(waited.await.is_ok(), "not within {SOON:?}: {what}");
}

/// Installs or upgrades definitions, the way Helm does, and waits until the API server serves them.
async fn install(client: &Client, definitions: impl IntoIterator<Item = CustomResourceDefinition>) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions {
        let name = definition.metadata.name.clone().unwrap();
        match api.get_opt(&name).await.unwrap() {
            None => drop(api.create(&PostParams::default(), &definition).await.unwrap()),
            Some(old) => {
                let mut new = definition;
                new.metadata.resource_version = old.metadata.resource_version;
                drop(api.replace(&name, &PostParams::default(), &new).await.unwrap());
            }
        }
        until("the definition is established", async || {
            let now = api.get(&name).await.unwrap();
            let conditions = now.status.and_then(|status| status.conditions).unwrap_or_default();
            conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
        })
        .await;
    }
}

/// The two kinds, without the types of this repository between the test and the API server.
struct Kinds {
    secrets: Api<DynamicObject>,
    connections: Api<DynamicObject>,
}

impl Kinds {
    fn new(client: &Client) -> Self {
        let of = |resource| Api::namespaced_with(client.clone(), NAMESPACE, &resource);
        Self { secrets: of(FerrVaultSecret::api_resource()), connections: of(FerrVaultConnection::api_resource()) }
    }

    fn of(&self, kind: &str) -> &Api<DynamicObject> {
        if kind == "FerrVaultSecret" { &self.secrets } else { &self.connections }
    }

    /// Creates an object as a person does, unknown fields refused; the answer is the object or the refusal's words.
    async fn create(&self, kind: &str, name: &str, spec: Value) -> Result<DynamicObject, String> {
        let params = PostParams { field_manager: Some("person".to_owned()), ..PostParams::default() };
        let created = self.of(kind).create(&params, &object(kind, name, &spec)).await;
        created.map_err(|error| match error {
            kube::Error::Api(status) => status.message,
            other => panic!("{name}: {other}"),
        })
    }

    /// Waits until the upgraded schema is in force: the old one took both of these.
    async fn upgraded(&self) {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        for (kind, spec) in [
            ("FerrVaultSecret", json!({"connectionRef": {"name": "c"}, "vault": "v", "refreshInterval": "abc"})),
            ("FerrVaultConnection", json!({"url": "https://vault.example"})),
        ] {
            until("the new schema is in force", async || {
                self.of(kind).create(&dry, &object(kind, "probe", &spec)).await.is_err()
            })
            .await;
        }
    }
}

fn object(kind: &str, name: &str, spec: &Value) -> DynamicObject {
    let text = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(text).unwrap()
}

fn with(base: &Value, field: &str, value: Value) -> Value {
    let mut spec = base.clone();
    spec[field] = value;
    spec
}
