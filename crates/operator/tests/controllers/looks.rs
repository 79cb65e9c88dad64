//! What is said of the listed workloads while nothing is owed, and of a debt that nobody can retry; and that a list of
//! workloads that do not answer keeps neither the Secret nor its neighbours waiting.

use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_api::secret::RolloutState;
use ferrvault_testkit::{Fault, build};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::invariants::OPERATOR;
use crate::room::{NS, Rollouts, Room};

const REPORT: &str = "PATCH ferrvaultsecrets/status default/db";

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m")
}

fn said(room: &Room) -> String {
    room.condition("db", "RolloutRestarted").message
}

/// Calls about workloads.
fn looks(room: &Room, since: usize) -> Vec<String> {
    let mut calls = room.calls_since(since);
    calls.retain(|call| ["deployments", "statefulsets", "daemonsets"].iter().any(|plural| call.contains(plural)));
    calls
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_mistyped_shows_before_a_restart_depends_on_it() {
    let room = Room::started().await;
    room.api.apply(&build::deployment(NS, "api"));
    let before = room.here();
    room.api.apply(&db().restarts("Deployment", "api").restarts("StatefulSet", "stoer"));
    room.rest().await;
    assert_eq!((room.ready("db"), room.rollout("db")), ("True Synced".into(), "True Restarted".into()));
    assert!(said(&room).contains("StatefulSet/stoer did not exist: create it, or correct"), "{}", said(&room));
    assert!(!said(&room).contains("Deployment/api"), "{}", said(&room));
    assert_eq!(looks(&room, before), ["GET deployments default/api", "GET statefulsets default/stoer"]);
    let writes: Vec<String> = room.writes_since(before).into_iter().filter(|call| call == REPORT).collect();
    assert_eq!(writes.len(), 1, "said in the write that there is anyway");
    assert_eq!(room.status("db").rollouts, []);

    // Hours later it is said in the same words, and nobody looked again.
    let (first, before) = (said(&room), room.here());
    room.run_for(Duration::from_secs(3 * 3600)).await;
    assert_eq!(said(&room), first);
    assert_eq!(looks(&room, before), Vec::<String>::new());
    assert!(room.reports("db").len() > 10);
    assert_eq!(room.events("db"), ["Normal Synced"]);

    // Made meanwhile, or corrected: both are seen at the next look.
    room.api.apply(&build::stateful_set(NS, "stoer"));
    let asked = |room: &Room, value: &str| {
        room.api.edit::<FerrVaultSecret>(NS, "db", |object| {
            object["metadata"]["annotations"] = json!({ "ferrvault.com/refresh": value });
        });
    };
    asked(&room, "1");
    room.rest().await;
    assert_eq!(said(&room), "no restart is owed", "{}", room.api.story());
    room.api.apply(&db().restarts("Deployment", "apj"));
    room.rest().await;
    assert!(said(&room).contains("Deployment/apj did not exist"), "{}", said(&room));
    room.api.apply(&db().restarts("Deployment", "api"));
    room.rest().await;
    assert_eq!(said(&room), "no restart is owed");
    room.api.apply(&db());
    room.rest().await;
    assert_eq!(said(&room), "nothing to restart: no workload is listed");
    assert_eq!(room.status("db").last_rollout_hash, Some(room.version("db")), "no look is a restart");
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_shows_before_a_restart_depends_on_it_and_harms_nothing() {
    for fault in [Fault::Refuse(403), Fault::Refuse(500), Fault::LostRequest] {
        let room = Room::started().await;
        room.api.apply(&build::deployment(NS, "api"));
        room.on("GET deployments default/api", fault.clone());
        room.api.apply(&db().restarts("Deployment", "api"));
        room.run_for(Duration::from_secs(15)).await;
        assert_eq!((room.ready("db"), room.rollout("db")), ("True Synced".into(), "True Restarted".into()), "{fault}");
        assert!(said(&room).contains("Deployment/api could not be looked at: reading it"), "{fault}: {}", said(&room));
        assert_eq!(room.reports("db").len(), 1, "{fault}: nothing is owed, so nothing is retried");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_workloads_that_do_not_answer_keep_neither_the_secret_nor_the_one_that_does_waiting() {
    let room = Room::started().await;
    let mut resource = db();
    for index in 0..100 {
        resource = resource.restarts("Deployment", &format!("stalled-{index}"));
    }
    room.api.apply(&build::deployment(NS, "api"));
    room.api.apply(&resource.restarts("Deployment", "api"));
    room.rest().await;
    let rollouts = Rollouts::watch(&room.api);
    room.api.on_call(|call| match call.summary().contains("deployments default/stalled-") {
        true if call.who == OPERATOR => Fault::LostRequest,
        _ => Fault::None,
    });
    room.rotate(2);
    room.nudge_now("db");
    room.run_for(Duration::from_secs(45)).await;
    room.assert_current("db", "db");
    assert_eq!(rollouts.of("api"), 1, "the last of the list had its turn");
    assert_eq!(room.metric("controller_runtime_reconcile_timeouts_total{controller=\"ferrvaultsecret\"}"), 0.0);
    assert_eq!((room.ready("db"), room.rollout("db")), ("True Synced".into(), "False RolloutFailed".into()));
    assert!(said(&room).contains("no answer within"), "{}", said(&room));
    assert!(said(&room).ends_with("or take it out of spec.rolloutRestart"), "{}", said(&room));
    let failed = room.status("db").rollouts.into_iter().filter(|entry| entry.state == RolloutState::Failed).count();
    assert_eq!(failed, 100);

    // Stamps that are not answered cost no more than reads.
    room.api.clear_faults();
    for index in 0..100 {
        room.api.apply(&build::deployment(NS, &format!("stalled-{index}")));
    }
    room.api.on_call(|call| match call.summary().starts_with("PATCH deployments default/stalled-") {
        true if call.who == OPERATOR => Fault::LostRequest,
        _ => Fault::None,
    });
    let reports = room.reports("db").len();
    room.run_for(Duration::from_secs(400)).await;
    assert!(room.reports("db").len() > reports, "{:?}", room.reports("db"));
    assert_eq!(room.metric("controller_runtime_reconcile_timeouts_total{controller=\"ferrvaultsecret\"}"), 0.0);
    assert_eq!(room.rollout("db"), "False RolloutFailed");
    room.api.clear_faults();
    room.run_for(Duration::from_secs(310)).await;
    assert_eq!(room.rollout("db"), "True Restarted");
    assert_eq!((rollouts.of("api"), rollouts.of("stalled-0"), rollouts.of("stalled-99")), (1, 1, 1));
}

/// Rule 6 and I1: what is wrong with the rest of the spec is no reason to leave a workload on an older content.
#[tokio::test(start_paused = true)]
async fn a_debt_is_paid_while_the_spec_cannot_be_used() {
    for (case, field, wrong) in [
        ("an interval that is none", "refreshInterval", json!("soon")),
        ("an empty key", "selector", json!({ "names": ["USER", " "] })),
    ] {
        let room = Room::with_db(db().restarts("Deployment", "late")).await;
        let rollouts = Rollouts::watch(&room.api);
        room.rotate(2);
        room.nudge("db").await;
        assert_eq!(room.rollout("db"), "False RolloutPending", "{case}");
        edit(&room, field, wrong);
        room.rest().await;
        assert_eq!(room.ready("db"), "False InvalidSpec", "{case}");
        room.run_for(Duration::from_secs(300)).await;
        assert_eq!(room.rollout("db"), "False RolloutPending", "{case}");
        room.api.apply(&build::deployment(NS, "late"));
        room.run_for(Duration::from_secs(30)).await;
        assert_eq!(rollouts.of("late"), 1, "{case}\n{}", room.api.story());
        assert_eq!((room.ready("db"), room.rollout("db")), ("False InvalidSpec".into(), "True Restarted".into()));
        room.api.apply(&db().restarts("Deployment", "late"));
        room.run_for(Duration::from_secs(60)).await;
        assert_eq!((room.ready("db"), rollouts.of("late")), ("True Synced".into(), 1), "{case}: and not twice");
    }
}

fn edit(room: &Room, field: &str, value: Value) {
    room.api.edit::<FerrVaultSecret>(NS, "db", |object| object["spec"][field] = value);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_names_no_workload_keeps_the_debt_and_not_the_others_from_being_restarted() {
    let room = Room::with_db(db().restarts("Deployment", "api").restarts("StatefulSet", "store")).await;
    let rollouts = Rollouts::watch(&room.api);
    room.rotate(2);
    room.nudge("db").await;
    assert_eq!(room.rollout("db"), "False RolloutPending");
    let list = json!([{ "kind": "Deployment", "name": "api" }, { "kind": "StatefulSet", "name": "../store" }]);
    edit(&room, "rolloutRestart", list);
    room.api.apply(&build::deployment(NS, "api"));
    room.api.apply(&build::stateful_set(NS, "store"));
    room.run_for(Duration::from_secs(60)).await;
    assert_eq!((rollouts.of("api"), rollouts.of("store")), (1, 0), "{}", room.api.story());
    assert_eq!((room.ready("db"), room.rollout("db")), ("False InvalidSpec".into(), "False RolloutFailed".into()));
    assert!(said(&room).contains("StatefulSet/../store: no workload can have this name"), "{}", said(&room));
    assert!(looks(&room, 0).iter().all(|call| !call.contains("..")), "no path is made of it");
    // Corrected, it is what it was: owed.
    room.api.apply(&db().restarts("Deployment", "api").restarts("StatefulSet", "store"));
    room.run_for(Duration::from_secs(60)).await;
    assert_eq!((rollouts.of("api"), rollouts.of("store")), (1, 1));
    assert_eq!((room.ready("db"), room.rollout("db")), ("True Synced".into(), "True Restarted".into()));
}

#[tokio::test(start_paused = true)]
async fn a_debt_that_has_to_wait_says_what_for_and_is_paid_afterwards() {
    let good = || db().restarts("Deployment", "late");
    type Step = fn(&Room);
    let cases: [(&str, &str, Step, Step); 3] = [
        (
            "suspended",
            "Suspended",
            |room| edit(room, "suspend", json!(true)),
            |room| edit(room, "suspend", json!(false)),
        ),
        (
            "a target that cannot be",
            "InvalidSpec",
            |room| edit(room, "target", json!({ "name": "Not_A_Name" })),
            |room| edit(room, "target", json!({ "name": "db" })),
        ),
        (
            "a target that somebody took",
            "TargetConflict",
            |room| {
                room.api.edit::<Secret>(NS, "db", |secret| {
                    secret["metadata"]["ownerReferences"][0] =
                        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": true });
                });
            },
            |room| {
                room.api.edit::<Secret>(NS, "db", |secret| secret["metadata"]["ownerReferences"] = json!([]));
            },
        ),
    ];
    for (case, reason, wrong, right) in cases {
        let room = Room::with_db(good()).await;
        let rollouts = Rollouts::watch(&room.api);
        room.rotate(2);
        room.nudge("db").await;
        assert_eq!(room.rollout("db"), "False RolloutPending", "{case}");
        wrong(&room);
        room.run_for(Duration::from_secs(120)).await;
        assert_eq!(room.ready("db"), format!("False {reason}"), "{case}");
        assert_eq!(room.rollout("db"), "False RolloutPending", "{case}");
        assert!(said(&room).contains(&format!("waits for what Ready says ({reason})")), "{case}: {}", said(&room));
        room.api.apply(&build::deployment(NS, "late"));
        room.run_for(Duration::from_secs(60)).await;
        assert_eq!(rollouts.of("late"), 0, "{case}");
        right(&room);
        room.run_for(Duration::from_secs(60)).await;
        assert_eq!((room.ready("db"), rollouts.of("late")), ("True Synced".into(), 1), "{case}\n{}", room.api.story());
        assert_eq!(room.rollout("db"), "True Restarted", "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_is_asked_for_while_suspended_is_said_to_wait_and_is_done_afterwards() {
    let room = Room::with_db(db()).await;
    let ask = |object: &mut Value| object["metadata"]["annotations"] = json!({ "ferrvault.com/refresh": "1" });
    edit(&room, "suspend", json!(true));
    room.rest().await;
    let waits = "the refresh that was asked for is done then";
    let message = || room.condition("db", "Ready").message;
    assert!(!message().contains(waits), "{}", message());
    room.api.edit::<FerrVaultSecret>(NS, "db", ask);
    room.run_for(Duration::from_secs(900)).await;
    assert!(message().contains(waits), "{}", message());
    assert_eq!(room.status("db").last_handled_refresh, None);
    assert_eq!(room.condition("db", "Fresh").reason, "Suspended", "nobody is late");
    let asked = room.vault.reveals();
    edit(&room, "suspend", json!(false));
    room.rest().await;
    assert_eq!(room.status("db").last_handled_refresh.as_deref(), Some("1"));
    assert_eq!((room.ready("db"), room.vault.reveals()), ("True Synced".into(), asked + 1));
}
