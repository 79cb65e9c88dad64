//! From watches to passes: what a broken, late or repeated watch makes of them. Nothing is missed for good, and a watch
//! that begins anew is no news.

use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_testkit::{Break, EventFault, build};
use k8s_openapi::api::core::v1::Secret;

use crate::invariants::OPERATOR;
use crate::room::{NS, Room};

const KINDS: [&str; 3] = ["ferrvaultsecrets.ferrvault.com", "ferrvaultconnections.ferrvault.com", "secrets"];

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10h")
}

fn of_resource(mut calls: Vec<String>) -> Vec<String> {
    calls.retain(|call| !call.contains("ferrvaultconnections") && !call.starts_with("LIST"));
    calls
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_begins_anew_starts_no_pass() {
    for kind in KINDS {
        for how in [Break::Close, Break::Reset, Break::Expire, Break::Silent] {
            let room = Room::with_db(db()).await;
            // The first list of Secrets may have come before the connection that makes one of them a token.
            room.api.break_watches(Break::Expire, |watch| watch.who == OPERATOR);
            room.run_for(Duration::from_secs(60)).await;
            let (reports, probes) = (room.reports("db").len(), room.vault.health_checks());
            let broken = room.api.break_watches(how, |watch| watch.who == OPERATOR && watch.resource == kind);
            assert_eq!(broken, 1);
            room.run_for(Duration::from_secs(240)).await;
            assert_eq!(room.reports("db").len(), reports, "{kind}, {how:?}\n{}", room.api.story());
            assert_eq!(room.vault.health_checks(), probes, "{kind}, {how:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_a_watch_is_broken_is_noticed_after_it() {
    type Change = (&'static str, &'static str, fn(&Room), fn(&Room) -> bool);
    let changes: [Change; 6] = [
        (
            "a resource is made",
            KINDS[0],
            |room| {
                room.api.apply(&build::fvs(NS, "second").through("conn").vault("db"));
            },
            |room| room.secret("second").is_some(),
        ),
        (
            "a resource is edited",
            KINDS[0],
            |room| {
                room.api.apply(&db().names(&["USER"]));
            },
            |room| room.data("db").len() == 1,
        ),
        (
            "a connection is edited",
            KINDS[1],
            |room| {
                room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
                    object["spec"]["url"] = "http://127.0.0.1:9".into();
                });
            },
            |room| room.vault.last_endpoint().starts_with("http://127.0.0.1:9"),
        ),
        (
            "a target is edited",
            KINDS[2],
            |room| {
                room.api.edit::<Secret>(NS, "db", |object| object["data"]["PASSWORD"] = "Y2FuYXJ5".into());
            },
            |room| room.data("db") == room.vault.holds("db"),
        ),
        (
            "a target is deleted",
            KINDS[2],
            |room| room.api.delete::<Secret>(NS, "db"),
            |room| room.secret("db").is_some(),
        ),
        (
            "a token is deleted",
            KINDS[2],
            |room| room.api.delete::<Secret>(NS, "token"),
            |room| room.ready("db") == "False TokenUnreadable",
        ),
    ];
    for (case, kind, change, noticed) in changes {
        for how in [Break::Close, Break::Reset, Break::Expire, Break::Silent] {
            let room = Room::with_db(db()).await;
            room.api.break_watches(how, |watch| watch.who == OPERATOR && watch.resource == kind);
            change(&room);
            if how == Break::Expire {
                // What would tell is no longer in the history: only a list can.
                room.api.compact();
            }
            room.run_for(Duration::from_secs(180)).await;
            assert!(noticed(&room), "{case}, {how:?}\n{}", room.api.story());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_come_twice_or_late_cost_nothing() {
    let mut calls = Vec::new();
    for fault in [EventFault::None, EventFault::Twice, EventFault::Late(Duration::from_secs(20))] {
        let room = Room::started().await;
        room.api.on_event(move |_| fault);
        room.api.apply(&build::deployment(NS, "api"));
        room.api.apply(&db().restarts("Deployment", "api"));
        room.run_for(Duration::from_secs(60)).await;
        room.rotate(2);
        room.nudge_now("db");
        room.run_for(Duration::from_secs(60)).await;
        assert_eq!(room.ready("db"), "True Synced", "{fault:?}");
        room.assert_current("db", "db");
        let mut made = of_resource(room.calls_since(0));
        made.sort();
        calls.push((fault, made));
    }
    for (fault, made) in &calls[1..] {
        assert_eq!(made, &calls[0].1, "{fault:?} costs what no fault costs");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_event_is_made_up_for_by_the_next_refresh() {
    let room = Room::with_db(db().every("10m")).await;
    room.api.on_event(|event| if event.resource == "secrets" { EventFault::Dropped } else { EventFault::None });
    room.api.edit::<Secret>(NS, "db", |object| object["data"]["PASSWORD"] = "Y2FuYXJ5".into());
    room.api.delete::<Secret>(NS, "token");
    room.run_for(Duration::from_secs(660)).await;
    assert_eq!(room.ready("db"), "False TokenUnreadable");
    room.api.apply(&build::secret(NS, "token").key("token", crate::room::TOKEN));
    room.run_for(Duration::from_secs(660)).await;
    room.assert_current("db", "db");
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_edits_is_few_passes() {
    let room = Room::with_db(db()).await;
    let before = room.reports("db").len();
    for turn in 0..200 {
        room.api.edit::<FerrVaultSecret>(NS, "db", |object| {
            object["spec"]["refreshInterval"] = format!("{}m", 600 + turn).into();
        });
    }
    room.rest().await;
    let passes = room.reports("db").len() - before;
    assert!((1..=3).contains(&passes), "{passes} passes for 200 edits at once");
    assert_eq!(room.status("db").observed_generation, room.fvs("db").unwrap().metadata.generation);
}
