//! Objects as clusters hold them today decode, whatever the Go operator or a person left in them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail that way")]

use ferrvault_api::connection::Mode;
use ferrvault_api::marks;
use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, Reason};
use serde_json::json;

#[test]
fn a_resource_as_the_go_operator_left_it_decodes() {
    let stored = json!({
        "apiVersion": "ferrvault.com/v1alpha1",
        "kind": "FerrVaultSecret",
        "metadata": {"name": "db", "namespace": "shop", "finalizers": [marks::LEGACY_SECRET_FINALIZER]},
        "spec": {
            "connectionRef": {"name": "main"},
            "vault": "db",
            "selector": {"names": null},
            "target": {"name": ""},
            "refreshInterval": "1h",
            "rolloutRestart": null,
            "transforms": [{"type": "base64Decode", "keys": null}],
        },
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "Synced", "message": "",
                            "lastTransitionTime": "2026-03-01T10:00:00Z", "observedGeneration": 1}],
            "lastSyncedAt": "2026-03-01T10:00:00Z",
            "lastRolloutHash": "",
            "syncedKeys": ["PASSWORD"],
            "missingKeys": null,
            "observedGeneration": 1,
        },
    });
    let resource: FerrVaultSecret = serde_json::from_value(stored).unwrap();
    assert_eq!(resource.target_name(), "db", "an empty name is no name");
    assert_eq!(resource.target_type(), "Opaque");
    assert!(resource.wanted_names().is_empty());
    assert!(resource.spec.rollout_restart.is_empty());
    let status = resource.status.unwrap();
    assert!(status.missing_keys.is_empty() && status.rollouts.is_empty());
    assert_eq!(status.conditions[0].reason, Reason::Synced.as_str());
}

#[test]
fn a_resource_without_status_or_options_decodes_and_encodes_small() {
    let spec = json!({"connectionRef": {"name": "main"}, "vault": "db"});
    let stored = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret",
                        "metadata": {"name": "db"}, "spec": spec});
    let resource: FerrVaultSecret = serde_json::from_value(stored).unwrap();
    assert!(resource.status.is_none());
    assert_eq!(serde_json::to_value(&resource.spec).unwrap(), spec, "nothing is written that was not there");
}

#[test]
fn a_transform_of_an_unknown_type_is_still_readable() {
    let spec = json!({"connectionRef": {"name": "main"}, "vault": "db", "transforms": [{"type": "rot13"}]});
    let spec: ferrvault_api::FerrVaultSecretSpec = serde_json::from_value(spec).unwrap();
    assert_eq!(spec.transforms[0].type_, "rot13");
}

#[test]
fn a_connection_without_options_has_the_contracts_defaults() {
    let stored = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultConnection",
                        "metadata": {"name": "main"},
                        "spec": {"url": "https://vault.example", "tokenSecretRef": null,
                                 "oidc": {"clusterID": "0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f60"}}});
    let connection: FerrVaultConnection = serde_json::from_value(stored).unwrap();
    assert_eq!(connection.spec.mode, Mode::Ferrvault);
    let oidc = connection.spec.oidc.unwrap();
    assert_eq!(oidc.token_path, "/var/run/secrets/ferrvault/token");
    assert_eq!(oidc.audience, "https://ferrflow.com");
    assert!(connection.spec.token_secret_ref.is_none() && connection.spec.allow_insecure_http.is_none());
}

#[test]
fn reasons_have_one_spelling_each_and_read_back() {
    let mut spellings: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    for reason in Reason::ALL {
        assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        // What the API server asks of a condition's reason.
        let text = reason.as_str();
        assert!(
            text.starts_with(|first: char| first.is_ascii_uppercase())
                && text.chars().all(|c| c.is_ascii_alphanumeric())
        );
    }
    spellings.sort_unstable();
    spellings.dedup();
    assert_eq!(spellings.len(), Reason::ALL.len());
    assert_eq!(Reason::parse("synced"), None);
}

#[test]
fn a_mark_fits_into_an_annotation_name() {
    let mark = marks::workload_mark("0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f60");
    let (_, name) = mark.split_once('/').unwrap();
    assert!(name.len() <= 63, "{name} has {} characters", name.len());
}

#[test]
fn a_request_for_a_pass_is_due_until_its_value_is_in_the_status() {
    for (annotation, handled, due) in [
        (None, None, false),
        (None, Some("1"), false),
        (Some("1"), None, true),
        (Some("1"), Some("1"), false),
        (Some("2"), Some("1"), true),
        (Some(""), None, true),
        (Some(""), Some(""), false),
    ] {
        let mut object = json!({
            "apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret",
            "metadata": {"name": "db", "annotations": {"another": "note"}},
            "spec": {"connectionRef": {"name": "main"}, "vault": "v"},
            "status": {"lastHandledRefresh": handled},
        });
        if let Some(value) = annotation {
            object["metadata"]["annotations"]["ferrvault.com/refresh"] = value.into();
        }
        let resource: FerrVaultSecret = serde_json::from_value(object).unwrap();
        assert_eq!(resource.refresh_is_due(), due, "{annotation:?} after {handled:?}");
    }
}
