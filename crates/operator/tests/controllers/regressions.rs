//! What once went wrong in operators of this kind, each by its name. Whoever changes how restarts are owed, paid or
//! recorded meets them here again; what else holds about restarts is in `rollout`.

use std::collections::BTreeSet;
use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_testkit::{Fault, build};
use kube::CustomResourceExt as _;
use serde_json::Value;

use crate::invariants::OPERATOR;
use crate::legacy;
use crate::room::{NS, Rollouts, Room};

const GET_API: &str = "GET deployments default/api";
const PATCH_API: &str = "PATCH deployments default/api";
const PATCH_SECRET: &str = "PATCH secrets default/db";
const REPORT: &str = "PATCH ferrvaultsecrets/status default/db";
const UNRECORDED: &str = "ferrvault_secret_sync_errors_total{reason=\"StatusWriteFailed\"}";
/// Longer than any retry waits.
const RETRIED: Duration = Duration::from_mins(6);

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m").restarts("Deployment", "api")
}

/// A synced resource and the Deployment `api`.
async fn room_with(resource: build::Built) -> (Room, Rollouts) {
    let room = Room::started().await;
    room.api.apply(&build::deployment(NS, "api"));
    room.api.apply(&resource);
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    let rollouts = Rollouts::watch(&room.api);
    (room, rollouts)
}

/// What the Go operator left, with nothing on record, and the Deployment `api`. Nobody works on it yet.
fn unrecorded() -> (Room, Rollouts) {
    let room = Room::new();
    room.api.apply(&build::deployment(NS, "api"));
    let resource = legacy::stored(&room, db());
    legacy::target(&room, &resource);
    let rollouts = Rollouts::watch(&room.api);
    (room, rollouts)
}

async fn rotate(room: &Room, to: u32) {
    room.rotate(to);
    room.nudge("db").await;
}

#[tokio::test(start_paused = true)]
async fn a_workload_read_that_never_answers_is_cut_at_its_deadline_and_tried_again_by_the_next_pass() {
    let (room, rollouts) = room_with(db()).await;
    room.times_over(1, GET_API, Fault::LostRequest);
    let before = room.reports("db").len();
    rotate(&room, 2).await;
    room.run_for(Duration::from_secs(10)).await;
    assert_eq!(room.reports("db").len(), before + 1, "the pass ended all the same\n{}", room.api.story());
    assert_eq!(room.rollout("db"), "False RolloutFailed");
    assert_eq!(rollouts.of("api"), 0);
    room.run_for(Duration::from_secs(10)).await;
    assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (1, "True Restarted"), "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn a_refused_patch_then_allowed_restarts_on_the_second_pass_and_the_condition_turns_true() {
    let (room, rollouts) = room_with(db()).await;
    room.times_over(1, PATCH_API, Fault::Refuse(403));
    rotate(&room, 2).await;
    assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (0, "False RolloutFailed"));
    assert_eq!(room.ready("db"), "True Synced");
    let passes = room.reports("db").len();
    room.run_for(Duration::from_secs(5)).await;
    assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (1, "True Restarted"), "{}", room.api.story());
    assert_eq!(room.reports("db").len(), passes + 1);
}

#[tokio::test(start_paused = true)]
async fn with_one_of_two_workloads_missing_the_other_restarts_once_over_all_failing_passes() {
    let (room, rollouts) = room_with(db().restarts("Deployment", "worker")).await;
    rotate(&room, 2).await;
    for _ in 0..5 {
        room.nudge("db").await;
        room.run_for(Duration::from_mins(1)).await;
        assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (1, "False RolloutPending"));
    }
    room.api.apply(&build::deployment(NS, "worker"));
    room.run_for(RETRIED).await;
    assert_eq!((rollouts.of("api"), rollouts.of("worker")), (1, 1), "{}", room.api.story());
    assert_eq!(room.rollout("db"), "True Restarted");
}

#[tokio::test(start_paused = true)]
async fn one_answer_that_the_resource_is_not_there_does_not_end_its_passes() {
    let (room, rollouts) = room_with(db()).await;
    // The target's write is overtaken, so that the next pass reads its resource past the store.
    let mut ahead = vec![("GET ferrvaultsecrets default/db", 404), (PATCH_SECRET, 409)];
    room.api.on_call(move |call| match ahead.last() {
        Some(&(next, code)) if call.who == OPERATOR && call.summary() == next => {
            ahead.pop();
            Fault::Refuse(code)
        }
        _ => Fault::None,
    });
    rotate(&room, 2).await;
    assert_eq!(rollouts.of("api"), 0);
    room.run_for(Duration::from_secs(10)).await;
    assert_eq!(room.metric(UNRECORDED), 1.0, "a pass that could not read its resource is counted");
    room.assert_current("db", "db");
    assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (1, "True Restarted"), "{}", room.api.story());
}

/// Nothing can be said on it any more, and it would be tried again in silence.
#[tokio::test(start_paused = true)]
async fn a_resource_that_vanished_without_a_word_of_its_watch_is_counted_each_time() {
    let (room, _) = room_with(db()).await;
    room.api.on_call(|call| match call.summary().as_str() {
        "GET ferrvaultsecrets default/db" | REPORT if call.who == OPERATOR => Fault::Refuse(404),
        _ => Fault::None,
    });
    rotate(&room, 2).await;
    room.run_for(Duration::from_secs(3600)).await;
    let tries = room.times("GET ferrvaultsecrets default/db").len();
    assert!(tries > 10, "tried {tries}x\n{}", room.api.story());
    assert_eq!(room.metric(UNRECORDED), tries as f64, "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_refused_after_its_debt_was_recorded_is_told_of_by_the_same_pass() {
    let (mut room, rollouts) = unrecorded();
    room.rotate(2);
    room.times_over(1, PATCH_SECRET, Fault::Refuse(403));
    room.start().await;
    let about = |write: &String| [REPORT, PATCH_SECRET].contains(&write.as_str());
    let writes: Vec<String> = room.writes_since(0).into_iter().filter(about).collect();
    assert_eq!(writes[..3], [REPORT, PATCH_SECRET, REPORT], "{}", room.api.story());
    assert!(!room.api.story().contains("409"), "what it says goes by the record\n{}", room.api.story());
    room.run_for(Duration::from_secs(10)).await;
    assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (1, "True Restarted"), "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn unchanged_content_restarts_once_over_three_passes() {
    let (mut room, rollouts) = room_with(db()).await;
    rotate(&room, 2).await;
    assert_eq!(rollouts.of("api"), 1);
    for _ in 0..3 {
        room.nudge("db").await;
    }
    // And with nothing remembered.
    room.start().await;
    assert_eq!(rollouts.of("api"), 1, "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn with_every_status_write_refused_the_secret_is_not_rewritten_and_with_writes_allowed_the_workload_restarts() {
    // Nothing on record yet: what the Secret holds now would be forgotten with its next content.
    let (mut room, rollouts) = unrecorded();
    let data = room.vault.holds("db");
    room.rotate(2);
    room.api.deny(OPERATOR, "patch", "ferrvaultsecrets/status");
    room.start().await;
    room.run_for(RETRIED).await;
    assert_eq!(room.data("db"), data);
    assert!(!room.writes_since(0).contains(&PATCH_SECRET.to_owned()), "{}", room.api.story());

    room.api.allow_again(OPERATOR, "patch", "ferrvaultsecrets/status");
    room.run_for(RETRIED).await;
    room.assert_current("db", "db");
    assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (1, "True Restarted"), "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn a_failed_rollout_still_stamps_the_sync_gauge() {
    let gauge = format!("ferrvault_secret_last_sync_timestamp_seconds{{namespace=\"{NS}\",name=\"db\"}}");
    let (room, rollouts) = room_with(db()).await;
    let (before, synced) = (room.metric(&gauge), room.status("db").last_synced_at);
    room.api.deny(OPERATOR, "patch", "deployments");
    room.run_for(Duration::from_mins(1)).await;
    rotate(&room, 2).await;
    assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (0, "False RolloutFailed"));
    assert!(room.metric(&gauge) >= before + 60.0, "{} after {before}", room.metric(&gauge));
    assert!(room.status("db").last_synced_at > synced, "nor does the status hold it back");
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_the_first_of_two_resources_does_not_restart_again_after_the_mark_of_the_second() {
    let (room, rollouts) = room_with(db().restarts("Deployment", "worker")).await;
    room.api.apply(&build::fvs(NS, "other").through("conn").vault("db").restarts("Deployment", "api"));
    room.rest().await;
    rotate(&room, 2).await;
    assert_eq!(
        (rollouts.of("api"), room.rollout("db").as_str()),
        (1, "False RolloutPending"),
        "the first owes another"
    );
    room.nudge("other").await;
    assert_eq!((rollouts.of("api"), room.rollout("other").as_str()), (2, "True Restarted"));
    room.run_for(RETRIED).await;
    room.nudge("db").await;
    assert_eq!(rollouts.of("api"), 2, "{}", room.api.story());
    room.api.apply(&build::deployment(NS, "worker"));
    room.run_for(RETRIED).await;
    assert_eq!((rollouts.of("api"), rollouts.of("worker")), (2, 1), "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn a_status_write_that_outlives_its_deadline_has_failed_and_records_nothing() {
    let (room, rollouts) = room_with(db()).await;
    let recorded = room.status("db").last_rollout_hash;
    room.on(REPORT, Fault::LostRequest);
    rotate(&room, 2).await;
    room.run_for(RETRIED).await;
    assert_eq!(rollouts.of("api"), 1, "the mark tells what the status cannot");
    assert_eq!(room.status("db").last_rollout_hash, recorded, "nothing was stored");
    assert!(room.reports("db").len() > 2, "and it was tried again\n{}", room.api.story());
    room.api.clear_faults();
    room.run_for(RETRIED).await;
    assert_eq!(room.status("db").last_rollout_hash, Some(room.version("db")));
    assert_eq!((rollouts.of("api"), room.rollout("db").as_str()), (1, "True Restarted"));
}

#[tokio::test(start_paused = true)]
async fn the_schema_keeps_the_last_rollout_hash_and_whatever_else_a_status_says() {
    let (mut room, _) = room_with(db()).await;
    rotate(&room, 2).await;
    let stored = room.api.get_json("ferrvault.com", "ferrvaultsecrets", NS, "db").unwrap();
    assert_eq!(stored["status"]["lastRolloutHash"], Value::from(room.version("db")));
    // An undeclared field is dropped without a word, so the write of one succeeds.
    let definition = serde_json::to_value(FerrVaultSecret::crd()).unwrap();
    let status = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    let declared: BTreeSet<&String> = status.as_object().unwrap().keys().collect();
    let journal = room.api.journal();
    let reports = journal.iter().filter(|record| record.call.summary() == REPORT);
    let written: BTreeSet<&String> =
        reports.filter_map(|record| record.call.body["status"].as_object()).flat_map(|status| status.keys()).collect();
    assert!(written.len() > 5, "{written:?}");
    assert!(written.is_subset(&declared), "{:?} would be dropped", written.difference(&declared));
    let mut without = definition.clone();
    let status = &mut without["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    status.as_object_mut().unwrap().remove("lastRolloutHash");
    room.kill();
    room.api.install(&without);
    room.api
        .edit_status::<FerrVaultSecret>(NS, "db", |object| object["status"]["missingKeys"] = Value::from(vec!["A"]));
    let stored = room.api.get_json("ferrvault.com", "ferrvaultsecrets", NS, "db").unwrap();
    assert_eq!(stored["status"].get("lastRolloutHash"), None, "or this room would not notice");
}
