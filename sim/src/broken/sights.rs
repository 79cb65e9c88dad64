//! Lies about what an operator sees: things hidden, and things that are not as they look.

use std::sync::Arc;

use ferrvault_api::marks;
use serde_json::{Value, json};

use super::Variant;
use super::between::Lie;
use crate::cast;

pub(super) const ALL: &[Variant] = &[
    Variant::api(
        "no-records",
        "rollouts[] is not looked at, so a missing mark is restarted again",
        &["mark-stripped-in-debt", "mark-stripped"],
        || seen(|resource, object, _| hides(resource, object, "rollouts")),
    ),
    Variant::api(
        "no-marks",
        "marks are not looked at, so a restart without a record is done again",
        &["rotation", "two-leaders"],
        || {
            seen(|_, object, _| {
                if let Some(annotations) = annotations_of(object) {
                    annotations.retain(|name, _| !name.starts_with(marks::CONTENT_HASH));
                }
                true
            })
        },
    ),
    Variant::api(
        "every-look-is-a-baseline",
        "lastRolloutHash is not looked at, so nothing is ever owed",
        &["missing-workload", "upgrade-owed"],
        || seen(|resource, object, _| hides(resource, object, "lastRolloutHash")),
    ),
    Variant::api(
        "go-hash-unknown",
        "the Go operator's hash is not recognized",
        &["upgrade-settled", "upgrade-unrecorded"],
        || {
            seen(|_, object, _| {
                let text = object.to_string();
                let mut words: Vec<String> = text.split('"').map(str::to_owned).collect();
                for word in &mut words {
                    if word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
                        // Another hash of the same kind.
                        *word = word.chars().rev().collect();
                    }
                }
                if let Ok(changed) = serde_json::from_str(&words.join("\"")) {
                    *object = changed;
                }
                true
            })
        },
    ),
    Variant::api(
        "takes-what-is-there",
        "a Secret of somebody else is taken over",
        &["foreign-target", "foreign-owner"],
        || {
            seen(|resource, object, of_watch| {
                if resource == "secrets" && !of_watch && object.get("data").is_some() {
                    let ours = json!({ "metadata": {
                    "ownerReferences": null, "annotations": { marks::MANAGED_BY: marks::MANAGER },
                } });
                    json_patch::merge(object, &ours);
                }
                true
            })
        },
    ),
    Variant::api("deaf-to-resources", "edits of a resource are not noticed", &["no-schedule", "creation"], || {
        seen(|resource, _, of_watch| !(of_watch && resource == "ferrvaultsecrets"))
    }),
    Variant::api(
        "deaf-to-secrets",
        "deletions and edits of Secrets are not noticed",
        &["secret-edited-ahead", "secret-deleted-unscheduled"],
        || seen(|resource, _, of_watch| !(of_watch && resource == "secrets")),
    ),
    Variant::api("pause-is-absence", "a Deployment on pause counts as missing", &["paused"], || {
        seen(|resource, object, _| {
            // Its mark cannot be written, because its place in the history is not told.
            if resource == "deployments" && object.pointer("/spec/paused") == Some(&Value::Bool(true)) {
                json_patch::merge(object, &json!({ "metadata": { "resourceVersion": "1" } }));
            }
            true
        })
    }),
    Variant::api(
        "forgets-the-version",
        "a target's version is not looked at, only its bytes",
        &["secret-edited-ahead"],
        || {
            seen(|resource, object, of_watch| {
                if resource == "secrets" && !of_watch {
                    json_patch::merge(object, &json!({ "metadata": { "annotations": { marks::CONTENT_HASH: null } } }));
                }
                true
            })
        },
    ),
];

struct Seen(fn(&str, &mut Value, bool) -> bool);

impl Lie for Seen {
    fn seen(&self, resource: &str, object: &mut Value, of_watch: bool) -> bool {
        (self.0)(resource, object, of_watch)
    }
}

fn seen(change: fn(&str, &mut Value, bool) -> bool) -> Arc<dyn Lie> {
    Arc::new(Seen(change))
}

fn hides(resource: &str, object: &mut Value, field: &str) -> bool {
    if resource == "ferrvaultsecrets"
        && cast::text(object, "/kind") != "Status"
        && let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
    {
        status.remove(field);
    }
    true
}

fn annotations_of(workload: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    workload.pointer_mut("/spec/template/metadata/annotations")?.as_object_mut()
}
