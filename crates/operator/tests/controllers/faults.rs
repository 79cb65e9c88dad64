//! Every fault at every call: each story is told once without a fault, to count its calls, and then once for each fault
//! at each of them. However it went, in the end the Secret is current, each workload was restarted exactly as often as
//! the story asks for, the record is settled, and the next rotation is noticed by itself.

use std::fmt::Write as _;
use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_testkit::{Fault, Plan, build};
use k8s_openapi::api::core::v1::Secret;

use crate::invariants::OPERATOR;
use crate::legacy;
use crate::room::{NS, Rollouts, Room};

/// What happens in a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    /// A resource is made.
    Creation,
    /// A value changes.
    Rotation,
    /// A value changes, and no version is on record for the workloads: the resource is one of the Go operator's.
    RotationAfterUpgrade,
    /// Somebody edits the Secret.
    Repair,
    /// Somebody deletes the Secret.
    Deletion,
}

impl Story {
    /// What is there before it begins.
    async fn prepare(self) -> Room {
        let mut room = Room::new();
        room.api.apply(&build::deployment(NS, "api"));
        room.api.apply(&build::stateful_set(NS, "store"));
        match self {
            Self::Creation => room.start().await,
            Self::RotationAfterUpgrade => {
                // Still under the Go operator's marks when the value changes, so that the debt has to be recorded.
                let resource = legacy::stored(&room, resource());
                legacy::target(&room, &resource);
            }
            Self::Rotation | Self::Repair | Self::Deletion => {
                room.start().await;
                room.api.apply(&resource());
                room.rest().await;
            }
        }
        room
    }

    async fn begin(self, room: &mut Room) {
        match self {
            Self::Creation => {
                room.api.apply(&resource());
            }
            Self::Rotation => {
                room.rotate(2);
                room.api.edit::<FerrVaultSecret>(NS, "db", |object| object["spec"]["refreshInterval"] = "301s".into());
            }
            Self::RotationAfterUpgrade => {
                room.rotate(2);
                room.start().await;
            }
            Self::Repair => {
                room.api.edit::<Secret>(NS, "db", |object| object["data"]["PASSWORD"] = "Y2FuYXJ5LWVkaXRlZA==".into());
            }
            Self::Deletion => room.api.delete::<Secret>(NS, "db"),
        }
    }

    /// How often each workload is restarted in it.
    const fn restarts(self) -> u64 {
        match self {
            Self::Rotation | Self::RotationAfterUpgrade => 1,
            Self::Creation | Self::Repair | Self::Deletion => 0,
        }
    }
}

fn resource() -> build::Built {
    build::fvs(NS, "db")
        .through("conn")
        .vault("db")
        .every("5m")
        .restarts("Deployment", "api")
        .restarts("StatefulSet", "store")
}

/// Told with `fault` at call `at`, counted from the beginning of the story; `Err` says what is wrong at its end.
async fn told(story: Story, at: usize, fault: Fault) -> Result<(), String> {
    // "There is no such object" and an answer from the past are no faults to whoever asks for a token or a target: they
    // are believed until the next refresh. Everything else is over within seconds.
    let believed = matches!(fault, Fault::Refuse(404) | Fault::Stale(_));
    let wait = Duration::from_secs(if believed { 340 } else { 20 });
    let mut room = story.prepare().await;
    let rollouts = Rollouts::watch(&room.api);
    let before = room.secret("db").map(|_| room.version("db"));
    room.api.set_plan(Plan::new().at(room.here() + at, fault));
    story.begin(&mut room).await;
    room.run_for(Duration::from_secs(45)).await;
    if room.api.has_ended(OPERATOR) {
        room.kill();
        room.start().await;
    }
    room.run_for(wait).await;
    let mut wrong = String::new();
    at_rest(&room, &rollouts, story, before, &mut wrong);

    room.rotate(9);
    room.run_for(Duration::from_secs(340)).await;
    if room.data("db") != room.vault.holds("db") {
        let _ = writeln!(wrong, "asleep: the next rotation went unnoticed");
    }
    for workload in ["api", "store"] {
        if rollouts.of(workload) != story.restarts() + 1 {
            let _ = writeln!(wrong, "after the next rotation {workload} was restarted {}x", rollouts.of(workload));
        }
    }
    for violation in room.api.violations() {
        let _ = writeln!(wrong, "{violation}");
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let told = format!("{wrong}{}", room.api.story());
    // What its end would complain about is in here already.
    room.kill();
    std::mem::forget(room);
    Err(told)
}

fn at_rest(room: &Room, rollouts: &Rollouts, story: Story, before: Option<String>, wrong: &mut String) {
    if room.secret("db").is_none() || room.data("db") != room.vault.holds("db") {
        let _ = writeln!(wrong, "the Secret is not current");
        return;
    }
    for workload in ["api", "store"] {
        if rollouts.of(workload) != story.restarts() {
            let _ = writeln!(wrong, "{workload} was restarted {}x, not {}x", rollouts.of(workload), story.restarts());
        }
    }
    let (version, status) = (room.version("db"), room.status("db"));
    let kept = before.as_ref().is_none_or(|before| (*before == version) == (story.restarts() == 0));
    if !kept {
        let _ = writeln!(wrong, "the version went from {before:?} to {version}");
    }
    if [&status.last_rollout_hash, &status.content_hash] != [&Some(version.clone()), &Some(version.clone())] {
        let found = (&status.last_rollout_hash, &status.content_hash);
        let _ = writeln!(wrong, "the record is not settled: {version} on the Secret, {found:?} in the status");
    }
    let mut conditions: Vec<String> =
        status.conditions.iter().map(|c| format!("{} {} {}", c.type_, c.status, c.reason)).collect();
    conditions.sort();
    if conditions != ["Fresh True Current", "Ready True Synced", "RolloutRestarted True Restarted"] {
        let _ = writeln!(wrong, "the conditions say {conditions:?}");
    }
    if story.restarts() > 0 && status.last_changed_at.is_none() {
        let _ = writeln!(wrong, "the status does not say that the content changed");
    }
}

/// Tells `story` with each of `faults` at each of its calls.
async fn told_with(story: Story, faults: &[Fault]) {
    let calls = {
        let mut room = story.prepare().await;
        let before = room.here();
        story.begin(&mut room).await;
        room.rest().await;
        room.here() - before
    };
    assert!(calls >= 4, "a story of {calls} calls is none");
    let mut failed = Vec::new();
    for at in 1..=calls {
        for fault in faults {
            if let Err(wrong) = told(story, at, fault.clone()).await {
                failed.push(format!("{story:?}, call {at}: {fault}\n{wrong}"));
            }
        }
    }
    let count = failed.len();
    let first = failed.iter().take(2).cloned().collect::<Vec<_>>().join("\n\n");
    let names: Vec<&str> = failed.iter().filter_map(|text| text.lines().next()).collect();
    assert!(failed.is_empty(), "{count} of {} stories end badly:\n{names:#?}\n{first}", calls * faults.len());
}

#[tokio::test(start_paused = true)]
async fn a_creation_survives_every_fault_at_every_call() {
    told_with(Story::Creation, &Fault::every()).await;
}

#[tokio::test(start_paused = true)]
async fn a_rotation_survives_every_fault_at_every_call() {
    told_with(Story::Rotation, &Fault::every()).await;
}

#[tokio::test(start_paused = true)]
async fn a_rotation_after_an_upgrade_survives_every_fault_at_every_call() {
    // It begins with the start of an operator, so it has three times the calls of the others; codes differ in nothing here.
    let faults: Vec<Fault> =
        Fault::every().into_iter().filter(|fault| !matches!(fault, Fault::Refuse(400..=499))).collect();
    told_with(Story::RotationAfterUpgrade, &faults).await;
}

#[tokio::test(start_paused = true)]
async fn a_repair_survives_every_fault_at_every_call() {
    told_with(Story::Repair, &Fault::every()).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_by_hand_survives_every_fault_at_every_call() {
    told_with(Story::Deletion, &Fault::every()).await;
}
