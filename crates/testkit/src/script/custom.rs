//! Custom resources: schema, pruning, defaults, the status door, generations, apply on list maps. Nothing here breaks a
//! CEL rule: the model has none.

use serde_json::{Value, json};

use super::{Content, Show, Step};

const ALL: &str = "/apis/ferrvault.com/v1alpha1/namespaces/{ns}/ferrvaultsecrets";

fn one(name: &str) -> String {
    format!("{ALL}/{name}?fieldManager=script")
}

fn status(name: &str, manager: &str) -> String {
    format!("{ALL}/{name}/status?fieldManager={manager}")
}

fn new(name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret",
        "metadata": { "name": name }, "spec": { "connectionRef": { "name": "main" }, "vault": "v" },
    });
    json_patch::merge(&mut object, &rest);
    object
}

fn condition(type_: &str, status: &str) -> Value {
    json!({ "type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

fn status_of(rest: Value) -> Value {
    json!({ "apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret", "metadata": { "name": "app" }, "status": rest })
}

pub(super) fn steps() -> Vec<Step> {
    let all = format!("{ALL}?fieldManager=script");
    let create = |what, body| Step::post(what, all.clone(), body);
    let apply = |what, manager, body| Step::patch(what, status("app", manager), Content::Apply, body);
    vec![
        create(
            "create",
            new(
                "app",
                json!({ "spec": { "unknown": 1, "target": { "name": "t", "colour": "red" } }, "status": { "contentHash": "x" }, "more": 1 }),
            ),
        ),
        create("without a vault", new("x", json!({ "spec": { "vault": null } }))),
        create("with an empty vault", new("x", json!({ "spec": { "vault": "" } }))),
        create("with a number as vault", new("x", json!({ "spec": { "vault": 1 } }))),
        create("without a spec", new("x", json!({ "spec": null }))),
        create("with a bad kind", new("x", json!({ "spec": { "rolloutRestart": [{ "kind": "Pod", "name": "p" }] } }))),
        create(
            "with a nameless workload",
            new("x", json!({ "spec": { "rolloutRestart": [{ "kind": "Deployment" }] } })),
        ),
        create("with a bad transform", new("x", json!({ "spec": { "transforms": [{ "type": "reverse" }] } }))),
        create("with a list for a map", new("x", json!({ "spec": { "target": [] } }))),
        Step::post("strictly", format!("{all}&fieldValidation=Strict"), new("x", json!({ "spec": { "unknown": 1 } }))),
        Step::merge("merge into spec", one("app"), json!({ "spec": { "vault": "w" } })),
        Step::merge("merge the same", one("app"), json!({ "spec": { "vault": "w" } })),
        Step::merge("merge only metadata", one("app"), json!({ "metadata": { "annotations": { "a": "b" } } })),
        Step::merge("merge status through the main door", one("app"), json!({ "status": { "contentHash": "h" } })),
        Step::merge("merge what is unknown", one("app"), json!({ "spec": { "unknown": 2 } })),
        Step::merge("merge what is wrong", one("app"), json!({ "spec": { "vault": "" } })),
        Step::patch("strategic", one("app"), Content::Strategic, json!({ "spec": { "vault": "x" } })),
        Step::merge(
            "status",
            status("app", "script"),
            json!({ "status": { "contentHash": "h", "conditions": [condition("Ready", "True")] } }),
        ),
        Step::merge(
            "the same status",
            status("app", "script"),
            json!({ "status": { "contentHash": "h", "conditions": [condition("Ready", "True")] } }),
        ),
        Step::merge(
            "spec through the status door",
            status("app", "script"),
            json!({ "spec": { "vault": "z" }, "metadata": { "annotations": { "c": "d" }, "labels": { "e": "f" } } }),
        ),
        Step::merge(
            "another uid through the status door",
            status("app", "script"),
            json!({ "metadata": { "uid": "other" }, "status": { "contentHash": "i" } }),
        ),
        Step::merge(
            "an old revision through the status door",
            status("app", "script"),
            json!({ "metadata": { "resourceVersion": "1" }, "status": { "contentHash": "j" } }),
        ),
        Step::merge(
            "the right revision through the status door",
            status("app", "script"),
            json!({ "metadata": { "resourceVersion": "{rv:app}" }, "status": { "contentHash": "j" } }),
        ),
        Step::merge(
            "one condition twice",
            status("app", "script"),
            json!({ "status": { "conditions": [condition("Ready", "True"), condition("Ready", "False")] } }),
        ),
        Step::merge(
            "a condition without a status",
            status("app", "script"),
            json!({ "status": { "conditions": [{ "type": "Ready" }] } }),
        ),
        Step::merge(
            "a time that is none",
            status("app", "script"),
            json!({ "status": { "lastSyncedAt": "yesterday" } }),
        ),
        Step::merge("unknown status", status("app", "script"), json!({ "status": { "mood": "good" } })),
        Step::merge("null status field", status("app", "script"), json!({ "status": { "contentHash": null } })),
        Step::merge("status of nothing", status("none", "script"), json!({ "status": {} })),
        Step::get("get status", status("app", "script")),
        Step::put("replace without a revision", one("app"), new("app", json!({}))),
        Step::put(
            "replace",
            one("app"),
            new("app", json!({ "metadata": { "resourceVersion": "{rv:app}" }, "status": { "contentHash": "lost" } })),
        ),
        Step::put(
            "replace status",
            status("app", "script"),
            new(
                "app",
                json!({ "metadata": { "resourceVersion": "{rv:app}", "labels": { "not": "taken" } }, "spec": { "vault": "not taken" }, "status": { "contentHash": "k", "conditions": [condition("Ready", "True")] } }),
            ),
        ),
        apply("apply a condition", "one", status_of(json!({ "conditions": [condition("One", "True")] }))),
        apply("apply another", "two", status_of(json!({ "conditions": [condition("Two", "True")] }))),
        apply("apply somebody else's", "two", status_of(json!({ "conditions": [condition("One", "False")] }))),
        apply("the first lets go", "one", status_of(json!({}))),
        apply("apply what is wrong", "one", status_of(json!({ "conditions": [{ "type": "One", "status": "Maybe" }] }))),
        apply("apply a spec through the status door", "one", new("app", json!({}))),
        Step::patch(
            "apply through the main door",
            one("app"),
            Content::Apply,
            new("app", json!({ "spec": { "vault": "applied" }, "status": { "contentHash": "lost" } })),
        ),
        Step::patch(
            "insist",
            format!("{}&force=true", one("app")),
            Content::Apply,
            new("app", json!({ "spec": { "vault": "applied" } })),
        ),
        Step::merge("a finalizer", one("app"), json!({ "metadata": { "finalizers": ["a.b/c"] } })),
        Step::delete("delete", one("app"), Value::Null),
        Step::merge("status of what is going", status("app", "script"), json!({ "status": { "contentHash": "last" } })),
        Step::merge("spec of what is going", one("app"), json!({ "spec": { "vault": "last" } })),
        Step::patch(
            "let go",
            one("app"),
            Content::JsonPatch,
            json!([
            { "op": "test", "path": "/metadata/finalizers/0", "value": "a.b/c" }, { "op": "remove", "path": "/metadata/finalizers/0" } ]),
        ),
        Step::get("gone", one("app")),
        connection("a connection", "c", json!({})),
        connection("a connection without a scheme", "x", json!({ "url": "vault" })),
        connection("a connection in no mode", "x", json!({ "mode": "other" })),
        connection(
            "a connection with an id",
            "d",
            json!({ "tokenSecretRef": null, "oidc": { "clusterID": "00000000-0000-4000-8000-000000000000" } }),
        ),
        connection("a connection with nulls", "e", json!({ "mode": null })),
        Step::get("no such kind", "/apis/ferrvault.com/v1alpha1/namespaces/{ns}/nothings"),
        Step::get("no such group", "/apis/nowhere.example/v1/things").showing(Show::All),
    ]
}

fn connection(what: &'static str, name: &str, spec: Value) -> Step {
    let mut object = json!({
        "apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultConnection",
        "metadata": { "name": name },
        "spec": { "url": "https://vault.example", "tokenSecretRef": { "name": "t", "key": "k" } },
    });
    // Not a merge: a null has to arrive as a null.
    for (key, value) in spec.as_object().into_iter().flatten() {
        let fields = crate::object::map_mut(&mut object, "spec");
        if key == "tokenSecretRef" {
            fields.remove(key);
        } else {
            fields.insert(key.clone(), value.clone());
        }
    }
    let all = "/apis/ferrvault.com/v1alpha1/namespaces/{ns}/ferrvaultconnections?fieldManager=script";
    Step::post(what, all, object)
}
