//! What the API server accepts and what it refuses, and with which words.

use serde_json::{Value, json};
use xtask::control_plane::{ControlPlane, StartOptions};
use xtask::crds;

use crate::{Kinds, install, with};

/// The specs of `table` with a name each, applied one by one: `Ok` is accepted, `Err` is refused with these words.
async fn judge(kinds: &Kinds, kind: &str, table: Vec<(&str, Value, Result<(), &str>)>) {
    for (number, (case, spec, expected)) in table.into_iter().enumerate() {
        let answer = kinds.create(kind, &format!("case-{number}"), spec).await;
        match (answer, expected) {
            (Ok(_), Ok(())) => {}
            (Err(words), Err(expected)) => assert!(words.contains(expected), "{case}: {words}"),
            (Ok(_), Err(expected)) => panic!("{case}: accepted, where {expected:?} was to be said"),
            (Err(words), Ok(())) => panic!("{case}: {words}"),
        }
    }
}

#[tokio::test]
async fn admission_refuses_what_can_never_work_and_says_what_to_change() {
    let plane = ControlPlane::start(StartOptions::default()).await.unwrap();
    install(&plane.client(), crds::definitions()).await;
    let kinds = Kinds::new(&plane.client());

    let base = json!({"connectionRef": {"name": "main"}, "vault": "db"});
    let interval = |text: &str| with(&base, "refreshInterval", json!(text));
    let step = |step: Value| with(&base, "transforms", json!([step]));
    let prefix = "prefix and suffix need a value, and no other type has one";
    let rename = "rename needs from and to, and no other type has them";
    let key = "jsonExpand needs key, and no other type has it; base64Decode takes a list, keys";
    let keys = "only base64Decode has keys; jsonExpand takes one, key";
    let words = "refreshInterval must be a duration such as 30m or 1h30m, not negative";
    judge(
        &kinds,
        "FerrVaultSecret",
        vec![
            ("the least", base.clone(), Ok(())),
            ("an interval", interval("1h30m"), Ok(())),
            ("scheduled refresh off", interval("0s"), Ok(())),
            ("zero without a unit", interval("0"), Ok(())),
            ("a plus sign", interval("+1.5h"), Ok(())),
            ("microseconds in Greek", interval("5μs"), Ok(())),
            ("microseconds with the micro sign", interval("5µs"), Ok(())),
            ("a negative interval", interval("-1s"), Err(words)),
            ("an interval in words", interval("abc"), Err(words)),
            ("an empty interval", interval(""), Err(words)),
            ("an interval without a unit", interval("30"), Err(words)),
            ("an interval that overflows", interval("9999999999h"), Err(words)),
            ("an interval of 65 digits", interval(&"9".repeat(65)), Err("may not be more than 64")),
            ("an interval that is a number", with(&base, "refreshInterval", json!(30)), Err("must be of type string")),
            ("no connection", json!({"vault": "db"}), Err("spec.connectionRef: Required value")),
            ("no vault", json!({"connectionRef": {"name": "main"}}), Err("spec.vault: Required value")),
            ("an empty vault", with(&base, "vault", json!("")), Err("spec.vault")),
            ("an empty connection", with(&base, "connectionRef", json!({"name": ""})), Err("spec.connectionRef.name")),
            (
                "a workload that cannot be restarted",
                with(&base, "rolloutRestart", json!([{"kind": "Pod", "name": "web"}])),
                Err(r#"supported values: "Deployment", "StatefulSet", "DaemonSet""#),
            ),
            (
                "a transform that nobody knows",
                with(&base, "transforms", json!([{"type": "rot13"}])),
                Err(r#"supported values: "prefix", "suffix", "rename", "base64Decode", "jsonExpand""#),
            ),
            ("a prefix", step(json!({"type": "prefix", "value": "A_"})), Ok(())),
            ("a suffix", step(json!({"type": "suffix", "value": "_A"})), Ok(())),
            ("a rename", step(json!({"type": "rename", "from": "a", "to": "b"})), Ok(())),
            ("all to decode", step(json!({"type": "base64Decode"})), Ok(())),
            ("some to decode", step(json!({"type": "base64Decode", "keys": ["a"], "key": null})), Ok(())),
            ("one to expand", step(json!({"type": "jsonExpand", "key": "a", "keys": []})), Ok(())),
            ("a prefix of nothing", step(json!({"type": "prefix", "value": ""})), Err(prefix)),
            ("a suffix without a value", step(json!({"type": "suffix"})), Err(prefix)),
            ("a value to rename", step(json!({"type": "rename", "from": "a", "to": "b", "value": "c"})), Err(prefix)),
            ("a rename to nothing", step(json!({"type": "rename", "from": "a", "to": ""})), Err(rename)),
            ("a rename from nothing", step(json!({"type": "rename", "to": "a"})), Err(rename)),
            ("a prefix from", step(json!({"type": "prefix", "value": "a", "from": "b"})), Err(rename)),
            ("one key to decode", step(json!({"type": "base64Decode", "key": "a"})), Err(key)),
            ("nothing to expand", step(json!({"type": "jsonExpand"})), Err(key)),
            ("many keys to expand", step(json!({"type": "jsonExpand", "key": "a", "keys": ["b"]})), Err(keys)),
            (
                "more steps than a pass applies",
                with(&base, "transforms", json!(vec![json!({"type": "base64Decode"}); 65])),
                Err("must have at most 64 items"),
            ),
            (
                "nothing where something may be",
                json!({"connectionRef": {"name": "main"}, "vault": "db", "refreshInterval": null, "target": null,
                       "selector": {"names": null}, "rolloutRestart": null, "transforms": null}),
                Ok(()),
            ),
        ],
    )
    .await;

    let token = json!({"name": "token", "key": "token"});
    let base = json!({"url": "https://vault.example", "tokenSecretRef": token});
    let uuid = "0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f60";
    let oidc = |id: &str| json!({"url": "https://vault.example", "oidc": {"clusterID": id}});
    let one = "set exactly one of tokenSecretRef and oidc";
    let scope = "organization is required when mode is cloud";
    let cloud = with(&base, "mode", json!("cloud"));
    judge(
        &kinds,
        "FerrVaultConnection",
        vec![
            ("a token", base.clone(), Ok(())),
            ("workload identity", oidc(uuid), Ok(())),
            ("a null beside workload identity", with(&oidc(uuid), "tokenSecretRef", Value::Null), Ok(())),
            ("plain http, which is judged at run time", with(&base, "url", json!("http://vault.example")), Ok(())),
            ("neither credential", json!({"url": "https://vault.example"}), Err(one)),
            ("both credentials", with(&oidc(uuid), "tokenSecretRef", token), Err(one)),
            ("another scheme", with(&base, "url", json!("ftp://vault.example")), Err("spec.url")),
            ("no scheme", with(&base, "url", json!("vault.example")), Err("spec.url")),
            ("cloud without an organization", cloud.clone(), Err(scope)),
            ("cloud with an empty organization", with(&cloud, "organization", json!("")), Err(scope)),
            ("cloud with an organization", with(&cloud, "organization", json!("acme")), Ok(())),
            ("a mode that nobody knows", with(&base, "mode", json!("clod")), Err(r#""ferrvault", "cloud""#)),
            ("a cluster that is no UUID", oidc("cluster-1"), Err("clusterID must be a UUID of 36 characters")),
            ("36 dashes", oidc(&"-".repeat(36)), Err("clusterID must be a UUID of 36 characters")),
            ("a token without a key", with(&base, "tokenSecretRef", json!({"name": "token"})), Err("Required value")),
        ],
    )
    .await;

    let stored = kinds.secrets.get("case-0").await.unwrap().data;
    assert!(stored["spec"].get("refreshInterval").is_none(), "the operator's flag is the default: {stored}");
    let stored = kinds.connections.get("case-1").await.unwrap().data;
    assert_eq!(stored["spec"]["mode"], "ferrvault");
    assert_eq!(stored["spec"]["oidc"]["tokenPath"], "/var/run/secrets/ferrvault/token");
    assert_eq!(stored["spec"]["oidc"]["audience"], "https://ferrflow.com");
}
