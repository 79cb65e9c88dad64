//! One that is stuck delays no other, and is not silent about it: vaults that never answer, workloads that never answer, a
//! pass that hangs, a pass that panics (I9, I7).

use std::time::Duration;

use ferrvault_testkit::{Fault, build};

use crate::invariants::OPERATOR;
use crate::room::{NS, Rollouts, Room, VALUE};
use crate::script::Mood;

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m")
}

/// A room with a second connection `slow` and fifty resources that read through it from a vault that never answers.
async fn stuck() -> Room {
    let room = Room::started().await;
    room.api.apply(&build::connection(NS, "slow").url("http://127.0.0.1:2").token_in("token", "token"));
    room.vault.set("slow", "KEY", VALUE);
    room.vault.always("slow", Some(Mood::Stalls));
    for number in 0..50 {
        room.api.apply(&build::fvs(NS, &format!("s{number}")).through("slow").vault("slow"));
    }
    room
}

#[tokio::test(start_paused = true)]
async fn fifty_resources_on_a_vault_that_stalls_delay_no_other() {
    let room = stuck().await;
    // Straight into the crowd, and again when it has been there for a while.
    for (name, wait) in [("first", 0), ("second", 30), ("third", 600)] {
        room.run_for(Duration::from_secs(wait)).await;
        let made = room.clock.now();
        room.api.apply(&build::fvs(NS, name).through("conn").vault("db"));
        room.run_for(Duration::from_millis(1500)).await;
        assert_eq!(room.ready(name), "True Synced", "{name}");
        let synced = room.status(name).last_synced_at.unwrap().0;
        assert!(synced.duration_since(made).as_secs_f64() < 2.0, "{name}: made {made}, synced {synced}");
    }
    // And when the vault answers again, each of them is served.
    room.vault.always("slow", None);
    room.run_for(Duration::from_secs(900)).await;
    for number in 0..50 {
        assert_eq!(room.ready(&format!("s{number}")), "True Synced");
    }
}

#[tokio::test(start_paused = true)]
async fn refreshes_go_on_while_another_connection_is_stuck() {
    let room = stuck().await;
    for number in 0..20 {
        let resource = build::fvs(NS, &format!("r{number}")).through("conn").vault("db").every("1m");
        room.api.apply(&resource);
    }
    room.run_for(Duration::from_secs(1800)).await;
    for number in 0..20 {
        let reports = room.reports(&format!("r{number}"));
        let longest = reports.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(longest <= Duration::from_secs(68), "r{number} waited {longest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_stalls_delays_no_other_resource() {
    // (how many resources restart it, through which connection): fewer and more than there are permits beside the other
    // resource, and more beside another connection.
    for (crowd, connection) in [(5, "conn"), (30, "conn"), (30, "slow")] {
        let room = Room::started().await;
        let rollouts = Rollouts::watch(&room.api);
        room.api.apply(&build::connection(NS, "slow").url("http://127.0.0.1:2").token_in("token", "token"));
        room.api.apply(&build::deployment(NS, "slow"));
        room.api.apply(&build::deployment(NS, "api"));
        for number in 0..crowd {
            let resource = build::fvs(NS, &format!("s{number}")).through(connection).vault("db").every("1m");
            room.api.apply(&resource.restarts("Deployment", "slow"));
        }
        room.api.apply(&db().every("1m").restarts("Deployment", "api"));
        room.run_for(Duration::from_secs(5)).await;
        room.on("GET deployments default/slow", Fault::LostRequest);
        room.rotate(2);
        room.run_for(Duration::from_secs(240)).await;
        assert_eq!(rollouts.of("api"), 1, "{crowd} through {connection}");
        room.assert_current("db", "db");
        let reports = room.reports("db");
        let longest = reports.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(longest <= Duration::from_secs(68), "{crowd} through {connection}: it waited {longest:?}");
        for number in 0..crowd {
            room.assert_current(&format!("s{number}"), "db");
        }
        room.api.clear_faults();
        room.run_for(Duration::from_secs(120)).await;
        assert_eq!(rollouts.of("slow"), crowd, "one per resource and version");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_is_cut_counted_shown_and_tried_again() {
    let room = Room::with_db(db()).await;
    let before = room.status("db");
    room.vault.always("db", Some(Mood::Stalls));
    room.rotate(2);
    let timeouts = "controller_runtime_reconcile_timeouts_total{controller=\"ferrvaultsecret\"}";
    room.run_for(Duration::from_secs(660)).await;
    let running = "workqueue_longest_running_processor_seconds{controller=\"ferrvaultsecret\"}";
    assert!(room.metric(running) > 0.0, "a pass that hangs can be seen while it does");
    room.run_for(Duration::from_secs(130)).await;
    assert!(room.metric(timeouts) >= 1.0);
    assert!(room.metric("ferrvault_secret_sync_errors_total{reason=\"ReconcileTimeout\"}") >= 1.0);
    assert_eq!(room.ready("db"), "True ReconcileTimeout", "{}", room.api.story());
    let message = room.condition("db", "Ready").message;
    for part in ["cut after 2m0s", "asking FerrVault for vault db", "it is tried again", "last synced at"] {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
    let after = room.status("db");
    assert_eq!(after.last_attempted_at, before.last_attempted_at, "a pass that was cut is no completed one");
    assert_eq!(after.last_synced_at, before.last_synced_at);
    assert_eq!(room.events("db"), ["Normal Synced", "Warning ReconcileTimeout"]);

    let counted = room.metric(timeouts);
    room.run_for(Duration::from_secs(600)).await;
    assert!(room.metric(timeouts) >= counted + 3.0, "it is tried again and again");
    room.vault.always("db", None);
    room.run_for(Duration::from_secs(430)).await;
    assert_eq!(room.ready("db"), "True Synced");
    room.assert_current("db", "db");
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_is_cut_comes_back_no_later_than_the_schedule_would() {
    let room = Room::with_db(db().every("20s")).await;
    room.vault.always("db", Some(Mood::Stalls));
    room.run_for(Duration::from_mins(10)).await;
    let asked = room.vault.reveals();
    room.run_for(Duration::from_hours(1)).await;
    // Cut after two minutes, and twenty seconds at most to the next one.
    let again = room.vault.reveals() - asked;
    assert!(again >= 3600 / 140, "{again} passes within an hour");
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_before_the_first_sync_is_not_ready() {
    let room = Room::started().await;
    room.vault.always("db", Some(Mood::Stalls));
    room.api.apply(&db());
    room.run_for(Duration::from_secs(125)).await;
    assert_eq!(room.ready("db"), "False ReconcileTimeout", "{}", room.api.story());
    assert!(room.secret("db").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_from_before_a_change_is_not_the_last_word() {
    let room = Room::with_db(db().every("1m")).await;
    // What was asked before the change comes after it.
    room.vault.always("db", Some(Mood::Late(Duration::from_secs(25))));
    room.run_for(Duration::from_secs(70)).await;
    room.rotate(2);
    room.run_for(Duration::from_secs(200)).await;
    room.assert_current("db", "db");
    assert_eq!(room.ready("db"), "True Synced");
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_panics_is_contained_and_tried_again() {
    let room = Room::with_db(db()).await;
    room.api.apply(&build::fvs(NS, "other").through("conn").vault("other").every("1m"));
    room.vault.set("other", "KEY", VALUE);
    room.vault.always("db", Some(Mood::Panics));
    room.rotate(2);
    room.nudge("db").await;
    room.run_for(Duration::from_secs(600)).await;
    assert!(room.vault.reveals_of("db") > 4, "it is tried again");
    assert!(room.vault.reveals_of("db") < 30, "with backoff");
    assert!(room.reports("other").len() > 8, "the other does not notice");
    assert_eq!(room.ready("other"), "True Synced");
    room.vault.always("db", None);
    room.run_for(Duration::from_secs(301)).await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    room.assert_current("db", "db");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_is_waited_for() {
    let room = Room::with_db(db().every("1m")).await;
    for fault in [Fault::ResetBefore, Fault::Refuse(503), Fault::LostRequest, Fault::RefuseFor(429, 30)] {
        let put = fault.clone();
        room.api.on_call(move |call| if call.who == OPERATOR { put.clone() } else { Fault::None });
        room.run_for(Duration::from_secs(900)).await;
        room.rotate(u32::try_from(room.here()).unwrap());
        room.api.clear_faults();
        room.run_for(Duration::from_secs(400)).await;
        room.assert_current("db", "db");
        assert_eq!(room.ready("db"), "True Synced", "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_apart() {
    let room = Room::with_db(db()).await;
    room.api.apply(&build::secret("team", "token").key("token", "fft_canary-team"));
    room.api.apply(&build::connection("team", "conn").url("http://127.0.0.1:1").token_in("token", "token"));
    room.api.apply(&build::deployment("team", "api"));
    room.api.apply(&build::deployment(NS, "api"));
    room.vault.set("team", "KEY", VALUE);
    let rollouts = Rollouts::watch(&room.api);
    room.api.apply(&build::fvs("team", "db").through("conn").vault("team").every("1m").restarts("Deployment", "api"));
    room.rest().await;
    let before = room.here();
    room.vault.set("team", "KEY", format!("{VALUE}-2"));
    room.run_for(Duration::from_secs(67)).await;
    assert_eq!(rollouts.of("api"), 1);
    let calls = room.calls_since(before);
    assert!(calls.iter().all(|call| call.contains(" team/")), "nothing of another namespace is touched: {calls:?}");
    room.assert_current("db", "db");
}
