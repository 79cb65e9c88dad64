//! What the tables of this crate begin with: objects in which everything a test does not care about is in order.

use ferrvault_api::connection::SecretKeyRef;
use ferrvault_api::secret::{Rollout, RolloutState, WorkloadKind, WorkloadRef};
use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, FerrVaultSecretStatus, condition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use crate::content::Content;
use crate::version::{OperatorKey, Version};

/// Stands where a value stands, and must never stand anywhere else.
pub(crate) const CANARY: &str = "canary-5b1e";

/// SHA-256 over `KEY 0x00 A 0x00`: what the Go operator wrote for [`content`]`("A")`.
pub(crate) const LEGACY_A: &str = "33eaaff2f65509af3476b68ddc8331a6dacb2099652f8e823b0b4853caf4dbc1";

/// A resource of generation 3 that reads vault `prod` through connection `main` into Secret `app-env`.
pub(crate) fn resource() -> FerrVaultSecret {
    let spec = json!({ "connectionRef": { "name": "main" }, "vault": "prod" });
    let mut resource = FerrVaultSecret::new("app-env", serde_json::from_value(spec).unwrap());
    resource.metadata.namespace = Some("shop".to_owned());
    resource.metadata.uid = Some("0d1f6f0e-uid".to_owned());
    resource.metadata.generation = Some(3);
    resource
}

pub(crate) fn with_status(status: FerrVaultSecretStatus) -> FerrVaultSecret {
    FerrVaultSecret { status: Some(status), ..resource() }
}

/// A connection with its token under `token` in Secret `ferrvault-token`.
pub(crate) fn connection() -> FerrVaultConnection {
    let spec = json!({
        "url": "https://vault.example.com",
        "tokenSecretRef": { "name": "ferrvault-token", "key": "token" }
    });
    let mut connection = FerrVaultConnection::new("main", serde_json::from_value(spec).unwrap());
    connection.metadata.namespace = Some("shop".to_owned());
    connection.metadata.generation = Some(2);
    connection
}

/// The same, with its token in the target of [`resource`].
pub(crate) fn connection_with_token_in_target() -> FerrVaultConnection {
    let mut connection = connection();
    connection.spec.token_secret_ref = Some(SecretKeyRef { name: "app-env".to_owned(), key: "token".to_owned() });
    connection
}

pub(crate) fn key() -> OperatorKey {
    OperatorKey::from_bytes(&[7; OperatorKey::BYTES]).unwrap()
}

/// What the operator has after its key was lost.
pub(crate) fn other_key() -> OperatorKey {
    OperatorKey::from_bytes(&[8; OperatorKey::BYTES]).unwrap()
}

/// One key with `value`.
pub(crate) fn content(value: &str) -> Content {
    pairs(&[("KEY", value)])
}

pub(crate) fn pairs(pairs: &[(&str, &str)]) -> Content {
    pairs.iter().copied().collect()
}

/// The version number `serial`, of [`content`]`(value)`.
pub(crate) fn version(serial: u8, value: &str) -> Version {
    Version::make(&key(), [serial; 8], &content(value))
}

pub(crate) fn workload(name: &str) -> WorkloadRef {
    WorkloadRef { kind: WorkloadKind::Deployment, name: name.to_owned() }
}

/// A record of [`workload`]`(name)`.
pub(crate) fn rollout(name: &str, version: Option<&Version>, state: RolloutState) -> Rollout {
    Rollout {
        kind: WorkloadKind::Deployment,
        name: name.to_owned(),
        hash: version.map(ToString::to_string).unwrap_or_default(),
        state,
        since: time(10),
        message: String::new(),
    }
}

/// So many seconds after some midnight.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

pub(crate) fn time(seconds: i64) -> Time {
    Time(at(seconds))
}

/// A condition of the current generation since 10 s.
pub(crate) fn condition_since_10(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: Some(3),
        last_transition_time: time(10),
    }
}

/// The status of [`resource`] after a pass at 10 s that found everything in order at `version`.
pub(crate) fn in_order(version: &Version) -> FerrVaultSecretStatus {
    FerrVaultSecretStatus {
        conditions: vec![
            condition_since_10(condition::READY, "True", "Synced", "1 key(s) synced into app-env"),
            condition_since_10(condition::ROLLOUT_RESTARTED, "True", "Restarted", "no restart is owed"),
            condition_since_10(condition::FRESH, "True", "Current", "passes end as often as they should"),
        ],
        last_attempted_at: Some(time(10)),
        last_synced_at: Some(time(10)),
        last_changed_at: Some(time(10)),
        last_rollout_hash: Some(version.to_string()),
        content_hash: Some(version.to_string()),
        synced_target: Some("app-env".to_owned()),
        synced_keys: vec!["KEY".to_owned()],
        observed_generation: Some(3),
        ..FerrVaultSecretStatus::default()
    }
}
