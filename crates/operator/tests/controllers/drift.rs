//! What people do to the target: edit, delete, rename, retype it, or point a resource at the connection's own token. Put
//! back under the version it had, and nothing restarts for it (rules 1 and 7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ferrvault_api::{FerrVaultSecret, marks};
use ferrvault_testkit::{Fault, build};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::invariants::OPERATOR;
use crate::room::{NS, Rollouts, Room, VALUE};

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").restarts("Deployment", "api")
}

async fn room() -> (Room, Rollouts) {
    let room = Room::started().await;
    room.api.apply(&build::deployment(NS, "api"));
    room.api.apply(&db());
    room.rest().await;
    let rollouts = Rollouts::watch(&room.api);
    (room, rollouts)
}

/// The same after a first rotation, so that there are marks and records of restarts.
async fn rotated_room() -> (Room, Rollouts) {
    let (room, _) = room().await;
    room.rotate(2);
    room.nudge("db").await;
    let rollouts = Rollouts::watch(&room.api);
    (room, rollouts)
}

fn assert_as_before(room: &Room, rollouts: &Rollouts, version: &str, case: &str) {
    room.assert_current("db", "db");
    assert_eq!(room.version("db"), version, "{case}: the same version\n{}", room.api.story());
    assert_eq!(rollouts.of("api"), 0, "{case}: nothing restarts");
    let secret = room.secret("db").unwrap();
    let owners = secret.metadata.owner_references.unwrap_or_default();
    let uid = room.fvs("db").unwrap().metadata.uid.unwrap();
    assert_eq!(owners.iter().filter(|owner| owner.uid == uid && owner.controller == Some(true)).count(), 1, "{case}");
    assert_eq!(secret.metadata.annotations.unwrap()[marks::MANAGED_BY], marks::MANAGER, "{case}");
    assert_eq!(room.ready("db"), "True Synced", "{case}");
    assert_eq!(room.rollout("db"), "True Restarted", "{case}");
    assert_eq!(room.status("db").last_rollout_hash.as_deref(), Some(version), "{case}");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_edits_is_put_back_at_once_and_restarts_nothing() {
    type Edit = (&'static str, fn(&mut Value));
    let edits: [Edit; 8] = [
        ("a value", |secret| secret["data"]["PASSWORD"] = "Y2FuYXJ5LWVkaXRlZA==".into()),
        ("a key more", |secret| secret["data"]["EXTRA"] = "Y2FuYXJ5".into()),
        ("a key less", |secret| {
            secret["data"].as_object_mut().unwrap().remove("USER");
        }),
        ("no data", |secret| secret["data"] = json!({})),
        ("no version", |secret| {
            secret["metadata"]["annotations"].as_object_mut().unwrap().remove(marks::CONTENT_HASH);
        }),
        ("a version that is none", |secret| secret["metadata"]["annotations"][marks::CONTENT_HASH] = "edited".into()),
        ("no manager", |secret| {
            secret["metadata"]["annotations"].as_object_mut().unwrap().remove(marks::MANAGED_BY);
        }),
        ("no owner", |secret| secret["metadata"]["ownerReferences"] = json!([])),
    ];
    for (case, edit) in edits {
        for rotated in [false, true] {
            let (room, rollouts) = if rotated { rotated_room().await } else { room().await };
            let (version, changed) = (room.version("db"), room.status("db").last_changed_at);
            let before = room.here();
            room.api.edit::<Secret>(NS, "db", edit);
            room.rest().await;
            assert_as_before(&room, &rollouts, &version, case);
            assert_eq!(room.status("db").last_changed_at, changed, "{case}: the content did not change");
            let writes = room.writes_since(before);
            assert_eq!(writes, ["PATCH secrets default/db", "PATCH ferrvaultsecrets/status default/db"], "{case}");
            room.run_for(Duration::from_secs(600)).await;
            assert_as_before(&room, &rollouts, &version, case);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_its_version_and_with_other_data_it_counts_as_changed() {
    // Nothing tells any more what its pods run on: one restart too many rather than one too few.
    let (room, rollouts) = room().await;
    let version = room.version("db");
    room.api.edit::<Secret>(NS, "db", |secret| {
        secret["metadata"]["annotations"].as_object_mut().unwrap().remove(marks::CONTENT_HASH);
        secret["data"] = json!({ "USER": "Y2FuYXJ5" });
    });
    room.run_for(Duration::from_secs(60)).await;
    room.assert_current("db", "db");
    assert_ne!(room.version("db"), version);
    assert_eq!(rollouts.of("api"), 1);
    assert_eq!(room.status("db").last_rollout_hash, Some(room.version("db")));
}

#[tokio::test(start_paused = true)]
async fn another_controller_that_wants_the_target_otherwise_is_answered_with_pauses() {
    let (room, rollouts) = room().await;
    let version = room.version("db");
    let fighting = Arc::new(AtomicBool::new(true));
    let (api, on) = (room.api.clone(), Arc::clone(&fighting));
    room.api.on_write(move |write| {
        let ours = write.who == OPERATOR && write.resource == "secrets" && write.name == "db";
        if ours && on.load(Ordering::Relaxed) {
            api.edit::<Secret>(NS, "db", |secret| secret["data"]["PASSWORD"] = "Y2FuYXJ5LWVkaXRlZA==".into());
        }
    });
    room.api.edit::<Secret>(NS, "db", |secret| secret["data"]["PASSWORD"] = "Y2FuYXJ5LWVkaXRlZA==".into());
    room.run_for(Duration::from_secs(1800)).await;
    let patches = room.times("PATCH secrets default/db");
    assert!((25..60).contains(&patches.len()), "{} writes in half an hour", patches.len());
    let longest = patches.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest <= Duration::from_secs(61), "the target is wrong for {longest:?}");
    // No condition shows it: each pass leaves the target right.
    assert_eq!(room.ready("db"), "True Synced");
    let told: Vec<String> = room.events("db").into_iter().filter(|event| event.contains("TargetConflict")).collect();
    assert_eq!(told, ["Warning TargetConflict"], "once");
    assert_eq!(room.metric("ferrvault_secret_sync_errors_total{reason=\"TargetConflict\"}"), 1.0);

    fighting.store(false, Ordering::Relaxed);
    room.run_for(Duration::from_secs(61)).await;
    assert_as_before(&room, &rollouts, &version, "left alone");
    room.run_for(Duration::from_secs(601)).await;
    room.api.edit::<Secret>(NS, "db", |secret| secret["data"]["PASSWORD"] = "Y2FuYXJ5LWVkaXRlZA==".into());
    room.rest().await;
    assert_as_before(&room, &rollouts, &version, "a single edit later");
}

#[tokio::test(start_paused = true)]
async fn another_controller_that_deletes_the_target_is_answered_with_pauses() {
    let (room, rollouts) = room().await;
    let version = room.version("db");
    let fighting = Arc::new(AtomicBool::new(true));
    let (api, on) = (room.api.clone(), Arc::clone(&fighting));
    room.api.on_write(move |write| {
        let ours = write.who == OPERATOR && write.resource == "secrets" && write.name == "db";
        if ours && on.load(Ordering::Relaxed) {
            api.delete::<Secret>(NS, "db");
        }
    });
    room.api.delete::<Secret>(NS, "db");
    room.run_for(Duration::from_secs(1800)).await;
    let creations = room.times("CREATE secrets default/db").len();
    assert!((25..60).contains(&creations), "{creations} writes in half an hour");
    fighting.store(false, Ordering::Relaxed);
    room.run_for(Duration::from_secs(61)).await;
    assert_as_before(&room, &rollouts, &version, "left alone");
}

#[tokio::test(start_paused = true)]
async fn what_others_add_beside_the_data_stays() {
    let (room, rollouts) = room().await;
    let version = room.version("db");
    let other = room.api.apply(&build::deployment(NS, "other"));
    room.api.edit::<Secret>(NS, "db", |secret| {
        secret["metadata"]["labels"] = json!({ "team": "a" });
        secret["metadata"]["annotations"]["example.com/note"] = "kept".into();
        secret["metadata"]["ownerReferences"].as_array_mut().unwrap().push(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "other", "uid": other["metadata"]["uid"],
        }));
        secret["data"]["PASSWORD"] = "Y2FuYXJ5LWVkaXRlZA==".into();
    });
    room.rest().await;
    assert_as_before(&room, &rollouts, &version, "additions");
    let metadata = room.secret("db").unwrap().metadata;
    assert_eq!(metadata.labels.unwrap()["team"], "a");
    assert_eq!(metadata.annotations.unwrap()["example.com/note"], "kept");
    assert_eq!(metadata.owner_references.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn edited_by_hand_to_what_ferrvault_then_says_is_a_change_all_the_same() {
    // The bytes on the Secret tell nothing: its pods run on the content before the edit.
    let (room, rollouts) = room().await;
    let version = room.version("db");
    room.rotate(2);
    room.api.edit::<Secret>(NS, "db", |secret| secret["data"]["PASSWORD"] = encoded(&format!("{VALUE}-2")).into());
    room.rest().await;
    room.assert_current("db", "db");
    assert_ne!(room.version("db"), version);
    assert_eq!(rollouts.of("api"), 1);
}

fn encoded(text: &str) -> String {
    let built = build::secret(NS, "x").key("k", text).json();
    built["data"]["k"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_deleted_secret_comes_back_under_its_version() {
    for rotated in [false, true] {
        for restarted in [false, true] {
            let (mut room, rollouts) = if rotated { rotated_room().await } else { room().await };
            let version = room.version("db");
            let case = format!("rotated before: {rotated}, operator restarted meanwhile: {restarted}");
            if restarted {
                room.kill();
                room.api.delete::<Secret>(NS, "db");
                room.start().await;
            } else {
                room.api.delete::<Secret>(NS, "db");
                room.rest().await;
            }
            assert_as_before(&room, &rollouts, &version, &case);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_while_a_restart_is_owed_the_restart_stays_owed() {
    let (room, rollouts) = rotated_room().await;
    room.api.deny(OPERATOR, "patch", "deployments");
    room.rotate(3);
    room.nudge("db").await;
    let version = room.version("db");
    room.api.delete::<Secret>(NS, "db");
    room.rest().await;
    assert_eq!(room.version("db"), version);
    assert_eq!(room.rollout("db"), "False RolloutFailed");
    room.api.allow_again(OPERATOR, "patch", "deployments");
    room.run_for(Duration::from_secs(300)).await;
    assert_eq!(rollouts.of("api"), 1, "{}", room.api.story());
    assert_eq!(room.status("db").last_rollout_hash, Some(version));
}

#[tokio::test(start_paused = true)]
async fn deleted_while_the_content_changes_is_one_change() {
    let (room, rollouts) = rotated_room().await;
    let version = room.version("db");
    room.rotate(3);
    room.api.delete::<Secret>(NS, "db");
    room.rest().await;
    room.assert_current("db", "db");
    assert_ne!(room.version("db"), version);
    assert_eq!(rollouts.of("api"), 1, "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn a_lost_operator_key_restarts_nothing() {
    let (mut room, rollouts) = rotated_room().await;
    let version = room.version("db");
    room.stop().await;
    room.key = [8; 32];
    let before = room.here();
    room.start().await;
    assert_as_before(&room, &rollouts, &version, "another key");
    let writes = room.writes_since(before);
    assert!(!writes.iter().any(|call| call.contains("secrets default/db") && !call.contains("status")), "{writes:?}");

    room.rotate(3);
    room.nudge("db").await;
    room.assert_current("db", "db");
    assert_eq!(rollouts.of("api"), 1);
    assert_ne!(
        room.version("db").split('.').nth(1),
        version.split('.').nth(1),
        "the next version is under the new key"
    );
}

#[tokio::test(start_paused = true)]
async fn a_renamed_target_keeps_its_version_and_leaves_the_old_secret_alone() {
    let (room, rollouts) = rotated_room().await;
    let (version, old) = (room.version("db"), room.secret("db"));
    room.api.apply(&db().target("renamed"));
    room.rest().await;
    room.assert_current("renamed", "db");
    assert_eq!(room.version("renamed"), version);
    assert_eq!(room.ready("db"), "True Synced");
    assert_eq!(rollouts.of("api"), 0);
    assert_eq!(room.secret("db"), old, "whoever still mounts it keeps it");
    room.rotate(3);
    room.nudge("db").await;
    room.assert_current("renamed", "db");
    assert_eq!(rollouts.of("api"), 1);
    assert_eq!(room.secret("db"), old);
}

#[tokio::test(start_paused = true)]
async fn a_type_is_given_once_and_its_change_explained() {
    let typed = |type_: &str| db().set(&["spec", "target", "type"], type_);
    let room = Room::with_db(typed("example.com/database")).await;
    assert_eq!(room.secret("db").unwrap().type_.as_deref(), Some("example.com/database"));
    let data = room.data("db");
    room.api.apply(&typed("Opaque"));
    room.rest().await;
    assert_eq!(room.ready("db"), "False InvalidSpec");
    let message = room.condition("db", "Ready").message;
    for part in ["\"db\"", "has type example.com/database", "set spec.target.type to", "or delete the Secret"] {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
    assert_eq!(room.data("db"), data);
    room.api.delete::<Secret>(NS, "db");
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    assert_eq!(room.secret("db").unwrap().type_.as_deref(), Some("Opaque"));
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_somebody_else_is_left_alone() {
    let room = Room::started().await;
    let owner = room.api.apply(&build::deployment(NS, "owner"));
    let foreign = || build::secret(NS, "db").key("PASSWORD", "canary-foreign");
    let cases = [
        (
            "owned",
            foreign().owned_by(&owner),
            &["\"db\"", "Deployment \"owner\"", "choose another spec.target.name"][..],
        ),
        (
            "unmarked",
            foreign(),
            &["\"db\"", "is left alone", "kubectl annotate secret db ferrvault.com/managed-by="][..],
        ),
    ];
    for (case, secret, says) in cases {
        room.api.delete::<FerrVaultSecret>(NS, "db");
        room.rest().await;
        room.api.apply(&secret);
        let before = room.secret("db");
        room.api.apply(&db().every("10m"));
        room.run_for(Duration::from_secs(3600)).await;
        assert_eq!(room.ready("db"), "False TargetConflict", "{case}");
        let message = room.condition("db", "Ready").message;
        for part in says {
            assert!(message.contains(part), "{case}: {message:?} does not say {part:?}");
        }
        assert_eq!(room.secret("db"), before, "{case}");
        room.api.delete::<Secret>(NS, "db");
        room.rest().await;
        assert_eq!(room.ready("db"), "True Synced", "{case}: it is free now\n{}", room.api.story());
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_handed_over_is_adopted_without_a_restart() {
    // (its password, restarts): with the content of FerrVault it is only marked; with another one its pods are behind.
    for (password, restarts) in [("1", 0), ("0", 1)] {
        let room = Room::started().await;
        room.api.apply(&build::deployment(NS, "api"));
        let rollouts = Rollouts::watch(&room.api);
        room.api.apply(
            &build::secret(NS, "db")
                .key("USER", "canary-app")
                .key("PASSWORD", format!("{VALUE}-{password}"))
                .annotated(marks::MANAGED_BY, marks::MANAGER),
        );
        room.api.apply(&db());
        room.run_for(Duration::from_secs(5)).await;
        assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
        room.assert_current("db", "db");
        assert_eq!(rollouts.of("api"), restarts, "{}", room.api.story());
        assert!(room.secret("db").unwrap().metadata.owner_references.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn two_resources_on_one_target_do_not_fight() {
    let (room, rollouts) = room().await;
    let version = room.version("db");
    room.vault.set("other", "KEY", VALUE);
    room.api.apply(&build::fvs(NS, "second").through("conn").vault("other").target("db").every("1m"));
    room.run_for(Duration::from_secs(3600)).await;
    assert_eq!(room.ready("second"), "False TargetConflict");
    let message = room.condition("second", "Ready").message;
    assert!(message.contains("FerrVaultSecret \"db\""), "{message}");
    assert_as_before(&room, &rollouts, &version, "the first has it");
    room.api.delete::<FerrVaultSecret>(NS, "db");
    room.run_for(Duration::from_secs(5)).await;
    assert_eq!(room.ready("second"), "True Synced", "the first being gone, the second has it");
    room.assert_current("db", "other");
}

#[tokio::test(start_paused = true)]
async fn a_secret_edited_under_the_write_is_decided_on_anew() {
    let (room, rollouts) = room().await;
    let (api, mut left) = (room.api.clone(), 2);
    room.api.on_call(move |call| {
        if left > 0 && call.summary() == "PATCH secrets default/db" {
            left -= 1;
            api.edit::<Secret>(NS, "db", |secret| secret["metadata"]["labels"] = json!({ "turn": format!("{left}") }));
        }
        Fault::None
    });
    room.rotate(2);
    room.nudge("db").await;
    room.run_for(Duration::from_secs(10)).await;
    room.assert_current("db", "db");
    assert_eq!(rollouts.of("api"), 1);
    let told = room.events("db");
    assert!(!told.contains(&"Warning SecretWriteFailed".to_owned()), "a conflict is normal: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn somebody_who_always_writes_first_is_told_of() {
    let (room, rollouts) = room().await;
    let (api, mut turn) = (room.api.clone(), 0);
    room.api.on_call(move |call| {
        if call.summary() == "PATCH secrets default/db" {
            turn += 1;
            api.edit::<Secret>(NS, "db", |secret| secret["metadata"]["labels"] = json!({ "turn": format!("{turn}") }));
        }
        Fault::None
    });
    room.rotate(2);
    room.nudge("db").await;
    room.run_for(Duration::from_secs(600)).await;
    assert_eq!(room.ready("db"), "False SecretWriteFailed", "{}", room.api.story());
    let message = room.condition("db", "Ready").message;
    assert!(message.contains("changed by somebody else"), "{message}");
    assert!(room.reports("db").len() < 60, "with backoff, not in a loop");
    room.api.clear_faults();
    room.run_for(Duration::from_secs(300)).await;
    room.assert_current("db", "db");
    assert_eq!(room.ready("db"), "True Synced");
    assert_eq!(rollouts.of("api"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_edited_by_hand_is_not_ours_to_mend() {
    let (room, rollouts) = rotated_room().await;
    room.api.edit::<Deployment>(NS, "api", |object| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/app:2".into();
    });
    let before = room.here();
    room.run_for(Duration::from_secs(600)).await;
    let looks = room.times("GET deployments default/api").len();
    assert_eq!(looks, 2, "one when the resource was new and one for the restart, and no watch");
    assert!(!room.calls_since(before).iter().any(|call| call.contains("deployments")));
    assert_eq!(rollouts.of("api"), 0);
}
