//! How long a change took: counted once per change, however many passes it needed, and not guessed.

use std::time::Duration;

use ferrvault_testkit::build;

use crate::room::{NS, Room};

const WRITTEN: &str = "ferrvault_secret_propagation_seconds_count{stage=\"written\"}";
const RESTARTED: &str = "ferrvault_secret_propagation_seconds_count{stage=\"restarted\"}";
const TOOK: &str = "ferrvault_secret_propagation_seconds_sum{stage=\"restarted\"}";

const MINUTE: Duration = Duration::from_mins(1);

/// A resource that restarts a Deployment, synced; its creation has been counted as written.
async fn room() -> Room {
    let room = Room::started().await;
    room.api.apply(&build::deployment(NS, "api"));
    room.api.apply(&build::fvs(NS, "db").through("conn").vault("db").every("1m").restarts("Deployment", "api"));
    room.rest().await;
    assert_eq!((room.metric(WRITTEN), room.metric(RESTARTED)), (1.0, 0.0), "{}", room.api.story());
    room
}

#[tokio::test(start_paused = true)]
async fn a_rotation_is_written_and_restarted_once_within_a_second() {
    let room = room().await;
    room.run_for(3 * MINUTE).await;
    assert_eq!((room.metric(WRITTEN), room.metric(RESTARTED)), (1.0, 0.0), "what does not change is not counted");
    room.rotate(2);
    room.run_for(2 * MINUTE).await;
    assert_eq!((room.metric(WRITTEN), room.metric(RESTARTED)), (2.0, 1.0));
    assert!(room.metric(TOOK) < 1.0, "{}", room.metric(TOOK));
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_is_refused_for_a_while_counts_from_the_change_on() {
    let room = room().await;
    room.api.deny(crate::invariants::OPERATOR, "patch", "deployments");
    room.rotate(2);
    room.run_for(11 * MINUTE).await;
    assert_eq!((room.metric(WRITTEN), room.metric(RESTARTED)), (2.0, 0.0));
    room.api.allow_again(crate::invariants::OPERATOR, "patch", "deployments");
    room.run_for(6 * MINUTE).await;
    assert_eq!((room.metric(WRITTEN), room.metric(RESTARTED)), (2.0, 1.0), "{}", room.api.story());
    let took = room.metric(TOOK);
    assert!((590.0..17.0 * 60.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_of_the_process_the_status_tells_since_when() {
    let mut room = room().await;
    room.api.deny(crate::invariants::OPERATOR, "patch", "deployments");
    room.rotate(2);
    room.run_for(11 * MINUTE).await;
    room.kill();
    room.api.allow_again(crate::invariants::OPERATOR, "patch", "deployments");
    room.start().await;
    assert_eq!(room.metric(RESTARTED), 1.0, "{}", room.api.story());
    let took = room.metric(TOOK);
    assert!((590.0..720.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_change_without_workloads_is_written_and_restarts_nothing() {
    let room = Room::with_db(build::fvs(NS, "db").through("conn").vault("db").every("1m")).await;
    room.rotate(2);
    room.run_for(2 * MINUTE).await;
    assert_eq!((room.metric(WRITTEN), room.metric(RESTARTED)), (2.0, 0.0), "{}", room.api.story());
}
