//! Objects for tests, in one line each: complete enough to be stored, and then whatever the test needs.
//!
//! A builder is plain JSON underneath, so it can also build what the product's types cannot hold.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::object;

/// An object in the making. Serializes as the object, so `ApiServer::apply` takes it as it is.
#[derive(Clone)]
pub struct Built(Value);

impl Serialize for Built {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Built {
    fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self(json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": { "namespace": namespace, "name": name },
        }))
    }

    /// The object as JSON.
    pub fn json(self) -> Value {
        self.0
    }

    /// The object as the product's type.
    ///
    /// # Panics
    /// If it is not one that `K` can hold.
    #[track_caller]
    pub fn typed<K: serde::de::DeserializeOwned>(self) -> K {
        match serde_json::from_value(self.0) {
            Ok(typed) => typed,
            #[allow(clippy::panic, reason = "builders are for tests, and this is their mistake")]
            Err(error) => panic!("the builder made what the type cannot hold: {error}"),
        }
    }

    /// Sets the field at a path of field names.
    #[must_use]
    pub fn set(mut self, path: &[&str], value: impl Into<Value>) -> Self {
        let mut place = &mut self.0;
        for field in path {
            place = object::fields_mut(place).entry(*field).or_insert(Value::Null);
        }
        *place = value.into();
        self
    }

    /// Adds to the list at a path of field names.
    #[must_use]
    pub fn push(mut self, path: &[&str], value: impl Into<Value>) -> Self {
        let mut place = &mut self.0;
        for field in path {
            place = object::fields_mut(place).entry(*field).or_insert(Value::Null);
        }
        match place {
            Value::Array(items) => items.push(value.into()),
            other => *other = json!([value.into()]),
        }
        self
    }

    /// Adds an annotation.
    #[must_use]
    pub fn annotated(self, key: &str, value: &str) -> Self {
        self.set(&["metadata", "annotations", key], value)
    }

    /// Adds a label.
    #[must_use]
    pub fn labelled(self, key: &str, value: &str) -> Self {
        self.set(&["metadata", "labels", key], value)
    }

    /// Adds a finalizer.
    #[must_use]
    pub fn finalizer(self, name: &str) -> Self {
        self.push(&["metadata", "finalizers"], name)
    }

    /// Makes a stored object its controller.
    #[must_use]
    pub fn owned_by(self, owner: &Value) -> Self {
        let reference = json!({
            "apiVersion": owner.get("apiVersion"),
            "kind": owner.get("kind"),
            "name": object::name(owner),
            "uid": object::uid(owner),
            "controller": true,
            "blockOwnerDeletion": true,
        });
        self.push(&["metadata", "ownerReferences"], reference)
    }

    /// Secret: one key.
    #[must_use]
    pub fn key(self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.set(&["data", key], STANDARD.encode(value))
    }

    /// Connection: where FerrVault is.
    #[must_use]
    pub fn url(self, url: &str) -> Self {
        self.set(&["spec", "url"], url)
    }

    /// Connection: mode `cloud`, for this organization.
    #[must_use]
    pub fn cloud(self, organization: &str) -> Self {
        self.set(&["spec", "mode"], "cloud").set(&["spec", "organization"], organization)
    }

    /// Connection: the token is in this key of this Secret.
    #[must_use]
    pub fn token_in(self, secret: &str, key: &str) -> Self {
        self.set(&["spec", "tokenSecretRef"], json!({ "name": secret, "key": key }))
    }

    /// Resource: the connection to read through.
    #[must_use]
    pub fn through(self, connection: &str) -> Self {
        self.set(&["spec", "connectionRef", "name"], connection)
    }

    /// Resource: the vault to read.
    #[must_use]
    pub fn vault(self, vault: &str) -> Self {
        self.set(&["spec", "vault"], vault)
    }

    /// Resource: the keys wanted.
    #[must_use]
    pub fn names(self, names: &[&str]) -> Self {
        self.set(&["spec", "selector", "names"], names)
    }

    /// Resource: the Secret to keep.
    #[must_use]
    pub fn target(self, name: &str) -> Self {
        self.set(&["spec", "target", "name"], name)
    }

    /// Resource: how often to look.
    #[must_use]
    pub fn every(self, interval: &str) -> Self {
        self.set(&["spec", "refreshInterval"], interval)
    }

    /// Resource: one more workload to restart.
    #[must_use]
    pub fn restarts(self, kind: &str, name: &str) -> Self {
        self.push(&["spec", "rolloutRestart"], json!({ "kind": kind, "name": name }))
    }

    /// Resource: one more transform.
    #[must_use]
    pub fn transform(self, transform: Value) -> Self {
        self.push(&["spec", "transforms"], transform)
    }
}

/// An empty Secret of type `Opaque`.
pub fn secret(namespace: &str, name: &str) -> Built {
    Built::new("v1", "Secret", namespace, name)
}

/// A connection to a cluster-local FerrVault, its token in key `token` of Secret `<name>-token`.
pub fn connection(namespace: &str, name: &str) -> Built {
    Built::new("ferrvault.com/v1alpha1", "FerrVaultConnection", namespace, name)
        .url("http://ferrvault.ferrvault.svc:8080")
        .token_in(&format!("{name}-token"), "token")
}

/// A resource that reads vault `main` through connection `main`, all keys.
pub fn fvs(namespace: &str, name: &str) -> Built {
    Built::new("ferrvault.com/v1alpha1", "FerrVaultSecret", namespace, name).through("main").vault("main")
}

/// A Deployment of one container.
pub fn deployment(namespace: &str, name: &str) -> Built {
    workload("Deployment", namespace, name)
}

/// A `StatefulSet` of one container.
pub fn stateful_set(namespace: &str, name: &str) -> Built {
    workload("StatefulSet", namespace, name).set(&["spec", "serviceName"], name)
}

/// A `DaemonSet` of one container.
pub fn daemon_set(namespace: &str, name: &str) -> Built {
    workload("DaemonSet", namespace, name)
}

fn workload(kind: &str, namespace: &str, name: &str) -> Built {
    Built::new("apps/v1", kind, namespace, name)
        .set(&["spec", "selector", "matchLabels", "app"], name)
        .set(&["spec", "template", "metadata", "labels", "app"], name)
        .push(&["spec", "template", "spec", "containers"], json!({ "name": "main", "image": "registry.example/app:1" }))
}
