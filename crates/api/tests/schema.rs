//! What the generated definitions promise to the API server and to people, field by field.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail that way")]

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use kube::CustomResourceExt;
use serde_json::{Value, json};

fn resource() -> Value {
    serde_json::to_value(FerrVaultSecret::crd()).unwrap()
}

fn connection() -> Value {
    serde_json::to_value(FerrVaultConnection::crd()).unwrap()
}

/// The schema of a field, by its path below the root of the object.
fn field<'a>(definition: &'a Value, path: &str) -> &'a Value {
    let mut schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for step in path.split('.') {
        schema = if step == "[]" { &schema["items"] } else { &schema["properties"][step] };
        assert!(schema.is_object(), "no schema for {step} of {path}");
    }
    schema
}

fn columns(definition: &Value) -> Vec<(String, i64)> {
    let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
    let column =
        |column: &Value| (column["name"].as_str().unwrap().to_owned(), column["priority"].as_i64().unwrap_or(0));
    columns.iter().map(column).collect()
}

/// Calls `visit` with every object below `value`, and the path to it.
fn walk(value: &Value, path: &str, visit: &mut impl FnMut(&str, &serde_json::Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            visit(path, map);
            for (name, below) in map {
                walk(below, &format!("{path}.{name}"), visit);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, path, visit)),
        _ => {}
    }
}

#[test]
fn names_are_the_ones_live_clusters_use() {
    for (definition, kind, plural, short) in [
        (resource(), "FerrVaultSecret", "ferrvaultsecrets", "fvs"),
        (connection(), "FerrVaultConnection", "ferrvaultconnections", "fvc"),
    ] {
        assert_eq!(definition["metadata"]["name"], format!("{plural}.ferrvault.com"));
        assert_eq!(definition["spec"]["scope"], "Namespaced");
        assert_eq!(definition["spec"]["names"]["kind"], kind);
        assert_eq!(definition["spec"]["names"]["shortNames"], json!([short]));
        let versions = definition["spec"]["versions"].as_array().unwrap();
        assert_eq!(versions.len(), 1);
        assert_eq!(versions[0]["name"], "v1alpha1");
        assert_eq!(versions[0]["subresources"], json!({"status": {}}));
    }
}

#[test]
fn columns_are_those_whose_fields_something_fills() {
    let narrow = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 0)).collect::<Vec<_>>();
    assert_eq!(columns(&connection()), narrow(&["URL", "Org", "Ready", "Reason", "Age"]));
    let (wide, shown): (Vec<_>, Vec<_>) = columns(&resource()).into_iter().partition(|(_, priority)| *priority > 0);
    assert_eq!(shown, narrow(&["Vault", "Ready", "Reason", "Fresh", "LastAttempt", "LastSynced", "Age"]));
    assert_eq!(wide, [("Project".to_owned(), 1), ("Rollout".to_owned(), 1)]);
}

#[test]
fn a_null_is_an_absent_field_everywhere() {
    for definition in [resource(), connection()] {
        walk(&definition, "", &mut |path, schema| {
            // The derive says it of `status` as a whole, where no rule looks and decoding takes both.
            let whole_status = path.ends_with("openAPIV3Schema.properties.status");
            assert!(whole_status || !schema.contains_key("nullable"), "{path} is nullable");
            assert!(!schema.contains_key("anyOf"), "{path} has alternatives");
        });
    }
}

#[test]
fn required_is_what_the_go_operator_required() {
    let resource = resource();
    for (path, required) in [
        ("spec", json!(["connectionRef", "vault"])),
        ("spec.connectionRef", json!(["name"])),
        ("spec.rolloutRestart.[]", json!(["kind", "name"])),
        ("spec.transforms.[]", json!(["type"])),
    ] {
        assert_eq!(field(&resource, path)["required"], required, "{path}");
    }
    let connection = connection();
    for (path, required) in
        [("spec", json!(["url"])), ("spec.tokenSecretRef", json!(["key", "name"])), ("spec.oidc", json!(["clusterID"]))]
    {
        assert_eq!(field(&connection, path)["required"], required, "{path}");
    }
    for definition in [&resource, &connection] {
        assert!(field(definition, "status").get("required").is_none());
    }
}

#[test]
fn defaults_are_these_and_no_others() {
    let mut found = Vec::new();
    for definition in [resource(), connection()] {
        walk(&definition, "", &mut |path, schema| {
            if let Some(default) = schema.get("default") {
                let name = path.rsplit('.').next().unwrap_or_default();
                found.push((name.to_owned(), default.clone()));
            }
        });
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    // None for refreshInterval: a default in the schema would make `--default-refresh-interval` useless.
    let expected = [
        ("audience", "https://ferrflow.com"),
        ("mode", "ferrvault"),
        ("tokenPath", "/var/run/secrets/ferrvault/token"),
    ];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), json!(value))));
}

#[test]
fn shared_lists_are_maps() {
    let keyed = |definition: &Value, path: &str, keys: Value| {
        let schema = field(definition, path);
        assert_eq!(schema["x-kubernetes-list-type"], "map", "{path}");
        assert_eq!(schema["x-kubernetes-list-map-keys"], keys, "{path}");
        // The API server accepts as keys only fields that are required.
        let required = schema["items"]["required"].as_array().unwrap();
        assert!(keys.as_array().unwrap().iter().all(|key| required.contains(key)), "{path}");
    };
    keyed(&resource(), "status.conditions", json!(["type"]));
    keyed(&resource(), "status.rollouts", json!(["kind", "name"]));
    keyed(&connection(), "status.conditions", json!(["type"]));
}

#[test]
fn choices_are_closed_where_the_contract_closes_them() {
    let workloads = json!(["Deployment", "StatefulSet", "DaemonSet"]);
    let resource = resource();
    assert_eq!(field(&resource, "spec.rolloutRestart.[].kind")["enum"], workloads);
    assert_eq!(field(&resource, "status.rollouts.[].kind")["enum"], workloads);
    let steps = json!(["prefix", "suffix", "rename", "base64Decode", "jsonExpand"]);
    assert_eq!(field(&resource, "spec.transforms.[].type")["enum"], steps);
    assert_eq!(field(&connection(), "spec.mode")["enum"], json!(["ferrvault", "cloud"]));
}

/// The regular expression in the first rule of a field: what stands between the first two quotes.
fn rule_pattern(definition: &Value, path: &str) -> regex::Regex {
    let rule = &field(definition, path)["x-kubernetes-validations"][0]["rule"];
    let pattern = rule.as_str().unwrap().split('\'').nth(1).unwrap();
    regex::Regex::new(pattern).unwrap()
}

#[test]
fn an_interval_is_a_go_duration_that_is_not_negative() {
    let pattern = rule_pattern(&resource(), "spec.refreshInterval");
    for good in [
        "30m",
        "1h30m",
        "0s",
        "0",
        "+5m",
        "1.5h",
        ".5s",
        "1.h",
        "300ms",
        "1us",
        "1µs",
        "1μs",
        "1ns",
        "1h1h",
        "+0",
        "999999h9999999m999999999s",
    ] {
        assert!(pattern.is_match(good), "{good} is a duration");
    }
    for bad in [
        "",
        "-1s",
        "abc",
        "30",
        "1d",
        "1 h",
        " 1h",
        "1h ",
        "h",
        ".s",
        "1h-1m",
        "++1h",
        "1H",
        "1,5h",
        "1e3s",
        "1h\n",
        "2562048h",
        "9223372036854775808ns",
    ] {
        assert!(!pattern.is_match(bad), "{bad:?} is not a duration");
    }
}

#[test]
fn a_cluster_id_is_a_uuid_of_36_characters() {
    let pattern = rule_pattern(&connection(), "spec.oidc.clusterID");
    for good in ["0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f60", "0B9F1A52-7D0E-4A55-9C52-3F6B1D2E4F60"] {
        assert_eq!(good.len(), 36);
        assert!(pattern.is_match(good), "{good}");
    }
    for bad in [
        "",
        "0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f6",
        "0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f600",
        "0b9f1a527d0e4a559c523f6b1d2e4f600000",
        "------------------------------------",
        "zb9f1a52-7d0e-4a55-9c52-3f6b1d2e4f60",
    ] {
        assert!(!pattern.is_match(bad), "{bad}");
    }
}

#[test]
fn every_field_explains_itself() {
    for definition in [resource(), connection()] {
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        walk(schema, "", &mut |path, object| {
            let Some(properties) = object.get("properties").and_then(Value::as_object) else {
                return;
            };
            for (name, property) in properties {
                // The root's `spec` and the like included: `kubectl explain` shows these texts.
                let text = property["description"].as_str().unwrap_or_default();
                assert!(text.len() > 10, "{path}.{name} has no description");
            }
        });
    }
}
