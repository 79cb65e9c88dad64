//! Workloads, leases, events, namespaces: what an operator does to kinds that are not its own.

use serde_json::{Value, json};

use super::{Content, Show, Step};

fn workload(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "app:1", "env": [{ "name": "A", "value": "1" }] }] },
            },
        },
    })
}

fn set(mut object: Value, pointer: &str, value: Value) -> Value {
    if let Some(slot) = object.pointer_mut(pointer) {
        *slot = value;
    }
    object
}

fn annotate(key: &str) -> Value {
    json!({ "spec": { "template": { "metadata": { "annotations": { key: "v" } } } } })
}

pub(super) fn steps() -> Vec<Step> {
    let all = |plural: &str| format!("/apis/apps/v1/namespaces/{{ns}}/{plural}?fieldManager=script");
    let one = |plural: &str, name: &str| format!("/apis/apps/v1/namespaces/{{ns}}/{plural}/{name}?fieldManager=script");
    let mut steps = Vec::new();
    for (kind, plural) in [("Deployment", "deployments"), ("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets")]
    {
        let web = one(plural, "web");
        steps.extend([
            Step::post("create a workload", all(plural), workload(kind, "web")),
            Step::merge("mark its template", web.clone(), annotate("ferrvault.com/mark")),
            Step::merge("mark it again", web.clone(), annotate("ferrvault.com/mark")),
            Step::merge("mark it badly", web.clone(), annotate(&format!("ferrvault.com/{}", "n".repeat(64)))),
            Step::merge("annotate it", web.clone(), json!({ "metadata": { "annotations": { "a": "b" } } })),
            Step::merge("label it", web.clone(), json!({ "metadata": { "labels": { "a": "b" } } })),
            Step::merge("an old revision", web.clone(), json!({ "metadata": { "resourceVersion": "1" }, "spec": { "template": { "metadata": { "annotations": { "x": "y" } } } } })),
            Step::merge("its status through the main door", web.clone(), json!({ "status": { "observedGeneration": 7 } })),
            Step::merge("another selector", web.clone(), json!({ "spec": { "selector": { "matchLabels": { "app": "other" } } } })).showing(Show::Reason),
            Step::patch("strategic template", web.clone(), Content::Strategic, json!({ "spec": { "template": {
                "metadata": { "annotations": { "s": "t" } },
                "spec": { "containers": [{ "name": "main", "env": [{ "name": "B", "value": "2" }] }] } } } })),
            Step::delete("delete in the foreground", web.clone(), json!({ "propagationPolicy": "Foreground" })),
            Step::merge("let it go", web.clone(), json!({ "metadata": { "finalizers": null } })),
            Step::post("selector and labels differ", all(plural), set(workload(kind, "x"), "/spec/template/metadata/labels/app", "other".into())).showing(Show::Reason),
            Step::post("another workload", all(plural), workload(kind, "web")),
            Step::delete("delete and orphan", web.clone(), json!({ "propagationPolicy": "Orphan" })),
            Step::merge("let it go, too", web.clone(), json!({ "metadata": { "finalizers": null } })),
            Step::get("gone", web),
        ]);
    }
    let metadata_only = |step: Step| match step.show {
        Show::All => step.showing(Show::Metadata),
        Show::Metadata | Show::Reason => step,
    };
    let mut steps: Vec<Step> = steps.into_iter().map(metadata_only).collect();
    steps.extend(leases());
    steps.extend(events());
    steps.extend(namespaces());
    steps
}

fn leases() -> Vec<Step> {
    let all = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
    let one = format!("{all}/leader?fieldManager=script");
    let lease = |spec: Value| json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "leader" }, "spec": spec });
    let with_revision = |revision: &str, spec: Value| {
        let mut lease = lease(spec);
        crate::object::set_metadata(&mut lease, "resourceVersion", revision);
        lease
    };
    let held = |by: &str| json!({ "holderIdentity": by, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z" });
    vec![
        Step::put("a lease made by a PUT", one.clone(), lease(held("a"))),
        Step::post("a lease made again", format!("{all}?fieldManager=script"), lease(held("b"))),
        Step::put("a lease without a revision", one.clone(), lease(held("b"))),
        Step::put("a lease with an old revision", one.clone(), with_revision("1", held("b"))),
        Step::put("a lease with the right revision", one.clone(), with_revision("{rv:leader}", held("b"))),
        Step::put(
            "a lease of no time",
            one.clone(),
            with_revision("{rv:leader}", json!({ "holderIdentity": "b", "leaseDurationSeconds": 0 })),
        ),
        Step::put(
            "a lease handed over a negative number of times",
            one.clone(),
            with_revision("{rv:leader}", json!({ "leaseTransitions": -1 })),
        ),
        Step::delete("the lease goes", one, Value::Null),
    ]
}

fn events() -> Vec<Step> {
    let all = "/apis/events.k8s.io/v1/namespaces/{ns}/events?fieldManager=script";
    let event = |rest: Value| {
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "e" },
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "ferrvault.com/operator",
            "reportingInstance": "pod", "action": "Sync", "reason": "Synced", "type": "Normal", "note": "n",
            "regarding": { "apiVersion": "v1", "kind": "Secret", "name": "db", "namespace": "{ns}" },
        });
        json_patch::merge(&mut event, &rest);
        event
    };
    let wrong = |what, rest| Step::post(what, all, event(rest)).showing(Show::Reason);
    vec![
        Step::post("an event", all, event(json!({}))).showing(Show::Metadata),
        wrong("an event without a time", json!({ "eventTime": null })),
        wrong("an event without a reason", json!({ "reason": null })),
        wrong("an event without an action", json!({ "action": null })),
        wrong("an event of no type", json!({ "type": "Odd" })),
        wrong("an event without a controller", json!({ "reportingController": null })),
        wrong("an event that says too much", json!({ "note": "n".repeat(1025) })),
        wrong("an event with a long reason", json!({ "reason": "n".repeat(129) })),
        wrong(
            "an event about elsewhere",
            json!({ "metadata": { "name": "f" }, "regarding": { "namespace": "elsewhere" } }),
        ),
        Step::merge(
            "a series",
            "/apis/events.k8s.io/v1/namespaces/{ns}/events/e?fieldManager=script",
            json!({ "series": { "count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z" } }),
        )
        .showing(Show::Metadata),
    ]
}

fn namespaces() -> Vec<Step> {
    let about = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "late" } });
    vec![
        Step::post("another namespace", "/api/v1/namespaces?fieldManager=script", about("{ns}-going"))
            .showing(Show::Metadata),
        Step::post("once more", "/api/v1/namespaces?fieldManager=script", about("{ns}-going")),
        Step::post("a namespace with a dot", "/api/v1/namespaces", about("a.b")).showing(Show::Reason),
        Step::delete("it goes", "/api/v1/namespaces/{ns}-going", Value::Null).showing(Show::Metadata),
        Step::post("a Secret in it", "/api/v1/namespaces/{ns}-going/secrets", secret),
        Step::post(
            "may I",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": { "resourceAttributes": { "verb": "get", "resource": "secrets", "namespace": "{ns}" } },
            }),
        )
        .showing(Show::Reason),
    ]
}
