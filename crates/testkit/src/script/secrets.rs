//! Secrets: every way to write one, and every way to be refused.

use serde_json::{Value, json};

use super::{Content, Show, Step};

const ALL: &str = "/api/v1/namespaces/{ns}/secrets";

fn one(name: &str) -> String {
    format!("{ALL}/{name}?fieldManager=script")
}

fn new(name: &str, rest: Value) -> Value {
    let mut secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
    json_patch::merge(&mut secret, &rest);
    secret
}

pub(super) fn steps() -> Vec<Step> {
    let all = format!("{ALL}?fieldManager=script");
    let create = |what, body| Step::post(what, all.clone(), body);
    vec![
        create(
            "create",
            new("db", json!({ "data": { "a": "YQ==", "b": "Yg==" }, "stringData": { "b": "B", "c": "C" } })),
        ),
        create("create again", new("db", json!({}))),
        create("not base64", new("x", json!({ "data": { "a": "%%%" } }))),
        create("base64 cut short", new("x", json!({ "data": { "a": "YWI" } }))),
        create("a number as value", new("x", json!({ "data": { "a": 1 } }))),
        create("a key that is none", new("x", json!({ "data": { "a b": "YQ==" } }))),
        create("a key of two dots", new("x", json!({ "data": { "..": "YQ==" } }))),
        create("a name that is none", new("Not_A_Name", json!({}))),
        create("no name", json!({ "apiVersion": "v1", "kind": "Secret", "metadata": {} })),
        create("with a revision", new("x", json!({ "metadata": { "resourceVersion": "1" } }))),
        create("for another namespace", new("x", json!({ "metadata": { "namespace": "elsewhere" } }))),
        create("another kind", json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" } }))
            .showing(Show::Reason),
        create("too much", new("x", json!({ "stringData": { "a": "x".repeat(1024 * 1024 + 1) } }))),
        create("exactly enough, not stored", new("y", json!({ "stringData": { "a": "x" } }))),
        create("TLS without its keys", new("x", json!({ "type": "kubernetes.io/tls" }))),
        create("basic auth without its keys", new("x", json!({ "type": "kubernetes.io/basic-auth" }))),
        create("docker config that is none", new("x", json!({ "type": "kubernetes.io/dockerconfigjson" }))),
        create("token without an account", new("x", json!({ "type": "kubernetes.io/service-account-token" }))),
        create(
            "a long annotation name",
            new("x", json!({ "metadata": { "annotations": { format!("a/{}", "n".repeat(64)): "" } } })),
        ),
        create("a bad annotation name", new("x", json!({ "metadata": { "annotations": { "a b": "" } } }))),
        create("a bad label value", new("x", json!({ "metadata": { "labels": { "a": "b c" } } }))),
        create("an annotation that is no text", new("x", json!({ "metadata": { "annotations": { "a": 1 } } }))),
        create(
            "an owner without uid",
            new(
                "x",
                json!({ "metadata": { "ownerReferences": [
            { "apiVersion": "v1", "kind": "Secret", "name": "db", "uid": "" } ] } }),
            ),
        ),
        create(
            "two controllers",
            new(
                "x",
                json!({ "metadata": { "ownerReferences": [
            { "apiVersion": "v1", "kind": "Secret", "name": "a", "uid": "1", "controller": true },
            { "apiVersion": "v1", "kind": "Secret", "name": "b", "uid": "2", "controller": true } ] } }),
            ),
        ),
        create("a finalizer without a domain", new("x", json!({ "metadata": { "finalizers": ["mine"] } }))),
        create("an unknown field of metadata", new("z", json!({ "metadata": { "colour": "red" } }))),
        create(
            "a generated name",
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "generateName": "made-" } }),
        ),
        Step::post("in no namespace", "/api/v1/namespaces/nowhere/secrets", new("x", json!({}))),
        Step::post("only tried", format!("{all}&dryRun=All"), new("tried", json!({ "stringData": { "a": "A" } }))),
        Step::get("which is not there", one("tried")),
        Step::get("get", one("db")),
        Step::merge("merge nothing new", one("db"), json!({ "data": { "a": "YQ==" } })),
        Step::merge(
            "merge with an old revision",
            one("db"),
            json!({ "metadata": { "resourceVersion": "1" }, "data": { "a": "YTI=" } }),
        ),
        Step::merge(
            "merge with the right revision",
            one("db"),
            json!({ "metadata": { "resourceVersion": "{rv:db}" }, "data": { "a": "YTI=" } }),
        ),
        Step::merge("merge another type", one("db"), json!({ "type": "other" })),
        Step::merge("merge a key away", one("db"), json!({ "data": { "b": null } })),
        Step::merge("merge another uid", one("db"), json!({ "metadata": { "uid": "other" } })),
        Step::merge("merge text", one("db"), json!({ "stringData": { "d": "D" } })),
        Step::merge("merge what is not base64", one("db"), json!({ "data": { "a": "%%%" } })),
        Step::merge("merge a number", one("db"), json!({ "data": { "a": 1 } })),
        Step::merge("merge a name", one("db"), json!({ "metadata": { "name": "other" } })),
        Step::merge("merge a bad key", one("db"), json!({ "data": { "a b": "YQ==" } })),
        Step::merge("merge a list", one("db"), json!([])),
        Step::merge("merge into nothing", one("nothing"), json!({})),
        Step::patch(
            "strategic annotation",
            one("db"),
            Content::Strategic,
            json!({ "metadata": { "annotations": { "x/y": "z" } } }),
        ),
        Step::patch(
            "JSON patch whose test fails",
            one("db"),
            Content::JsonPatch,
            json!([
            { "op": "test", "path": "/data/a", "value": "no" }, { "op": "remove", "path": "/data/a" } ]),
        ),
        Step::patch(
            "JSON patch of what is not there",
            one("db"),
            Content::JsonPatch,
            json!([{ "op": "remove", "path": "/data/none" }]),
        ),
        Step::patch(
            "JSON patch",
            one("db"),
            Content::JsonPatch,
            json!([
            { "op": "test", "path": "/data/a", "value": "YTI=" }, { "op": "replace", "path": "/data/a", "value": "YTM=" },
            { "op": "add", "path": "/metadata/labels", "value": { "l": "m" } } ]),
        ),
        Step::patch("an unknown content type", one("db"), Content::Unknown, json!({})),
        Step::put(
            "replace with an old revision",
            one("db"),
            new("db", json!({ "metadata": { "resourceVersion": "1" } })),
        ),
        Step::put("replace another name", one("db"), new("other", json!({}))),
        Step::put("replace another uid", one("db"), new("db", json!({ "metadata": { "uid": "other" } }))),
        Step::put("replace what is not there", one("none"), new("none", json!({}))),
        Step::put("replace without a revision", one("db"), new("db", json!({ "data": { "a": "YTQ=" } }))),
        create(
            "TLS",
            new("tls", json!({ "type": "kubernetes.io/tls", "stringData": { "tls.crt": "c", "tls.key": "k" } })),
        ),
        Step::put(
            "replace TLS without a type",
            one("tls"),
            new("tls", json!({ "stringData": { "tls.crt": "c", "tls.key": "k" } })),
        ),
        Step::merge("make immutable", one("db"), json!({ "immutable": true })),
        Step::merge("change what is immutable", one("db"), json!({ "data": { "a": "YTU=" } })),
        Step::merge("make mutable", one("db"), json!({ "immutable": null })),
        Step::merge("annotate what is immutable", one("db"), json!({ "metadata": { "annotations": { "n": "o" } } })),
        Step::delete("delete another uid", one("db"), json!({ "preconditions": { "uid": "other" } })),
        Step::delete("delete another revision", one("db"), json!({ "preconditions": { "resourceVersion": "1" } })),
        Step::delete("delete the right one", one("db"), json!({ "preconditions": { "uid": "{uid:db}" } })),
        Step::delete("delete again", one("db"), Value::Null),
        create("with a finalizer", new("held", json!({ "metadata": { "finalizers": ["a.b/c"] } }))),
        Step::delete("delete what is held", one("held"), Value::Null),
        Step::delete("delete what is going", one("held"), Value::Null),
        Step::merge("annotate what is going", one("held"), json!({ "metadata": { "annotations": { "n": "o" } } })),
        Step::merge("hold it once more", one("held"), json!({ "metadata": { "finalizers": ["a.b/c", "d.e/f"] } })),
        create("create over what is going", new("held", json!({}))),
        Step::merge("let go", one("held"), json!({ "metadata": { "finalizers": null } })),
        Step::get("gone", one("held")),
    ]
}
