//! A leader whose right to lead ends under its passes, as after a freeze: another replica does them, so what this one ran
//! into is neither an error nor news.

use std::time::Duration;

use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::leader::{Candidate, Elector, LeaseTimes};
use ferrvault_testkit::{Fault, build};
use tokio_util::sync::CancellationToken;

use crate::invariants::OPERATOR;
use crate::room::{NS, Room};
use crate::script::Mood;

/// The elector's identity: its calls can be cut off without those of the passes.
const ELECTOR: &str = "elector";

/// A synced resource `db` with a Deployment, and an operator that leads by a lease.
async fn led_by_a_lease(deadline: Duration) -> Room {
    let mut room = Room::new();
    room.deadline = deadline;
    let candidate = Candidate {
        namespace: "ferrvault-system".to_owned(),
        lease: "lease".to_owned(),
        pod: ELECTOR.to_owned(),
        times: LeaseTimes::default(),
    };
    let client = room.api.client_as(ELECTOR);
    let (elector, leadership) = Elector::new(client, candidate, room.clock.clone(), &Entropy::seeded(7));
    tokio::spawn(elector.run(CancellationToken::new()));
    room.leadership = leadership;
    room.api.apply(&build::deployment(NS, "api"));
    room.start().await;
    room.run_for(Duration::from_secs(5)).await;
    room.api.apply(&build::fvs(NS, "db").through("conn").vault("db").every("10h").restarts("Deployment", "api"));
    room.run_for(Duration::from_secs(5)).await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
    room
}

/// Nothing of the elector gets through any more, and `fault` is put on calls of the operator like this one.
fn lapses(room: &Room, summary: &'static str, fault: Fault) {
    room.api.on_call(move |call| match call.who.as_str() {
        ELECTOR => Fault::LostRequest,
        OPERATOR if call.summary() == summary => fault.clone(),
        _ => Fault::None,
    });
}

/// Every error and every cut that was counted.
fn counted(room: &Room) -> Vec<String> {
    let page = room.metrics.text().unwrap();
    let families = [
        "ferrvault_secret_sync_errors_total{",
        "controller_runtime_reconcile_timeouts_total{",
        "controller_runtime_reconcile_errors_total{",
    ];
    let lines = page.lines().filter(|line| families.iter().any(|family| line.starts_with(family)));
    lines.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_pass_runs_into_after_its_right_to_lead_has_ended_is_no_error_and_no_news() {
    let cases: [(&str, u64, fn(&Room)); 4] = [
        ("FerrVault says no, late", 120, |room| {
            lapses(room, "", Fault::None);
            room.vault.remove("db");
            room.vault.next("db", Mood::Late(Duration::from_secs(30)));
        }),
        ("FerrVault never answers", 30, |room| {
            lapses(room, "", Fault::None);
            room.vault.next("db", Mood::Stalls);
        }),
        ("the token cannot be read before the deadline", 8, |room| {
            lapses(room, "GET secrets default/token", Fault::LostRequest);
        }),
        ("the workload is to be stamped", 120, |room| {
            lapses(room, "PATCH secrets default/db", Fault::Slow(Duration::from_millis(9_500)));
            room.rotate(2);
        }),
    ];
    for (case, deadline, lapse) in cases {
        let room = led_by_a_lease(Duration::from_secs(deadline)).await;
        let (events, before) = (room.events("db"), counted(&room));
        lapse(&room);
        room.run_for(Duration::from_secs(3)).await;
        room.nudge_now("db");
        room.api.edit::<ferrvault_api::FerrVaultConnection>(NS, "conn", |object| {
            object["spec"]["allowInsecureHTTP"] = true.into();
        });
        room.run_for(Duration::from_secs(100)).await;
        assert!(!room.leadership.is_leader_now(), "{case}");
        assert_eq!(counted(&room), before, "{case}\n{}", room.api.story());
        assert_eq!(room.events("db"), events, "{case}\n{}", room.api.story());
    }
}
