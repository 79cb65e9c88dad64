//! Lies about single requests: what is left out of them, what is put into them, what is made of a refusal.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Variant;
use super::between::{After, Lie, Sent};

pub(super) const ALL: &[Variant] = &[
    Variant::api(
        "secret-without-version",
        "the target is written without the resourceVersion of its read",
        &["two-leaders-a-b-a", "two-leaders-a-b-c"],
        || {
            changed(|sent| {
                if sent.writes("secrets") {
                    sent.without_version();
                }
            })
        },
    ),
    Variant::api(
        "workload-without-version",
        "a workload is stamped without the resourceVersion of its read",
        &["two-leaders", "two-leaders-a-b-a"],
        || {
            changed(|sent| {
                if sent.restarts() {
                    sent.without_version();
                }
            })
        },
    ),
    Variant::api(
        "status-without-version",
        "a status is written without the resourceVersion of its read",
        &["list-edited", "two-leaders-upgrade"],
        || {
            changed(|sent| {
                if sent.writes("ferrvaultsecrets/status") && !sent.is_debt() {
                    sent.without_version();
                }
            })
        },
    ),
    Variant::api(
        "debt-without-version",
        "a debt is recorded without the resourceVersion of its read",
        &["two-leaders-upgrade"],
        || {
            changed(|sent| {
                if sent.is_debt() {
                    sent.without_version();
                }
            })
        },
    ),
    Variant::api("half-a-write", "of a changed content only one key is written", &["rotation"], || {
        changed(|sent| {
            if sent.writes("secrets")
                && let Some(data) = sent.body.pointer_mut("/data").and_then(Value::as_object_mut)
            {
                let first = data.keys().next().cloned();
                data.retain(|key, _| Some(key) == first.as_ref());
            }
        })
    }),
    Variant::api("stale-keys-stay", "keys that left the vault stay on the target", &["key-dropped"], || {
        changed(|sent| {
            if sent.writes("secrets")
                && let Some(data) = sent.body.pointer_mut("/data").and_then(Value::as_object_mut)
            {
                data.retain(|_, value| !value.is_null());
            }
        })
    }),
    Variant::api(
        "pays-too-early",
        "lastRolloutHash moves although a workload was not restarted",
        &["missing-workload", "a-b-a"],
        || changed(pay_too_early),
    ),
    Variant::api(
        "times-on-failure",
        "lastSyncedAt moves in a pass that was refused",
        &["key-missing", "vault-emptied"],
        || {
            changed(|sent| {
                let attempted = sent.body.pointer("/status/lastAttemptedAt").cloned();
                if sent.writes("ferrvaultsecrets/status")
                    && let (Some(status), Some(at)) = (sent.body.get_mut("status"), attempted)
                {
                    json_patch::merge(status, &json!({ "lastSyncedAt": at }));
                }
            })
        },
    ),
    Variant::api("says-synced", "Ready is True and Synced whatever happened", &["creation", "foreign-target"], || {
        changed(|sent| say(sent, "Ready", "Synced"))
    }),
    Variant::api("says-restarted", "RolloutRestarted is True whatever is owed", &["missing-workload", "a-b-a"], || {
        changed(|sent| say(sent, "RolloutRestarted", "Restarted"))
    }),
    Variant::api("value-in-status", "a message quotes the bytes that it is about", &["rotation"], || {
        changed(|sent| {
            let conditions = sent.body.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
            for condition in conditions.into_iter().flatten() {
                json_patch::merge(condition, &json!({ "message": "wrote canary-PASSWORD-B" }));
            }
        })
    }),
    Variant::api("token-in-event", "an event quotes the token", &["creation"], || {
        changed(|sent| {
            if sent.writes("events") {
                json_patch::merge(&mut sent.body, &json!({ "note": "asked with fft_canary-token-1" }));
            }
        })
    }),
    Variant::api("logs-a-value", "a line of the log quotes what is written", &["rotation"], || {
        changed(|sent| {
            if sent.writes("secrets") {
                tracing::info!(body = %sent.body, "target written");
            }
        })
    }),
    Variant::api("wrong-namespace", "a namesake in another namespace is restarted", &["rotation"], || {
        changed(|sent| {
            if sent.restarts() {
                sent.without_version();
                sent.moved_to("elsewhere");
            }
        })
    }),
    Variant::api("scales-too", "a restart changes more than its two marks", &["rotation"], || {
        changed(|sent| {
            if sent.restarts() {
                json_patch::merge(&mut sent.body, &json!({ "spec": { "replicas": 0 } }));
            }
        })
    }),
    Variant::api("no-owner", "the target does not say whose it is", &["creation"], || {
        changed(|sent| {
            if sent.writes("secrets") && sent.namespace != crate::check::SYSTEM {
                json_patch::merge(&mut sent.body, &json!({ "metadata": { "ownerReferences": null } }));
            }
        })
    }),
    Variant::api("swallows-stamp-errors", "a refused restart counts as done", &["rotation"], || {
        answered(
            |sent, status| {
                if sent.restarts() && status != Some(200) { After::Instead(metadata_of(sent)) } else { After::Keep }
            },
        )
    }),
    Variant::api("swallows-secret-errors", "a refused write of the target counts as done", &["rotation"], || {
        answered(|sent, status| {
            let is_target = sent.writes("secrets") && sent.namespace != crate::check::SYSTEM;
            if is_target && !matches!(status, Some(200 | 201)) {
                After::Instead(metadata_of(sent))
            } else {
                After::Keep
            }
        })
    }),
    Variant::api(
        "skips-debt",
        "the debt is not recorded before the target is written",
        &["upgrade-and-change"],
        || Arc::new(super::memory::NoDebt::default()),
    ),
    Variant::api(
        "insists-on-target",
        "a target that changed meanwhile is written all the same",
        &["two-leaders-a-b-a", "two-leaders-a-b-c"],
        || {
            answered(|sent, status| {
                if sent.writes("secrets") && status == Some(409) && sent.method == http::Method::PATCH {
                    return insisting(sent);
                }
                After::Keep
            })
        },
    ),
    Variant::api(
        "insists-on-stamp",
        "a workload that changed meanwhile is stamped all the same",
        &["two-leaders"],
        || answered(|sent, status| if sent.restarts() && status == Some(409) { insisting(sent) } else { After::Keep }),
    ),
    Variant::api("stamps-again", "a restart without an answer is sent again, blindly", &["rotation"], || {
        answered(|sent, status| {
            if !sent.restarts() || status == Some(200) {
                return After::Keep;
            }
            let mut again = sent.clone();
            again.without_version();
            let later = json!({ "ferrvault.com/restarted-at": "2026-01-01T00:59:59Z" });
            json_patch::merge(
                &mut again.body,
                &json!({ "spec": { "template": { "metadata": { "annotations": later } } } }),
            );
            After::Again(Box::new(again))
        })
    }),
    Variant::api("writes-target-twice", "the target is written once more after it is right", &["rotation"], || {
        answered(|sent, status| {
            if !(sent.writes("secrets") && sent.method == http::Method::PATCH && status == Some(200)) {
                return After::Keep;
            }
            let mut again = sent.clone();
            again.body = json!({ "metadata": { "annotations": { "ferrvault.com/written": "again" } } });
            After::Again(Box::new(again))
        })
    }),
    Variant::api("restless", "every look is written down in the status", &["unchanged"], || {
        changed(|sent| {
            if sent.is_heartbeat()
                && let Some(at) = sent.body.pointer("/status/lastAttemptedAt").cloned()
            {
                json_patch::merge(&mut sent.body, &json!({ "status": { "lastChangedAt": at } }));
            }
        })
    }),
    Variant::api(
        "forgets-a-workload",
        "only the first workload of the list is restarted",
        &["rotation-of-three-kinds"],
        || Arc::new(super::memory::OnlyOne::default()),
    ),
];

struct Changed(fn(&mut Sent));

impl Lie for Changed {
    fn sent(&self, sent: &mut Sent) -> Option<Value> {
        (self.0)(sent);
        None
    }
}

fn changed(change: fn(&mut Sent)) -> Arc<dyn Lie> {
    Arc::new(Changed(change))
}

struct Answered(fn(&Sent, Option<u16>) -> After);

impl Lie for Answered {
    fn after(&self, sent: &Sent, status: Option<u16>) -> After {
        (self.0)(sent, status)
    }
}

fn answered(after: fn(&Sent, Option<u16>) -> After) -> Arc<dyn Lie> {
    Arc::new(Answered(after))
}

fn insisting(sent: &Sent) -> After {
    let mut again = sent.clone();
    again.without_version();
    After::Again(Box::new(again))
}

/// What the server would have answered, as far as anybody looks at it.
pub(super) fn metadata_of(sent: &Sent) -> Value {
    let version = sent.body.pointer("/metadata/resourceVersion").cloned().unwrap_or_else(|| "1".into());
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": { "namespace": sent.namespace, "name": sent.name, "resourceVersion": version },
    })
}

fn say(sent: &mut Sent, type_: &str, reason: &str) {
    if !sent.writes("ferrvaultsecrets/status") {
        return;
    }
    let conditions = sent.body.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if crate::cast::text(condition, "/type") == type_ {
            json_patch::merge(condition, &json!({ "status": "True", "reason": reason }));
        }
    }
}

fn pay_too_early(sent: &mut Sent) {
    if !sent.writes("ferrvaultsecrets/status") {
        return;
    }
    let entries = sent.body.pointer("/status/rollouts").and_then(Value::as_array);
    let restarted = entries.into_iter().flatten().find(|entry| crate::cast::text(entry, "/state") == "Restarted");
    let hash = restarted.and_then(|entry| entry.get("hash")).cloned();
    if let Some(hash) = hash {
        json_patch::merge(&mut sent.body, &json!({ "status": { "lastRolloutHash": hash } }));
    }
}
