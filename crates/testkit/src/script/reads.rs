//! Lists, pages, selectors, watches.

use serde_json::{Value, json};

use super::{PARTIAL, PARTIAL_LIST, Show, Step};

const ALL: &str = "/api/v1/namespaces/{ns}/secrets";

fn secret(name: &str, tier: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "labels": { "tier": tier, "of": "reads" } }, "stringData": { "k": name } })
}

pub(super) fn steps() -> Vec<Step> {
    let create = |what, name, tier| Step::post(what, format!("{ALL}?fieldManager=script"), secret(name, tier));
    let list = |what, query: &str| Step::get(what, format!("{ALL}?{query}"));
    let watch = |what, query: &str| Step::get(what, format!("{ALL}?watch=true&timeoutSeconds=1&{query}"));
    let one = |name: &str| format!("{ALL}/{name}?fieldManager=script");
    vec![
        create("first", "r1", "a"),
        create("second", "r2", "b"),
        create("third", "r3", "a"),
        list("equal", "labelSelector=of%3Dreads,tier%3Da"),
        list("not equal", "labelSelector=of%3Dreads,tier!%3Da"),
        list("one of", "labelSelector=of%3Dreads,tier+in+(b,c)"),
        list("none of", "labelSelector=of%3Dreads,tier+notin+(b,c)"),
        list("without a label", "labelSelector=of,!tier"),
        list("nonsense as labels", "labelSelector=a%3Db%3Dc"),
        list("by name", "fieldSelector=metadata.name%3Dr2"),
        list("by type and name", "fieldSelector=type%3DOpaque,metadata.name!%3Dr2&labelSelector=of%3Dreads"),
        list("by an unknown field", "fieldSelector=data%3Dx"),
        list("the first page", "labelSelector=of%3Dreads&limit=2"),
        list("the next page", "labelSelector=of%3Dreads&limit=2&continue={continue}"),
        list("a page that is none", "limit=2&continue=nonsense").showing(Show::Reason),
        list("not older than", "labelSelector=of%3Dreads&resourceVersion={rv:r1}&resourceVersionMatch=NotOlderThan"),
        list("exactly then", "labelSelector=of%3Dreads&resourceVersion={rv:r1}&resourceVersionMatch=Exact"),
        list("anything", "labelSelector=of%3Dreads&resourceVersion=0"),
        list("metadata alone", "labelSelector=of%3Dreads,tier%3Db").accepting(PARTIAL_LIST),
        Step::get("metadata of one", one("r2")).accepting(PARTIAL),
        Step::merge("metadata of what was patched", one("r2"), json!({ "metadata": { "labels": { "tier": "a" } } }))
            .accepting(PARTIAL),
        Step::merge("leaves the selection", one("r1"), json!({ "metadata": { "labels": { "tier": "z" } } })),
        Step::delete("goes", one("r3"), Value::Null),
        watch("what happened since the first", "resourceVersion={rv:r3}&labelSelector=of%3Dreads,tier%3Da"),
        watch("the same, metadata alone", "resourceVersion={rv:r3}&labelSelector=of%3Dreads,tier%3Da")
            .accepting(PARTIAL),
        watch("from now on, with what is there", "labelSelector=of%3Dreads"),
        watch(
            "with what is there, streamed",
            "labelSelector=of%3Dreads&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        ),
        watch("streamed without saying how old", "sendInitialEvents=true&allowWatchBookmarks=true"),
        list("from the future", "resourceVersion=999999999&resourceVersionMatch=NotOlderThan"),
        Step::delete("all of them", format!("{ALL}?labelSelector=of%3Dreads"), Value::Null),
        list("none left", "labelSelector=of%3Dreads"),
    ]
}
