//! Two replicas that stand by for each other: one works, the other could at once; whatever happens to the one that works,
//! each rotation restarts each workload once.
//!
//! The times are measured and printed. What the lease's own arithmetic promises is asserted where time is paused, in the
//! operator's tests; here only with a factor that no busy machine reaches.

use std::time::{Duration, Instant};

use ferrvault_e2e::audit::Request;
use ferrvault_e2e::eventually::SOON;
use ferrvault_e2e::own::{Own, rules_for};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::storm::field::Field;
use ferrvault_e2e::storm::fleet::Fleet;
use ferrvault_e2e::wire::Wire;
use ferrvault_e2e::world::World;
use rustix::process::Signal;

use crate::register::{apart, scenarios};

/// Resources to rotate: a debug build needs a second for them, in which it is met in the middle.
const RESOURCES: usize = 40;

/// Rotations within which one has to be met in the middle.
const ROTATIONS: usize = 5;

/// Four times the 15 s after which a lease that shows no renewal is taken.
const TAKEN_OVER: Duration = Duration::from_mins(1);

/// Whether this replica leads.
const LEADS: &str = "ferrvault_operator_leader";
/// How often it stopped leading without giving the lease back.
const LOSSES: &str = "ferrvault_operator_leader_losses_total";

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    scenarios![apart:
        a_standby_is_green_and_takes_over_after_a_kill_and_at_once_after_an_orderly_end,
        a_rolling_update_in_the_middle_of_a_rotation_loses_and_doubles_nothing,
        a_leader_that_wakes_after_another_took_over_doubles_nothing_and_writes_over_nothing,
        a_leader_that_may_not_write_its_lease_stands_by_and_leads_again,
        a_leader_that_is_cut_off_is_replaced_and_leads_again,
    ]
}

/// Two operators that reach the API server directly.
async fn two(own: &Own) -> Fleet<'_> {
    let server = own.scene.cluster.plane.server();
    let mut fleet = Fleet::new(own, &[&server, &server]).await;
    fleet.start_all().await;
    fleet
}

/// All is done, nothing too often, and nobody ended by itself.
async fn exact(field: &Field<'_>, fleet: &mut Fleet<'_>) {
    let faults = field.settle(SOON, &|_| {}).await;
    assert!(faults.is_empty(), "{} faults, the first: {}", faults.len(), faults[0]);
    assert_eq!(fleet.take_ended().await, Vec::<String>::new());
}

/// Rotates until some workloads are restarted and others are not; gives up the rotation that was done before anybody saw it.
async fn until_the_middle(field: &Field<'_>, fleet: &mut Fleet<'_>) {
    for _ in 0..ROTATIONS {
        field.rotate().await;
        let started = Instant::now();
        while field.restarted() < RESOURCES / 5 {
            assert!(started.elapsed() < SOON, "nothing is restarted");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if field.restarted() < RESOURCES * 4 / 5 {
            return;
        }
        exact(field, fleet).await;
    }
    panic!("{ROTATIONS} rotations were over before they were seen");
}

async fn until_metric(own: &Own, fleet: &Fleet<'_>, slot: usize, name: &str, wanted: f64) {
    own.scene
        .until(&format!("{name} of {} is {wanted}", fleet.pod(slot)), async || {
            let value = fleet.metric(slot, name).await;
            let is_wanted = value.is_some_and(|value| (value - wanted).abs() < 0.5);
            if is_wanted { Ok(()) } else { Err(format!("{value:?}")) }
        })
        .await;
}

/// Both probes say yes, and the metrics say who it is.
async fn is_green(own: &Own, fleet: &Fleet<'_>, slot: usize, leads: f64) {
    fleet.operator(slot).ready().await.unwrap();
    assert_eq!(fleet.operator(slot).probe("healthz").await.unwrap().0, 200);
    until_metric(own, fleet, slot, LEADS, leads).await;
}

async fn a_standby_is_green_and_takes_over_after_a_kill_and_at_once_after_an_orderly_end(own: &Own) {
    let mut fleet = two(own).await;
    let field = Field::sow(own, 4).await;
    exact(&field, &mut fleet).await;
    let leader = fleet.leader().await;
    is_green(own, &fleet, leader, 1.0).await;
    is_green(own, &fleet, 1 - leader, 0.0).await;

    fleet.kill(leader).await;
    let killed = Instant::now();
    let next = fleet.leader_after(leader).await;
    let after_a_kill = killed.elapsed();
    assert!(after_a_kill < TAKEN_OVER, "{after_a_kill:?}");
    field.rotate().await;
    exact(&field, &mut fleet).await;

    fleet.start(leader).await;
    is_green(own, &fleet, leader, 0.0).await;
    let told = Instant::now();
    fleet.stop(next).await;
    let ended = Instant::now();
    fleet.leader_after(next).await;
    let (after_the_end, after_being_told) = (ended.elapsed(), told.elapsed());
    assert!(after_being_told < Duration::from_secs(12), "as if it had been killed: {after_being_told:?}");
    field.rotate().await;
    exact(&field, &mut fleet).await;
    println!(
        "taken over {:.1} s after a kill; {:.1} s after the end of who was told to end, {:.1} s after it was told",
        after_a_kill.as_secs_f64(),
        after_the_end.as_secs_f64(),
        after_being_told.as_secs_f64()
    );
}

async fn a_rolling_update_in_the_middle_of_a_rotation_loses_and_doubles_nothing(own: &Own) {
    let mut fleet = two(own).await;
    let field = Field::sow(own, RESOURCES).await;
    exact(&field, &mut fleet).await;
    // Standby first, so that the leader is told to end while it works, with both others new.
    let leader = fleet.leader().await;
    fleet.replace(1 - leader, async |_| {}).await;
    fleet.replace(leader, async |fleet| until_the_middle(&field, fleet).await).await;
    exact(&field, &mut fleet).await;
    field.look_again(SOON, &|_| {}).await;
    exact(&field, &mut fleet).await;
}

/// What an operator wrote after `since`, refused calls left out.
fn written(own: &Own, fleet: &Fleet<'_>, slot: usize, since: jiff::Timestamp) -> Vec<Request> {
    let credential = fleet.credential(slot);
    let mut requests = own.scene.cluster.requests_of(&own.release.user());
    requests.retain(|it| it.credential.as_ref() == Some(&credential) && it.received.is_some_and(|at| at > since));
    assert!(requests.iter().any(|it| it.resource == "leases"), "{} asks for nothing", fleet.pod(slot));
    requests.retain(Request::is_accepted_write);
    requests
}

/// Stops the leader in the middle of a rotation until another has taken over; the slots of both.
async fn freeze(field: &Field<'_>, fleet: &mut Fleet<'_>) -> (usize, usize) {
    let former = fleet.leader().await;
    until_the_middle(field, fleet).await;
    fleet.operator(former).process().signal(Signal::STOP);
    let stopped = Instant::now();
    let present = fleet.leader_after(former).await;
    assert!(stopped.elapsed() < TAKEN_OVER, "{:?}", stopped.elapsed());
    println!("taken over {:.1} s after the leader was stopped", stopped.elapsed().as_secs_f64());
    (former, present)
}

async fn a_leader_that_wakes_after_another_took_over_doubles_nothing_and_writes_over_nothing(own: &Own) {
    let mut fleet = two(own).await;
    let field = Field::sow(own, RESOURCES).await;
    exact(&field, &mut fleet).await;

    // Awake again while the other is in the middle of it: a call that was on its way may still arrive, and counts only if
    // nobody was there before.
    let (former, present) = freeze(&field, &mut fleet).await;
    let woken = jiff::Timestamp::now();
    fleet.operator(former).process().signal(Signal::CONT);
    until_metric(own, &fleet, former, LOSSES, 1.0).await;
    exact(&field, &mut fleet).await;
    let (late, timely) = (written(own, &fleet, former, woken), written(own, &fleet, present, jiff::Timestamp::MIN));
    for late in late.iter().filter(|it| matches!(it.group.as_str(), "" | "apps")) {
        let same = |it: &&Request| (&it.resource, &it.name) == (&late.resource, &late.name);
        // Of the present leader's writes only those of this term count; it may have led before.
        let over = timely.iter().filter(same).find(|it| it.received < late.received && it.received > Some(woken));
        assert_eq!(over, None, "written over by who does not lead: {late:?}");
    }
    assert!(late.iter().all(|it| it.resource != "events"), "told by who does not lead: {late:?}");

    // Awake again when the other is done: nothing that it writes can be accepted any more.
    let (former, _) = freeze(&field, &mut fleet).await;
    exact(&field, &mut fleet).await;
    let woken = jiff::Timestamp::now();
    fleet.operator(former).process().signal(Signal::CONT);
    until_metric(own, &fleet, former, LOSSES, 1.0).await;
    field.look_again(SOON, &|_| {}).await;
    exact(&field, &mut fleet).await;
    is_green(own, &fleet, former, 0.0).await;
    let late: Vec<String> = written(own, &fleet, former, woken).iter().map(Request::told).collect();
    assert_eq!(late, Vec::<String>::new(), "written by who does not lead");
}

async fn a_leader_that_may_not_write_its_lease_stands_by_and_leads_again(own: &Own) {
    let server = own.scene.cluster.plane.server();
    let mut fleet = Fleet::new(own, &[&server]).await;
    fleet.start_all().await;
    until_metric(own, &fleet, 0, LEADS, 1.0).await;
    let field = Field::sow(own, 4).await;
    exact(&field, &mut fleet).await;
    let pid = fleet.operator(0).process().pid();

    own.change_rights_at_home(|rules| {
        rules_for(rules, "leases").for_each(|rule| rule.verbs.retain(|verb| verb != "update"));
        rules.retain(|rule| !rule.verbs.is_empty());
    })
    .await;
    until_metric(own, &fleet, 0, LOSSES, 1.0).await;
    is_green(own, &fleet, 0, 0.0).await;
    // Nobody leads, so nothing is restarted; it comes when somebody does.
    field.rotate().await;
    own.change_rights_at_home(|rules| {
        rules_for(rules, "leases").filter(|rule| rule.resource_names.is_some()).for_each(|rule| {
            rule.verbs.push("update".to_owned());
        });
    })
    .await;
    until_metric(own, &fleet, 0, LEADS, 1.0).await;
    exact(&field, &mut fleet).await;
    until_metric(own, &fleet, 0, LOSSES, 1.0).await;
    assert_eq!(fleet.operator(0).process().pid(), pid, "the same process all the time");
}

async fn a_leader_that_is_cut_off_is_replaced_and_leads_again(own: &Own) {
    let server = own.scene.cluster.plane.server();
    let wire = Wire::to(&server).await;
    let mut fleet = Fleet::new(own, &[wire.url(), &server]).await;
    fleet.start(0).await;
    until_metric(own, &fleet, 0, LEADS, 1.0).await;
    fleet.start(1).await;
    let field = Field::sow(own, RESOURCES).await;
    exact(&field, &mut fleet).await;
    assert_eq!(fleet.leader().await, 0);

    until_the_middle(&field, &mut fleet).await;
    wire.cut();
    let cut = Instant::now();
    assert_eq!(fleet.leader_after(0).await, 1);
    assert!(cut.elapsed() < TAKEN_OVER, "{:?}", cut.elapsed());
    println!("taken over {:.1} s after the leader was cut off", cut.elapsed().as_secs_f64());
    until_metric(own, &fleet, 0, LOSSES, 1.0).await;
    assert_eq!(fleet.operator(0).probe("healthz").await.unwrap().0, 200, "a restart cures nothing here");
    exact(&field, &mut fleet).await;

    wire.calm();
    is_green(own, &fleet, 0, 0.0).await;
    fleet.stop(1).await;
    until_metric(own, &fleet, 0, LEADS, 1.0).await;
    field.rotate().await;
    exact(&field, &mut fleet).await;
}
