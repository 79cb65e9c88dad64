//! The generated definitions in a real API server: what it accepts, what it refuses and with which words, and that
//! everything the Go operator's schema let in still takes a status after the upgrade.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by it")]

use std::path::Path;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt};
use serde_json::{Value, json};
use xtask::control_plane::{ControlPlane, StartOptions};
use xtask::{crds, repository};

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

/// The definitions that the Go operator's chart installed.
fn go_definitions() -> Vec<CustomResourceDefinition> {
    let folder = repository::root().join("e2e/fixtures/go-schema");
    let read = |file: &str| {
        let text = std::fs::read_to_string(Path::new(&folder).join(file)).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    };
    vec![read("ferrvaultconnections.yaml"), read("ferrvaultsecrets.yaml")]
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

fn with(base: &Value, field: &str, value: Value) -> Value {
    let mut spec = base.clone();
    spec[field] = value;
    spec
}

#[tokio::test]
async fn admission_refuses_what_can_never_work_and_says_what_to_change() {
    let plane = ControlPlane::start(StartOptions::default()).await.unwrap();
    install(&plane.client(), crds::definitions()).await;
    let kinds = Kinds::new(&plane.client());

    let base = json!({"connectionRef": {"name": "main"}, "vault": "db"});
    let interval = |text: &str| with(&base, "refreshInterval", json!(text));
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

/// A status as the Go operator wrote it: the whole object, by update, with nil slices as null.
fn go_status(kind: &str) -> Value {
    let ready = json!({"type": "Ready", "status": "True", "reason": "Synced", "message": "2 keys synced",
                       "lastTransitionTime": "2026-03-01T10:00:00Z", "observedGeneration": 1});
    if kind == "FerrVaultSecret" {
        let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        json!({"conditions": [ready], "lastSyncedAt": "2026-03-01T10:00:00Z", "lastRolloutHash": hash,
               "syncedKeys": ["A", "B"], "missingKeys": null, "observedGeneration": 1})
    } else {
        json!({"conditions": [ready], "lastCheckedAt": "2026-03-01T10:00:00Z"})
    }
}

/// A status as this operator writes it: a merge patch with the resourceVersion it read.
async fn patch_status(api: &Api<DynamicObject>, name: &str, status: Value) -> Result<DynamicObject, kube::Error> {
    let version = api.get(name).await?.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
    api.patch_status(
        name,
        &PatchParams { field_manager: Some("ferrvault-operator".to_owned()), ..PatchParams::default() },
        &Patch::Merge(patch),
    )
    .await
}

#[tokio::test]
async fn whatever_the_go_schema_let_in_still_takes_a_status_after_the_upgrade() {
    let plane = ControlPlane::start(StartOptions::default()).await.unwrap();
    install(&plane.client(), go_definitions()).await;
    let kinds = Kinds::new(&plane.client());

    let base = json!({"connectionRef": {"name": "main"}, "vault": "db"});
    let interval = |text: &str| with(&base, "refreshInterval", json!(text));
    let twice = json!([{"kind": "Deployment", "name": "web"}, {"kind": "Deployment", "name": "web"}]);
    let secret = |case: &str, spec: Value| ("FerrVaultSecret", case.to_owned(), spec);
    let connection = |case: &str, spec: Value| ("FerrVaultConnection", case.to_owned(), spec);
    let url = json!({"url": "https://vault.example"});
    let both = json!({"clusterID": "0b9f1a52-7d0e-4a55-9c52-3f6b1d2e4f60"});
    let token = json!({"name": "token", "key": "token"});
    let objects = vec![
        secret("plain", base.clone()),
        secret(
            "empty-names",
            json!({"connectionRef": {"name": ""}, "vault": "db", "target": {"name": "", "type": ""}}),
        ),
        secret("negative", interval("-1s")),
        secret("no-duration", interval("abc")),
        secret("overflow", interval("99999999999h")),
        secret("long", interval(&"1h".repeat(60))),
        secret("empty-interval", interval("")),
        secret("empty-workload", with(&base, "rolloutRestart", json!([{"kind": "Deployment", "name": ""}]))),
        secret("workload-twice", with(&base, "rolloutRestart", twice)),
        connection("token", with(&url, "tokenSecretRef", token.clone())),
        connection("no-credential", url.clone()),
        connection("both-credentials", with(&with(&url, "tokenSecretRef", token), "oidc", both)),
        connection("empty-token", with(&url, "tokenSecretRef", json!({"name": "", "key": ""}))),
        connection("dashes", with(&url, "oidc", json!({"clusterID": "-".repeat(36)}))),
    ];
    let update = PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() };
    for (kind, name, spec) in &objects {
        let mut made = kinds.create(kind, name, spec.clone()).await.unwrap_or_else(|words| panic!("{name}: {words}"));
        made.data["status"] = go_status(kind);
        let stored = kinds.of(kind).replace_status(name, &update, &made).await.unwrap();
        assert!(stored.data["status"].get("missingKeys").is_none(), "{name}: a null is stored");
    }

    install(&plane.client(), crds::definitions()).await;
    kinds.upgraded().await;

    let at = "2026-11-30T12:00:00Z";
    for (kind, name, _) in &objects {
        let before = kinds.of(kind).get(name).await.unwrap();
        let ready = json!({"type": "Ready", "status": "False", "reason": "InvalidSpec", "message": "",
                           "lastTransitionTime": at, "observedGeneration": 1});
        let restarted = json!({"type": "RolloutRestarted", "status": "True", "reason": "Restarted", "message": "",
                               "lastTransitionTime": at, "observedGeneration": 1});
        let rollout = json!({"kind": "Deployment", "name": "web", "state": "Restarted", "since": at});
        let status = if *kind == "FerrVaultSecret" {
            json!({"conditions": [ready, restarted], "lastAttemptedAt": at, "contentHash": "v", "rollouts": [rollout]})
        } else {
            json!({"conditions": [ready], "lastCheckedAt": at})
        };
        // Twice: the first write turns the list of conditions into a map, the second one meets it.
        for round in ["first", "second"] {
            let after = patch_status(kinds.of(kind), name, status.clone()).await;
            let after = after.unwrap_or_else(|error| panic!("{name}, {round} status: {error}"));
            assert_eq!(after.data["status"]["conditions"], status["conditions"], "{name}, {round} status");
            assert_eq!(after.data["spec"], before.data["spec"], "{name}: the spec is another one");
            assert_eq!(after.metadata.generation, before.metadata.generation, "{name}");
        }
        // What else the operator writes on them: finalizers.
        let finalizers = json!({"metadata": {"finalizers": ["ferrvault.com/connection-cleanup"]}});
        let params = PatchParams::default();
        kinds.of(kind).patch(name, &params, &Patch::Merge(finalizers)).await.unwrap();
        let none = json!({"metadata": {"finalizers": null}});
        kinds.of(kind).patch(name, &params, &Patch::Merge(none)).await.unwrap();
    }

    // What was in status before and is not written again stays.
    let plain = kinds.secrets.get("plain").await.unwrap().data;
    assert_eq!(plain["status"]["syncedKeys"], json!(["A", "B"]));
    assert_eq!(plain["spec"]["refreshInterval"], "1h", "what the old default wrote is the user's now");

    // Broken is forgiven only as long as it stays as it was.
    let edit = json!({"spec": {"refreshInterval": "-2s"}});
    let refused = kinds.secrets.patch("negative", &PatchParams::default(), &Patch::Merge(edit)).await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("refreshInterval")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn two_writers_keep_their_conditions_apart_even_on_an_object_from_before_the_upgrade() {
    let plane = ControlPlane::start(StartOptions::default()).await.unwrap();
    install(&plane.client(), go_definitions()).await;
    let kinds = Kinds::new(&plane.client());
    let spec = json!({"connectionRef": {"name": "main"}, "vault": "db"});
    let mut made = kinds.create("FerrVaultSecret", "shared", spec).await.unwrap();
    made.data["status"] = go_status("FerrVaultSecret");
    let update = PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() };
    kinds.secrets.replace_status("shared", &update, &made).await.unwrap();
    install(&plane.client(), crds::definitions()).await;
    kinds.upgraded().await;

    let applied = |type_: &str| {
        let condition = json!({"type": type_, "status": "True", "reason": "Seen", "message": "",
                               "lastTransitionTime": "2026-11-30T12:00:00Z"});
        let status = json!({"conditions": [condition]});
        Patch::Apply(json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret",
                            "metadata": {"name": "shared"}, "status": status}))
    };
    for (writer, type_) in [("one", "First"), ("two", "Second")] {
        // Not forced: nobody owns another's condition, so there is nothing to take away.
        kinds.secrets.patch_status("shared", &PatchParams::apply(writer), &applied(type_)).await.unwrap();
    }
    let types = async || {
        let now = kinds.secrets.get("shared").await.unwrap().data;
        let conditions = now["status"]["conditions"].as_array().unwrap().clone();
        conditions.iter().map(|condition| condition["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types().await, ["Ready", "First", "Second"]);

    // A type twice is refused: the list is a map.
    let ready = go_status("FerrVaultSecret")["conditions"][0].clone();
    let refused = patch_status(&kinds.secrets, "shared", json!({"conditions": [ready, ready]})).await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("Duplicate value")),
        "{refused:?}"
    );

    kinds.secrets.delete("shared", &DeleteParams::default()).await.unwrap();
    assert!(kinds.secrets.get_opt("shared").await.unwrap().is_none());
}
