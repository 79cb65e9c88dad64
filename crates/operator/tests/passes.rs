//! What a pass asks, writes and reports, call by call.

mod common;

use common::{NS, Rollouts, Room, mark_on};
use ferrvault_testkit::build;

#[tokio::test(start_paused = true)]
async fn a_creation_costs_two_writes() {
    let room = Room::started().await;
    let before = room.api.last_call();
    room.api.apply(&build::fvs(NS, "db").through("conn").vault("db"));
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    assert_eq!(room.rollout("db"), "True Restarted");
    assert_eq!(room.data("db").keys().collect::<Vec<_>>(), ["PASSWORD", "USER"]);
    let calls: Vec<String> = room.api.requests_after(before, "operator");
    let of_connection = |call: &String| call.contains("ferrvaultconnections");
    let calls: Vec<&String> = calls.iter().filter(|call| !of_connection(call)).collect();
    assert_eq!(
        calls.iter().filter(|call| !call.starts_with("GET")).map(|call| call.as_str()).collect::<Vec<_>>(),
        [
            "CREATE secrets default/db",
            "PATCH ferrvaultsecrets.ferrvault.com/status default/db",
            "CREATE events.events.k8s.io default/*"
        ],
        "{calls:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rotation_with_one_workload_costs_three_writes_and_restarts_it_once() {
    let room = Room::started().await;
    room.api.apply(&build::deployment(NS, "api"));
    let rollouts = Rollouts::watch(&room.api);
    room.api.apply(&build::fvs(NS, "db").through("conn").vault("db").restarts("Deployment", "api").every("1m"));
    room.rest().await;
    assert_eq!(rollouts.of("api"), 0, "creation restarts nothing");
    let first = room.version("db");

    room.vault.set("db", "PASSWORD", "second");
    let before = room.api.last_call();
    room.run_for(std::time::Duration::from_secs(70)).await;
    let writes: Vec<String> =
        room.api.requests_after(before, "operator").into_iter().filter(|call| !call.starts_with("GET")).collect();
    assert_eq!(
        writes,
        [
            "PATCH secrets default/db",
            "PATCH deployments.apps default/api",
            "PATCH ferrvaultsecrets.ferrvault.com/status default/db"
        ],
        "{}",
        room.api.story()
    );
    assert_eq!(rollouts.of("api"), 1);
    assert_ne!(room.version("db"), first);
    assert_eq!(mark_on(&room, "Deployment", "api", "db"), Some(room.version("db")));
    let status = room.fvs("db").unwrap().status.unwrap();
    assert_eq!(status.last_rollout_hash, Some(room.version("db")));
    assert_eq!(status.content_hash, Some(room.version("db")));
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_pass_writes_one_heartbeat_and_nothing_more() {
    let room = Room::started().await;
    room.api.apply(&build::fvs(NS, "db").through("conn").vault("db").every("1m"));
    room.rest().await;
    let before = room.api.last_call();
    room.run_for(std::time::Duration::from_secs(70)).await;
    assert_eq!(
        room.api.requests_after(before, "operator"),
        [
            "GET secrets default/token",
            "GET secrets default/db",
            "PATCH ferrvaultsecrets.ferrvault.com/status default/db"
        ],
        "{}",
        room.api.story()
    );
}
