//! Objects as the Go operator left them.

use std::collections::BTreeMap;

use ferrvault_api::marks;
use ferrvault_testkit::build;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::room::{NS, Room};

/// Its hash: SHA-256 over `key 0x00 value 0x00`, sorted by key, without a salt.
pub(crate) fn hash(content: &BTreeMap<String, Vec<u8>>) -> String {
    let mut hash = Sha256::new();
    for (key, value) in content {
        hash.update(key.as_bytes());
        hash.update([0]);
        hash.update(value);
        hash.update([0]);
    }
    hash.finalize().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// A resource with the status and the finalizer it had, stored.
pub(crate) fn stored(room: &Room, resource: build::Built) -> Value {
    let condition = |type_: &str, reason: &str| {
        json!({
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": "2 key(s) synced",
            "lastTransitionTime": "2025-12-01T00:00:00Z",
        })
    };
    let resource = resource
        .finalizer(marks::LEGACY_SECRET_FINALIZER)
        .set(&["status", "conditions"], json!([condition("Ready", "Synced")]))
        .set(&["status", "observedGeneration"], 1)
        .set(&["status", "syncedKeys"], json!(["PASSWORD", "USER"]))
        .set(&["status", "lastSyncedAt"], "2025-12-31T23:00:00Z");
    room.api.apply(&resource)
}

/// The Secret it kept for a stored resource: what FerrVault holds in vault `db` now, under its own hash.
pub(crate) fn target(room: &Room, resource: &Value) -> String {
    let content = room.vault.holds("db");
    let hash = hash(&content);
    let mut secret = build::secret(NS, resource["metadata"]["name"].as_str().unwrap())
        .annotated(marks::MANAGED_BY, marks::MANAGER)
        .annotated(marks::CONTENT_HASH, &hash)
        .owned_by(resource);
    for (key, value) in &content {
        secret = secret.key(key, value);
    }
    room.api.apply(&secret);
    hash
}
