//! The operator key: a Secret in the operator's namespace that holds 32 random bytes, made once and never replaced.
//!
//! Versions are keyed with it (`ferrvault_core::version`). If two replicas make it at once, one create is refused and
//! that replica reads what the other made. A Secret that is there and cannot be used is never overwritten: versions out
//! there may have been made with what it held, so a person has to look. The bytes are never shown; they leave this module
//! only inside a type that cannot be printed.

use std::collections::BTreeMap;

use ferrvault_api::marks::MANAGER;
use ferrvault_core::content::{Content, SecretBytes, SecretData};
use ferrvault_core::version::{OperatorKey, OperatorKeyError};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::core::{DeserializeGuard, TypeMeta};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};

use super::backoff::Backoff;
use super::error::{CALL_DEADLINE, CallError, deadline};
use crate::entropy::{Entropy, NoEntropy};
use crate::key::ObjectKey;

/// Under which key of the Secret the bytes are.
pub const DATA_KEY: &str = "key";

/// Tells whoever finds the Secret what it is.
const DESCRIPTION: &str = "Key of FerrVault operator, made by it at its first start. Content versions on Secrets, pod \
                           templates and in status are computed with it. Keep it as private as any Secret. If it is \
                           deleted, the operator makes a new one at its next start and restarts nothing because of that.";

/// Why there is no operator key (yet).
#[derive(Debug, thiserror::Error)]
pub enum NoOperatorKey {
    /// It could not be read.
    #[error("the operator key cannot be read: get Secret {secret}: {error}")]
    Read {
        /// Where it is.
        secret: ObjectKey,
        /// Why.
        error: CallError,
    },
    /// It was not there and could not be made.
    #[error("the operator key cannot be made: create Secret {secret}: {error}")]
    Create {
        /// Where it belongs.
        secret: ObjectKey,
        /// Why.
        error: CallError,
    },
    /// The Secret is there and holds no key.
    #[error(
        "Secret {secret} has no key \"{DATA_KEY}\" in its data: restore the operator key there, or delete the Secret to \
         have a new one made (no workload restarts because of that)"
    )]
    DataKeyMissing {
        /// Where it is.
        secret: ObjectKey,
    },
    /// The Secret is there and what it holds is no key.
    #[error(
        "Secret {secret}, key \"{DATA_KEY}\": {error}: restore the operator key there, or delete the Secret to have a new \
         one made (no workload restarts because of that)"
    )]
    Malformed {
        /// Where it is.
        secret: ObjectKey,
        /// What is wrong, sizes only.
        error: OperatorKeyError,
    },
    /// The system gave no random bytes to make one of.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
}

/// The Secret, as read and written here: its data in types that cannot be printed and are wiped.
#[derive(Clone, Debug, Serialize, Deserialize, kube::Resource)]
#[resource(inherit = Secret)]
#[serde(rename_all = "camelCase")]
struct KeySecret {
    #[serde(flatten, default)]
    types: Option<TypeMeta>,
    metadata: ObjectMeta,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    type_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    immutable: Option<bool>,
    #[serde(default)]
    data: Option<SecretData>,
}

/// The operator key, tried for until it is there. Each failure is handed to `on_problem`, for readiness and the log.
pub async fn obtain(
    client: &Client,
    secret: &ObjectKey,
    entropy: &Entropy,
    mut on_problem: impl FnMut(&NoOperatorKey) + Send,
) -> OperatorKey {
    let mut backoff = Backoff::new(entropy.clone());
    loop {
        match load_or_create(client, secret, entropy).await {
            Ok(key) => return key,
            Err(problem) => {
                on_problem(&problem);
                tokio::time::sleep(backoff.next_wait()).await;
            }
        }
    }
}

/// Reads the operator key, or makes it where there is none.
pub async fn load_or_create(
    client: &Client,
    secret: &ObjectKey,
    entropy: &Entropy,
) -> Result<OperatorKey, NoOperatorKey> {
    if let Some(key) = load(client, secret).await? {
        return Ok(key);
    }
    let secrets: Api<KeySecret> = Api::namespaced(client.clone(), &secret.namespace);
    let fresh = new_secret(secret, SecretBytes::new(entropy.key_bytes()?.to_vec()));
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let create = async { secrets.create(&params, &fresh).await.map(drop).map_err(CallError::from_secret_write) };
    match deadline(CALL_DEADLINE, create).await {
        // Taken by another replica or, after an answer that got lost, by ourselves: what is stored counts in any case.
        Ok(()) | Err(CallError::AlreadyExists) => {}
        Err(error) => return Err(NoOperatorKey::Create { secret: secret.clone(), error }),
    }
    let stored = load(client, secret).await?;
    stored.ok_or_else(|| NoOperatorKey::Read { secret: secret.clone(), error: CallError::NotFound })
}

async fn load(client: &Client, secret: &ObjectKey) -> Result<Option<OperatorKey>, NoOperatorKey> {
    // Guarded: the client library logs the whole body of an answer that does not fit its type.
    let secrets: Api<DeserializeGuard<KeySecret>> = Api::namespaced(client.clone(), &secret.namespace);
    let failed = |error| NoOperatorKey::Read { secret: secret.clone(), error };
    let DeserializeGuard(read) = match deadline(CALL_DEADLINE, secrets.get(&secret.name)).await {
        Ok(found) => found,
        Err(CallError::NotFound) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    // What did not fit may stand in the error's words.
    let read = read.map_err(|_| failed(CallError::Undecodable { what: "not a Secret".to_owned() }))?;
    let data = read.data.unwrap_or_default();
    let bytes = data.0.get(DATA_KEY).ok_or_else(|| NoOperatorKey::DataKeyMissing { secret: secret.clone() })?;
    let key = OperatorKey::from_bytes(bytes.expose());
    key.map(Some).map_err(|error| NoOperatorKey::Malformed { secret: secret.clone(), error })
}

fn new_secret(secret: &ObjectKey, bytes: SecretBytes) -> KeySecret {
    let labels = [("app.kubernetes.io/name", MANAGER), ("app.kubernetes.io/component", "operator-key")];
    let annotations = [("ferrvault.com/managed-by", MANAGER), ("ferrvault.com/description", DESCRIPTION)];
    KeySecret {
        types: Some(TypeMeta::resource::<Secret>()),
        metadata: ObjectMeta {
            namespace: Some(secret.namespace.to_string()),
            name: Some(secret.name.to_string()),
            labels: Some(owned(labels)),
            annotations: Some(owned(annotations)),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        // Nobody has a reason to edit it; deleting it stays possible.
        immutable: Some(true),
        data: Some(SecretData(Content(BTreeMap::from([(DATA_KEY.to_owned(), bytes)])))),
    }
}

fn owned<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests;
