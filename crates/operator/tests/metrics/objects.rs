//! The series of objects: there with the object, as it is, and gone with it.

use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_testkit::{EPOCH_SECONDS, build};
use serde_json::json;

use crate::invariants::OPERATOR;
use crate::room::{NS, Room};
use crate::script::{self, Mood};

const MINUTE: Duration = Duration::from_mins(1);

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m")
}

/// A series of the resource `db`.
fn of_db(metric: &str) -> String {
    format!("{metric}{{namespace=\"{NS}\",name=\"db\"}}")
}

fn owed(room: &Room, state: &str) -> f64 {
    let labels = format!("namespace=\"{NS}\",name=\"db\",state=\"{state}\"");
    room.metric(&format!("ferrvault_secret_rollouts_owed{{{labels}}}"))
}

/// Virtual time since the beginning, of a moment on the page.
fn since_epoch(room: &Room, metric: &str) -> f64 {
    let epoch: f64 = EPOCH_SECONDS.to_string().parse().unwrap();
    room.metric(&of_db(metric)) - epoch
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_told_from_its_creation_to_its_deletion() {
    let room = Room::with_db(db()).await;
    for (metric, expected) in [
        ("ferrvault_secret_refresh_interval_seconds", 600.0),
        ("ferrvault_secret_fresh", 1.0),
        ("ferrvault_secret_unsynced_since_timestamp_seconds", 0.0),
    ] {
        assert_eq!(room.metric(&of_db(metric)), expected, "{metric}");
    }
    for metric in [
        "ferrvault_secret_last_sync_timestamp_seconds",
        "ferrvault_secret_last_attempt_timestamp_seconds",
        "ferrvault_secret_last_successful_reconcile_timestamp_seconds",
    ] {
        assert!((0.0..60.0).contains(&since_epoch(&room, metric)), "{metric}: {}", since_epoch(&room, metric));
    }
    room.api.delete::<FerrVaultSecret>(NS, "db");
    room.rest().await;
    let page = room.metrics.text().unwrap();
    assert!(!page.contains("name=\"db\""), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_failing_resource_is_attempted_and_neither_synced_nor_a_success() {
    let room = Room::with_db(db()).await;
    room.vault.always("db", Some(Mood::Fails(script::unauthorized())));
    room.run_for(30 * MINUTE).await;
    assert_eq!(room.ready("db"), "False AuthFailed", "{}", room.api.story());
    let at = |metric| since_epoch(&room, metric);
    assert!(at("ferrvault_secret_last_attempt_timestamp_seconds") > 20.0 * 60.0);
    assert!(at("ferrvault_secret_last_sync_timestamp_seconds") < 60.0);
    assert!(at("ferrvault_secret_last_successful_reconcile_timestamp_seconds") < 60.0);
    assert_eq!(room.metric(&of_db("ferrvault_secret_fresh")), 1.0, "passes end, and that is all that fresh says");
}

#[tokio::test(start_paused = true)]
async fn one_that_never_synced_has_an_age_all_the_same() {
    let room = Room::started().await;
    room.vault.always("db", Some(Mood::Fails(script::unauthorized())));
    room.api.apply(&db());
    room.rest().await;
    let page = room.metrics.text().unwrap();
    assert!(!page.contains("ferrvault_secret_last_sync_timestamp_seconds{"), "{page}");
    let created = since_epoch(&room, "ferrvault_secret_unsynced_since_timestamp_seconds");
    assert!((-1.0..60.0).contains(&created), "{created}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_expected_of_a_suspended_one_nor_of_one_without_a_schedule() {
    for change in [json!({"suspend": true}), json!({"refreshInterval": "0s"})] {
        let room = Room::with_db(db()).await;
        room.api.edit::<FerrVaultSecret>(NS, "db", |object| {
            object["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        });
        room.run_for(120 * MINUTE).await;
        assert_eq!(room.metric(&of_db("ferrvault_secret_refresh_interval_seconds")), 0.0, "{change}");
        assert_eq!(room.metric(&of_db("ferrvault_secret_fresh")), 1.0, "{change}");
        assert!(since_epoch(&room, "ferrvault_secret_last_sync_timestamp_seconds") >= 0.0, "{change}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_is_owed_is_told_as_refused_or_as_waiting_and_only_the_former_is_an_error() {
    const ERRORS: &str = "ferrvault_secret_sync_errors_total{reason=\"RolloutFailed\"}";
    let room = Room::with_db(db().restarts("Deployment", "api")).await;
    room.rotate(2);
    room.nudge("db").await;
    room.run_for(MINUTE).await;
    assert_eq!((owed(&room, "waiting"), owed(&room, "failed"), room.metric(ERRORS)), (1.0, 0.0, 0.0));

    room.api.deny(OPERATOR, "patch", "deployments");
    room.api.apply(&build::deployment(NS, "api"));
    room.run_for(10 * MINUTE).await;
    assert_eq!((owed(&room, "waiting"), owed(&room, "failed")), (0.0, 1.0), "{}", room.api.story());
    assert!(room.metric(ERRORS) >= 2.0);

    room.api.allow_again(OPERATOR, "patch", "deployments");
    room.run_for(10 * MINUTE).await;
    assert!(!room.metrics.text().unwrap().contains("ferrvault_secret_rollouts_owed{"), "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_was_asked_for_and_does_not_end_is_not_fresh_although_no_condition_can_say_so() {
    let mut room = Room::new();
    // Above all that is looked at here, so that nothing but the ages in the queue can tell.
    room.deadline = Duration::from_hours(1);
    room.start().await;
    room.vault.always("db", Some(Mood::Stalls));
    room.api.apply(&db());
    room.run_for(4 * MINUTE).await;
    assert_eq!(room.metric(&of_db("ferrvault_secret_fresh")), 1.0);
    room.run_for(2 * MINUTE).await;
    assert_eq!(room.metric(&of_db("ferrvault_secret_fresh")), 0.0, "{}", room.api.story());
    let longest = room.metric("workqueue_longest_running_processor_seconds{controller=\"ferrvaultsecret\"}");
    assert!((350.0..=361.0).contains(&longest), "{longest}");
}
