//! What a pass costs, call by call, and what starts one: a resource, an edit, its own clock. Never what it wrote itself.

use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_testkit::build;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::room::{NS, Rollouts, Room};
use crate::script::{self, Mood};

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db")
}

const REPORT: &str = "PATCH ferrvaultsecrets/status default/db";
/// What a pass asks and writes that finds everything as it should be.
const UNCHANGED: [&str; 3] = ["GET secrets default/token", "GET secrets default/db", REPORT];

/// Calls that are not about the connection: it is probed beside the passes, and reads the token as they do.
fn of_resource(mut calls: Vec<String>) -> Vec<String> {
    calls.retain(|call| !call.contains("ferrvaultconnections") && call != "GET secrets default/token");
    calls
}

#[tokio::test(start_paused = true)]
async fn a_creation_costs_two_writes_and_an_event() {
    let room = Room::started().await;
    let before = room.here();
    room.api.apply(&db());
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    assert_eq!(room.rollout("db"), "True Restarted");
    room.assert_current("db", "db");
    let writes = of_resource(room.writes_since(before));
    assert_eq!(writes, ["CREATE secrets default/db", REPORT, "CREATE events"]);
    assert_eq!(room.events("db"), ["Normal Synced"]);
}

#[tokio::test(start_paused = true)]
async fn a_rotation_costs_two_writes_and_one_per_workload() {
    let every: [(&str, &str, &str); 3] = [
        ("Deployment", "api", "deployments"),
        ("StatefulSet", "store", "statefulsets"),
        ("DaemonSet", "agent", "daemonsets"),
    ];
    for workloads in [&every[..0], &every[..1], &every[..]] {
        let room = Room::started().await;
        let rollouts = Rollouts::watch(&room.api);
        let mut resource = db().every("1m");
        for (kind, name, _) in workloads {
            resource = resource.restarts(kind, name);
        }
        room.api.apply(&build::deployment(NS, "api"));
        room.api.apply(&build::stateful_set(NS, "store"));
        room.api.apply(&build::daemon_set(NS, "agent"));
        room.api.apply(&resource);
        room.rest().await;
        let first = room.version("db");

        room.rotate(2);
        let before = room.here();
        room.run_for(Duration::from_secs(66)).await;
        let mut expected = vec!["GET secrets default/token".to_owned(), "GET secrets default/db".to_owned()];
        expected.extend(workloads.iter().map(|(_, name, plural)| format!("GET {plural} default/{name}")));
        expected.push("PATCH secrets default/db".to_owned());
        expected.extend(workloads.iter().map(|(_, name, plural)| format!("PATCH {plural} default/{name}")));
        expected.push(REPORT.to_owned());
        assert_eq!(room.calls_since(before), expected, "{}", room.api.story());
        room.assert_current("db", "db");
        let version = room.version("db");
        assert_ne!(version, first);
        for (kind, name, _) in workloads {
            assert_eq!(rollouts.of(name), 1, "{name}");
            assert_eq!(room.mark(kind, name, "db").as_ref(), Some(&version), "{name}");
        }
        let status = room.status("db");
        assert_eq!((status.last_rollout_hash, status.content_hash), (Some(version.clone()), Some(version)));
        assert_eq!(status.rollouts.len(), workloads.len());
    }
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_pass_writes_one_heartbeat_and_nothing_more() {
    let room = Room::with_db(db().every("1m")).await;
    let before = room.here();
    room.run_for(Duration::from_secs(66)).await;
    assert_eq!(room.calls_since(before), UNCHANGED, "{}", room.api.story());
    let reported = room.api.journal().into_iter().rev().find(|record| record.call.summary() == REPORT).unwrap();
    let heartbeat = reported.call.body;
    let fields: Vec<&String> = heartbeat["status"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["lastAttemptedAt", "lastSyncedAt"]);
    assert_eq!(heartbeat["metadata"], json!(null), "a heartbeat needs no resourceVersion");
}

#[tokio::test(start_paused = true)]
async fn what_it_wrote_itself_starts_no_pass() {
    let room = Room::started().await;
    room.api.apply(&build::deployment(NS, "api"));
    room.api.apply(&db().every("0s").restarts("Deployment", "api"));
    room.rest().await;
    // Creation, a repair, a rotation: each is followed by the echoes of Secret, status, finalizer and workload.
    room.api.edit::<Secret>(NS, "db", |object| object["data"] = json!({ "USER": "Y2FuYXJ5" }));
    room.rest().await;
    room.rotate(2);
    room.api.edit::<FerrVaultSecret>(NS, "db", |object| object["spec"]["refreshInterval"] = "0m".into());
    room.rest().await;
    room.assert_current("db", "db");
    assert_eq!(room.reports("db").len(), 3, "{}", room.api.story());
    let before = room.here();
    room.run_for(Duration::from_secs(3 * 3600)).await;
    let calls = of_resource(room.calls_since(before));
    assert!(calls.iter().all(|call| call.starts_with("LIST")), "{calls:?}\n{}", room.api.story());
    let probes = room.times("PATCH ferrvaultconnections/status default/conn").len();
    assert!((18..=22).contains(&probes), "the connection was probed {probes}x in three hours");
}

#[tokio::test(start_paused = true)]
async fn edits_beside_the_spec_cost_a_look_at_most() {
    let room = Room::with_db(db()).await;
    let before = room.here();
    room.api.edit::<FerrVaultSecret>(NS, "db", |object| object["metadata"]["labels"] = json!({ "team": "a" }));
    room.api.edit::<FerrVaultConnection>(NS, "conn", |object| object["metadata"]["labels"] = json!({ "team": "a" }));
    room.rest().await;
    assert_eq!(room.calls_since(before), Vec::<String>::new(), "a label means nothing");

    room.api.edit::<Secret>(NS, "db", |object| object["metadata"]["labels"] = json!({ "team": "a" }));
    room.rest().await;
    assert_eq!(room.calls_since(before), UNCHANGED, "somebody wrote the target: one look");
    assert_eq!(room.secret("db").unwrap().metadata.labels.unwrap_or_default().len(), 1, "the label stays");

    let before = room.here();
    room.api.apply(&build::secret(NS, "foreign").key("A", "canary-b"));
    room.api.edit::<Secret>(NS, "foreign", |object| object["metadata"]["labels"] = json!({ "team": "a" }));
    room.rest().await;
    assert_eq!(room.calls_since(before), Vec::<String>::new(), "other people's Secrets are nothing to it");
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_handled_at_once() {
    let room = Room::with_db(db().every("10h")).await;
    room.run_for(Duration::from_secs(1000)).await;
    let edited = room.clock.now();
    room.api.apply(&db().every("10h").names(&["USER"]));
    room.rest().await;
    assert_eq!(room.data("db").keys().collect::<Vec<_>>(), ["USER"], "{}", room.api.story());
    let attempted = room.status("db").last_attempted_at.unwrap().0;
    assert!(attempted.duration_since(edited).as_secs_f64().abs() <= 1.0, "{edited} {attempted}");
    assert_eq!(room.vault.last_asked().names, ["USER"]);
    let status = room.status("db");
    assert_eq!((status.observed_generation, status.synced_keys), (Some(2), vec!["USER".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_edit_during_a_pass_gets_a_pass_of_its_own() {
    let room = Room::started().await;
    room.vault.next("db", Mood::Late(Duration::from_secs(8)));
    room.api.apply(&db());
    room.run_for(Duration::from_secs(3)).await;
    room.api.apply(&db().names(&["USER"]));
    room.run_for(Duration::from_secs(10)).await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    assert_eq!(room.data("db").keys().collect::<Vec<_>>(), ["USER"]);
    assert_eq!(room.status("db").observed_generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn refreshes_are_spread_by_a_tenth() {
    let room = Room::with_db(db().every("10m")).await;
    room.run_for(Duration::from_secs(12 * 3600)).await;
    let reports = room.reports("db");
    let gaps: Vec<f64> = reports.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    assert!(gaps.len() > 60, "{gaps:?}");
    assert!(gaps.iter().all(|gap| (540.0..=660.0).contains(gap)), "{gaps:?}");
    let early = gaps.iter().filter(|gap| **gap < 590.0).count();
    let late = gaps.iter().filter(|gap| **gap > 610.0).count();
    assert!(early > 10 && late > 10, "{early} early, {late} late: {gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn without_an_interval_the_operators_holds() {
    let mut room = Room::new();
    room.default_refresh = Duration::from_secs(300);
    room.start().await;
    room.api.apply(&db());
    room.run_for(Duration::from_secs(340)).await;
    assert_eq!(room.reports("db").len(), 2, "{}", room.api.story());
}

#[tokio::test(start_paused = true)]
async fn without_a_schedule_a_failure_is_tried_again_all_the_same() {
    let failures: [(&str, fn() -> ferrvault_vault::VaultError, f64); 4] = [
        ("Unreachable", script::failing, 1.0),
        ("AuthFailed", script::unauthorized, 300.0),
        ("VaultNotFound", script::not_found, 3600.0),
        ("RateLimited", || script::throttled(Some(Duration::from_secs(40))), 44.0),
    ];
    for (reason, error, within) in failures {
        let room = Room::with_db(db().every("0s")).await;
        room.vault.always("db", Some(Mood::Fails(error())));
        room.run_for(Duration::from_secs(2 * 3600)).await;
        assert_eq!(room.reports("db").len(), 1, "{reason}: nothing is scheduled");
        room.api.apply(&db().every("0m"));
        room.next_report("db").await;
        assert_eq!(room.condition("db", "Ready").reason, reason);
        room.vault.always("db", None);
        room.rotate(2);
        let after = room.next_report("db").await;
        assert!(after <= within, "{reason}: tried again after {after} s");
        assert_eq!(room.ready("db"), "True Synced", "{reason}");
        room.assert_current("db", "db");
        let reports = room.reports("db").len();
        room.run_for(Duration::from_secs(3 * 3600)).await;
        assert_eq!(room.reports("db").len(), reports, "{reason}: once well, nothing is scheduled again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_start_costs_one_look_per_resource_and_restarts_nothing() {
    let mut room = Room::started().await;
    let rollouts = Rollouts::watch(&room.api);
    room.api.apply(&build::deployment(NS, "api"));
    for name in ["a", "b", "c"] {
        room.api.apply(&build::fvs(NS, name).through("conn").vault("db").restarts("Deployment", "api"));
    }
    room.rest().await;
    room.rotate(2);
    for name in ["a", "b", "c"] {
        room.nudge(name).await;
    }
    room.run_for(Duration::from_secs(30)).await;
    assert_eq!(rollouts.of("api"), 3, "each has a mark of its own");
    for way in ["stopped", "killed"] {
        if way == "killed" {
            room.kill();
        }
        let before = room.here();
        room.start().await;
        let writes = room.writes_since(before);
        let expected = ["a", "b", "c"].map(|name| format!("PATCH ferrvaultsecrets/status {NS}/{name}"));
        let mut of_resources = of_resource(writes.clone());
        of_resources.sort();
        assert_eq!(of_resources, expected, "{way}: {writes:?}");
        let reads = of_resource(room.calls_since(before));
        assert!(!reads.iter().any(|call| call.contains("deployments")), "{way}: nothing is owed: {reads:?}");
    }
    assert_eq!(rollouts.of("api"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_goes_leaves_nothing_behind() {
    let room = Room::with_db(db().every("1m")).await;
    assert!(room.metrics.text().unwrap().contains("name=\"db\""));
    room.api.delete::<FerrVaultSecret>(NS, "db");
    room.run_for(Duration::from_secs(5)).await;
    assert!(room.secret("db").is_none(), "its owner being gone, the target goes");
    assert!(!room.metrics.text().unwrap().contains("name=\"db\""));
    let before = room.here();
    room.run_for(Duration::from_secs(300)).await;
    assert_eq!(of_resource(room.calls_since(before)), Vec::<String>::new(), "{}", room.api.story());

    room.api.apply(&db().every("1m"));
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "one of the same name starts afresh");
}

#[tokio::test(start_paused = true)]
async fn a_resource_made_anew_at_once_is_synced_under_its_new_owner() {
    let room = Room::with_db(db().every("10h")).await;
    let first = room.fvs("db").unwrap().metadata.uid;
    room.api.delete::<FerrVaultSecret>(NS, "db");
    room.api.apply(&db().every("10h"));
    room.run_for(Duration::from_secs(5)).await;
    let second = room.fvs("db").unwrap().metadata.uid;
    assert_ne!(first, second);
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    room.assert_current("db", "db");
    let owners = room.secret("db").unwrap().metadata.owner_references.unwrap();
    assert_eq!(Some(owners[0].uid.clone()), second);
}
