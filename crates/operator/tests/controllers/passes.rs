//! What a pass costs, call by call, and what starts one.

use std::time::Duration;

use ferrvault_testkit::build;
use serde_json::json;

use crate::room::{NS, Rollouts, Room};

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db")
}

const REPORT: &str = "PATCH ferrvaultsecrets/status default/db";

#[tokio::test(start_paused = true)]
async fn a_creation_costs_two_writes_and_an_event() {
    let room = Room::started().await;
    let before = room.here();
    room.api.apply(&db());
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    assert_eq!(room.rollout("db"), "True Restarted");
    room.assert_current("db", "db");
    let mut writes = room.writes_since(before);
    // Beside the resource's own pass, the connection learns that it is in use.
    writes.retain(|call| !call.contains("ferrvaultconnections"));
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
    assert_eq!(
        room.calls_since(before),
        ["GET secrets default/token", "GET secrets default/db", REPORT],
        "{}",
        room.api.story()
    );
    let heartbeat = room.api.journal().pop().unwrap().call.body;
    let fields: Vec<&String> = heartbeat["status"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["lastAttemptedAt", "lastSyncedAt"]);
    assert_eq!(heartbeat["metadata"], json!(null), "a heartbeat needs no resourceVersion");
}
