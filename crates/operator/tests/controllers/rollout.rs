//! The restarts that a change of content owes: never lost, never doubled, whatever stands in the way (rules 2 to 6 and 8).

use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_api::secret::RolloutState;
use ferrvault_testkit::{Fault, Verb, build};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use serde_json::{Value, json};

use crate::invariants::OPERATOR;
use crate::legacy;
use crate::room::{NS, Rollouts, Room};

const GET_API: &str = "GET deployments default/api";
const PATCH_API: &str = "PATCH deployments default/api";
const REPORT: &str = "PATCH ferrvaultsecrets/status default/db";

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m")
}

fn both() -> build::Built {
    db().restarts("Deployment", "api").restarts("StatefulSet", "store")
}

/// A synced resource with a Deployment `api` and a `StatefulSet` `store`, of which it restarts those that it lists.
async fn room_with(resource: build::Built) -> (Room, Rollouts) {
    let room = Room::started().await;
    room.api.apply(&build::deployment(NS, "api"));
    room.api.apply(&build::stateful_set(NS, "store"));
    room.api.apply(&resource);
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    let rollouts = Rollouts::watch(&room.api);
    (room, rollouts)
}

/// The password changes and is noticed.
async fn rotate(room: &Room, to: u32) {
    room.rotate(to);
    room.nudge("db").await;
}

fn assert_settled(room: &Room, rollouts: &Rollouts, restarts: &[(&str, u64)]) {
    room.assert_current("db", "db");
    for (workload, times) in restarts {
        assert_eq!(rollouts.of(workload), *times, "{workload}\n{}", room.api.story());
    }
    let (version, status) = (room.version("db"), room.status("db"));
    assert_eq!(status.last_rollout_hash, Some(version.clone()), "{}", room.api.story());
    assert_eq!(status.content_hash, Some(version.clone()));
    assert_eq!(room.ready("db"), "True Synced");
    assert_eq!(room.rollout("db"), "True Restarted");
    assert!(status.rollouts.iter().all(|entry| entry.state == RolloutState::Restarted && entry.hash == version));
}

fn deny_workloads(room: &Room) {
    for plural in ["deployments", "statefulsets"] {
        room.api.deny(OPERATOR, "patch", plural);
    }
}

fn allow_workloads(room: &Room) {
    for plural in ["deployments", "statefulsets"] {
        room.api.allow_again(OPERATOR, "patch", plural);
    }
}

#[tokio::test(start_paused = true)]
async fn a_debt_whose_target_cannot_be_read_is_counted_and_paid_when_it_can() {
    let (room, rollouts) = room_with(db().restarts("Deployment", "api")).await;
    room.api.delete::<Deployment>(NS, "api");
    rotate(&room, 2).await;
    assert_eq!(room.rollout("db"), "False RolloutPending");
    room.on("GET secrets default/db", Fault::Refuse(500));
    room.api.apply(&build::deployment(NS, "api"));
    room.run_for(Duration::from_secs(60)).await;
    assert_eq!(room.rollout("db"), "False RolloutPending");
    let counted = room.metric("ferrvault_secret_sync_errors_total{reason=\"SecretReadFailed\"}");
    assert!(counted >= 2.0, "{counted}: whether anything is owed could not be told, and nothing says so");
    room.api.clear_faults();
    room.run_for(Duration::from_secs(30)).await;
    assert_settled(&room, &rollouts, &[("api", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_debt_is_on_record_before_the_secret_changes() {
    let mut room = Room::new();
    room.api.apply(&build::deployment(NS, "api"));
    let resource = legacy::stored(&room, db().restarts("Deployment", "api"));
    let hash = legacy::target(&room, &resource);
    let data = room.vault.holds("db");
    let rollouts = Rollouts::watch(&room.api);
    room.rotate(2);
    room.api.deny(OPERATOR, "patch", "ferrvaultsecrets/status");
    room.start().await;
    room.run_for(Duration::from_secs(600)).await;
    assert_eq!((room.data("db"), room.version("db")), (data, hash.clone()), "the record being refused, nothing moves");
    assert_eq!(rollouts.of("api"), 0);

    let before = room.here();
    room.api.allow_again(OPERATOR, "patch", "ferrvaultsecrets/status");
    room.run_for(Duration::from_secs(300)).await;
    assert_settled(&room, &rollouts, &[("api", 1)]);
    let writes = room.writes_since(before);
    let refused = writes.iter().position(|call| call == "PATCH secrets default/db").unwrap();
    let protocol: Vec<&str> = writes[refused - 1..].iter().map(String::as_str).take(4).collect();
    assert_eq!(protocol, [REPORT, "PATCH secrets default/db", PATCH_API, REPORT], "{writes:?}");
    let debt = room
        .api
        .journal()
        .into_iter()
        .filter(|record| record.call.number > before && record.call.summary() == REPORT)
        .find(|record| record.call.body["status"]["lastRolloutHash"].is_string())
        .unwrap();
    assert_eq!(debt.call.body["status"], json!({ "lastRolloutHash": hash }), "the debt and nothing else");
    assert!(debt.call.body["metadata"]["resourceVersion"].is_string(), "under the resourceVersion of the read");
}

#[tokio::test(start_paused = true)]
async fn a_refused_restart_is_owed_until_it_is_allowed() {
    let (room, rollouts) = room_with(both()).await;
    deny_workloads(&room);
    rotate(&room, 2).await;
    room.run_for(Duration::from_secs(1800)).await;
    room.assert_current("db", "db");
    assert_eq!(room.ready("db"), "True Synced", "the data did sync");
    assert_eq!(room.rollout("db"), "False RolloutFailed");
    let message = room.condition("db", "RolloutRestarted").message;
    for part in ["Deployment/api", "StatefulSet/store", "forbidden", "cannot patch deployments.apps"] {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
    let status = room.status("db");
    assert_ne!(status.last_rollout_hash, Some(room.version("db")), "the debt stays on record");
    let states: Vec<_> = status.rollouts.iter().map(|entry| (entry.name.as_str(), entry.state)).collect();
    assert_eq!(states, [("api", RolloutState::Failed), ("store", RolloutState::Failed)]);
    let since = status.rollouts[0].since.clone();
    assert!(room.metric("ferrvault_secret_sync_errors_total{reason=\"RolloutFailed\"}") > 5.0);
    assert_eq!(room.events("db"), ["Normal Synced", "Warning RolloutFailed"], "told once");

    room.run_for(Duration::from_secs(600)).await;
    assert_eq!(room.status("db").rollouts[0].since, since, "it has been like this since the first refusal");
    allow_workloads(&room);
    room.run_for(Duration::from_secs(300)).await;
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
    assert_eq!(room.events("db").last().unwrap(), "Normal Restarted");
}

#[tokio::test(start_paused = true)]
async fn a_retried_restart_asks_ferrvault_nothing_and_moves_no_refresh() {
    let (room, _) = room_with(both()).await;
    deny_workloads(&room);
    rotate(&room, 2).await;
    let (asked, synced) = (room.vault.reveals(), room.status("db").last_synced_at);
    room.run_for(Duration::from_secs(30 * 60)).await;
    assert!(room.reports("db").len() > 10, "{}", room.api.story());
    assert_eq!(room.vault.reveals(), asked, "the nudge made the interval an hour");
    assert_eq!(room.status("db").last_synced_at, synced);
}

#[tokio::test(start_paused = true)]
async fn one_refused_workload_does_not_stop_the_other() {
    let (room, rollouts) = room_with(both()).await;
    room.on(PATCH_API, Fault::Refuse(403));
    rotate(&room, 2).await;
    room.run_for(Duration::from_secs(900)).await;
    assert_eq!((rollouts.of("api"), rollouts.of("store")), (0, 1));
    assert_eq!(room.rollout("db"), "False RolloutFailed");
    let message = room.condition("db", "RolloutRestarted").message;
    assert!(message.contains("Deployment/api") && !message.contains("store"), "{message}");
    room.api.clear_faults();
    room.run_for(Duration::from_secs(300)).await;
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_workload_is_restarted_soon_after_it_appears() {
    for waited in [0, 7, 3600] {
        let (room, rollouts) = room_with(both().restarts("DaemonSet", "late")).await;
        rotate(&room, 2).await;
        room.run_for(Duration::from_secs(waited)).await;
        assert_eq!((rollouts.of("api"), rollouts.of("store")), (1, 1));
        assert_eq!(room.rollout("db"), "False RolloutPending");
        assert_eq!(
            room.condition("db", "RolloutRestarted").message,
            "DaemonSet/late: does not exist; create it, or take it out of spec.rolloutRestart"
        );
        assert_eq!(room.ready("db"), "True Synced");
        room.api.apply(&build::daemon_set(NS, "late"));
        room.run_for(Duration::from_secs(30)).await;
        assert_settled(&room, &rollouts, &[("api", 1), ("store", 1), ("late", 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_listed_twice_is_one_workload() {
    let (room, rollouts) = room_with(both().restarts("Deployment", "api")).await;
    rotate(&room, 2).await;
    room.run_for(Duration::from_secs(60)).await;
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
    assert_eq!(room.status("db").rollouts.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn two_resources_on_one_workload_restart_it_once_each() {
    let (room, rollouts) = room_with(both()).await;
    room.api.apply(&build::fvs(NS, "other").through("conn").vault("db").restarts("Deployment", "api"));
    room.rest().await;
    assert_eq!(rollouts.of("api"), 0);
    room.rotate(2);
    room.nudge_now("db");
    room.nudge_now("other");
    room.run_for(Duration::from_secs(40)).await;
    assert_settled(&room, &rollouts, &[("api", 2), ("store", 1)]);
    assert_eq!(room.rollout("other"), "True Restarted");
    assert_eq!(room.mark("Deployment", "api", "db"), Some(room.version("db")));
    assert_eq!(room.mark("Deployment", "api", "other"), Some(room.version("other")));
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_takes_the_stamp_and_is_named() {
    let (room, rollouts) = room_with(both()).await;
    room.api.edit::<Deployment>(NS, "api", |object| object["spec"]["paused"] = true.into());
    rotate(&room, 2).await;
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
    let message = room.condition("db", "RolloutRestarted").message;
    assert!(message.contains("Deployment/api was paused at "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_does_not_answer_is_cut_off_and_tried_again() {
    for (call, fault, restarts) in [
        (GET_API, Fault::LostRequest, 0),
        (PATCH_API, Fault::LostRequest, 0),
        // Carried out without an answer: the mark tells, and it is not stamped again.
        (PATCH_API, Fault::LostAnswer, 1),
        (PATCH_API, Fault::ResetAfter, 1),
    ] {
        let (room, rollouts) = room_with(both()).await;
        let lost = matches!(fault, Fault::LostRequest | Fault::LostAnswer);
        room.on(call, fault.clone());
        rotate(&room, 2).await;
        room.run_for(Duration::from_secs(if lost { 10 } else { 0 })).await;
        room.assert_current("db", "db");
        assert_eq!((rollouts.of("api"), rollouts.of("store")), (restarts, 1), "{call}, {fault}");
        assert_eq!(room.ready("db"), "True Synced", "{call}, {fault}");
        if restarts == 0 {
            room.run_for(Duration::from_secs(600)).await;
            assert_eq!(room.rollout("db"), "False RolloutFailed", "{call}, {fault}");
            let message = room.condition("db", "RolloutRestarted").message;
            assert!(message.contains("Deployment/api") && message.contains("no answer within"), "{message}");
        }
        room.api.clear_faults();
        room.run_for(Duration::from_secs(300)).await;
        assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_changes_under_its_stamp_is_looked_at_again() {
    for times in [1, 4] {
        let (room, rollouts) = room_with(both()).await;
        let (api, mut left) = (room.api.clone(), times);
        room.api.on_call(move |call| {
            if left > 0 && call.verb == Verb::Patch && call.resource == "deployments" {
                left -= 1;
                api.edit::<Deployment>(NS, "api", |object| object["spec"]["replicas"] = left.into());
            }
            Fault::None
        });
        rotate(&room, 2).await;
        if times > 1 {
            assert_eq!(room.rollout("db"), "False RolloutPending", "a conflict is no failure");
        }
        room.run_for(Duration::from_secs(30)).await;
        room.api.clear_faults();
        assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
        assert!(!room.events("db").contains(&"Warning RolloutFailed".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_stripped_after_its_record_restarts_nothing() {
    let (mut room, rollouts) = room_with(both()).await;
    rotate(&room, 2).await;
    room.api.edit::<Deployment>(NS, "api", |object| {
        object["spec"]["template"]["metadata"]["annotations"] = Value::Null;
    });
    room.api.edit::<StatefulSet>(NS, "store", |object| {
        object["spec"]["template"]["metadata"]["annotations"] = Value::Null;
    });
    room.nudge("db").await;
    room.run_for(Duration::from_secs(2 * 3600)).await;
    room.start().await;
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_stripped_while_another_workload_is_owed_restarts_nothing_twice() {
    let (room, rollouts) = room_with(both()).await;
    room.on(PATCH_API, Fault::Refuse(403));
    rotate(&room, 2).await;
    room.api.edit::<StatefulSet>(NS, "store", |object| {
        object["spec"]["template"]["metadata"]["annotations"] = Value::Null;
    });
    room.run_for(Duration::from_secs(600)).await;
    room.api.clear_faults();
    room.run_for(Duration::from_secs(300)).await;
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
}

#[tokio::test(start_paused = true)]
async fn there_and_back_is_two_restarts_and_three_versions() {
    let (room, rollouts) = room_with(both()).await;
    let mut versions = vec![room.version("db")];
    for to in [2, 1] {
        rotate(&room, to).await;
        versions.push(room.version("db"));
    }
    assert_settled(&room, &rollouts, &[("api", 2), ("store", 2)]);
    versions.sort();
    versions.dedup();
    assert_eq!(versions.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn there_and_back_before_anybody_restarted_is_one_restart() {
    let (room, rollouts) = room_with(both()).await;
    deny_workloads(&room);
    for to in [2, 3, 1] {
        rotate(&room, to).await;
        assert_eq!(room.rollout("db"), "False RolloutFailed", "to {to}");
    }
    allow_workloads(&room);
    room.run_for(Duration::from_secs(300)).await;
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
}

#[tokio::test(start_paused = true)]
async fn the_list_decides_who_is_owed_a_restart() {
    let (room, rollouts) = room_with(db().restarts("Deployment", "api")).await;
    room.api.deny(OPERATOR, "patch", "deployments");
    rotate(&room, 2).await;
    assert_eq!(room.rollout("db"), "False RolloutFailed");
    // One more while a restart is owed: it runs on the old content just the same.
    room.api.apply(&both());
    room.run_for(Duration::from_secs(30)).await;
    assert_eq!((rollouts.of("api"), rollouts.of("store")), (0, 1), "{}", room.api.story());
    assert_eq!(room.rollout("db"), "False RolloutFailed");
    // The one that cannot be restarted is taken off: nothing is owed any more.
    room.api.apply(&db().restarts("StatefulSet", "store"));
    room.run_for(Duration::from_secs(30)).await;
    assert_settled(&room, &rollouts, &[("api", 0), ("store", 1)]);
    let names: Vec<String> = room.status("db").rollouts.into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["store"]);
    // And one more while nothing is owed: it is as new as the content.
    room.api.allow_again(OPERATOR, "patch", "deployments");
    room.api.apply(&both());
    room.run_for(Duration::from_secs(30)).await;
    assert_settled(&room, &rollouts, &[("api", 0), ("store", 1)]);
    rotate(&room, 3).await;
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_costs_no_second_restart() {
    for (times, fault) in [
        (1, Fault::Refuse(500)),
        (1, Fault::Refuse(409)),
        (1, Fault::LostAnswer),
        (3, Fault::Refuse(503)),
        (usize::MAX, Fault::Refuse(403)),
        (usize::MAX, Fault::LostRequest),
    ] {
        let (room, rollouts) = room_with(both()).await;
        room.times_over(times, REPORT, fault.clone());
        rotate(&room, 2).await;
        room.run_for(Duration::from_secs(1200)).await;
        room.assert_current("db", "db");
        assert_eq!((rollouts.of("api"), rollouts.of("store")), (1, 1), "{times}x {fault}");
        room.api.clear_faults();
        room.run_for(Duration::from_secs(300)).await;
        assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_status_write_in_between_loses_nothing() {
    let (room, rollouts) = room_with(both()).await;
    let (api, mut left) = (room.api.clone(), 1);
    room.api.on_call(move |call| {
        if left > 0 && call.summary() == REPORT {
            left -= 1;
            api.edit_status::<FerrVaultSecret>(NS, "db", |object| {
                object["status"]["conditions"].as_array_mut().unwrap().push(json!({
                    "type": "Audited", "status": "True", "reason": "Audited", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }));
            });
        }
        Fault::None
    });
    rotate(&room, 2).await;
    room.run_for(Duration::from_secs(30)).await;
    room.api.clear_faults();
    assert_settled(&room, &rollouts, &[("api", 1), ("store", 1)]);
    assert_eq!(room.condition("db", "Audited").status, "True", "conditions of others stay");
}

#[tokio::test(start_paused = true)]
async fn a_debt_is_paid_while_ferrvault_is_away() {
    let (mut room, rollouts) = room_with(both()).await;
    deny_workloads(&room);
    rotate(&room, 2).await;
    let away = || Some(crate::script::Mood::Fails(crate::script::failing()));
    room.vault.always("db", away());
    // A new operator, which has to find the debt on the objects.
    room.kill();
    room.start().await;
    allow_workloads(&room);
    room.run_for(Duration::from_secs(300)).await;
    assert_eq!((rollouts.of("api"), rollouts.of("store")), (1, 1), "{}", room.api.story());
    assert_eq!(room.rollout("db"), "True Restarted");
    assert_eq!(room.ready("db"), "True Unreachable");
}
