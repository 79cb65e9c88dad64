//! Server-side apply on Secrets: claims, conflicts, force, release, and how updates take fields over.

use serde_json::{Value, json};

use super::{Content, Step};

fn path(name: &str, manager: &str) -> String {
    format!("/api/v1/namespaces/{{ns}}/secrets/{name}?fieldManager={manager}")
}

fn apply(what: &'static str, path: String, rest: Value) -> Step {
    let name = path.split(['/', '?']).nth(6).unwrap_or_default();
    let mut object = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
    json_patch::merge(&mut object, &rest);
    Step::patch(what, path, Content::Apply, object)
}

pub(super) fn steps() -> Vec<Step> {
    let by = |manager| path("shared", manager);
    let forced = |manager| format!("{}&force=true", path("shared", manager));
    vec![
        apply(
            "apply creates",
            by("one"),
            json!({ "metadata": { "labels": { "l": "1" } }, "data": { "a": "YQ==", "b": "Yg==" } }),
        ),
        apply(
            "apply the same",
            by("one"),
            json!({ "metadata": { "labels": { "l": "1" } }, "data": { "a": "YQ==", "b": "Yg==" } }),
        ),
        apply("another agrees", by("two"), json!({ "data": { "a": "YQ==" } })),
        apply("another differs", by("two"), json!({ "data": { "a": "YTI=" } })),
        apply("another differs twice", by("two"), json!({ "data": { "a": "YTI=", "b": "YjI=" } })),
        apply("another insists", forced("two"), json!({ "data": { "a": "YTI=" } })),
        apply("the first lets go", by("one"), json!({ "data": { "b": "Yg==" } })),
        apply("the second lets go", by("two"), json!({ "metadata": { "labels": { "k": "2" } } })),
        Step::merge("a third updates", by("three"), json!({ "data": { "b": "YjM=" } })),
        apply("the first wants it back", by("one"), json!({ "data": { "b": "Yg==" } })),
        apply("the first gets it back", forced("one"), json!({ "data": { "b": "Yg==" } })),
        apply(
            "with an old revision",
            by("one"),
            json!({ "metadata": { "resourceVersion": "1" }, "data": { "b": "Yg==" } }),
        ),
        apply("with another uid", by("one"), json!({ "metadata": { "uid": "other" }, "data": { "b": "Yg==" } })),
        apply("with managed fields", by("one"), json!({ "metadata": { "managedFields": [{ "manager": "x" }] } })),
        apply("not base64", by("one"), json!({ "data": { "b": "%%%" } })),
        apply("a bad key", by("one"), json!({ "data": { "b c": "Yg==" } })),
        apply("create with a revision", path("absent", "one"), json!({ "metadata": { "resourceVersion": "1" } })),
        apply("create with a uid", path("absent", "one"), json!({ "metadata": { "uid": "other" } })),
        Step::patch("apply without a name", by("one"), Content::Apply, json!({ "apiVersion": "v1", "kind": "Secret" })),
        apply("apply another name", by("one"), json!({ "metadata": { "name": "other" } })),
        Step::patch("apply without a kind", by("one"), Content::Apply, json!({ "data": {} })),
        apply("a finalizer", by("one"), json!({ "metadata": { "finalizers": ["a.b/one"] }, "data": { "b": "Yg==" } })),
        apply("another finalizer", by("two"), json!({ "metadata": { "finalizers": ["a.b/two"] } })),
        apply("the first finalizer goes", by("one"), json!({ "data": { "b": "Yg==" } })),
        apply(
            "owners, by uid",
            by("one"),
            json!({ "metadata": { "ownerReferences": [
            { "apiVersion": "v1", "kind": "Secret", "name": "o", "uid": "o-1" } ] }, "data": { "b": "Yg==" } }),
        ),
        apply(
            "another owner",
            by("two"),
            json!({ "metadata": { "finalizers": ["a.b/two"], "ownerReferences": [
            { "apiVersion": "v1", "kind": "Secret", "name": "p", "uid": "p-1" } ] } }),
        ),
        apply("the first owner goes", by("one"), json!({ "data": { "b": "Yg==" } })),
        Step::delete("clean up", path("shared", "one"), Value::Null),
    ]
}
