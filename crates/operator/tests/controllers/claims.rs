//! One Secret that several resources name and nobody owns just then: whoever has kept it makes it again, and nobody steps
//! in with other values.

use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_testkit::{Fault, build};
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::room::{NS, Room, TOKEN};

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m")
}

/// Two resources that name one Secret, of different vaults; the older one has kept it and is suspended.
async fn rivals() -> Room {
    let room = Room::with_db(db().target("shared")).await;
    room.vault.set("other", "USER", "canary-other");
    room.run_for(Duration::from_secs(2)).await;
    room.api.apply(&build::fvs(NS, "other").through("conn").vault("other").target("shared").every("10h"));
    room.rest().await;
    assert_eq!((room.ready("db").as_str(), room.ready("other").as_str()), ("True Synced", "False TargetConflict"));
    room.api.edit::<FerrVaultSecret>(NS, "db", |object| object["spec"]["suspend"] = true.into());
    room.rest().await;
    room
}

#[tokio::test(start_paused = true)]
async fn nobody_steps_in_for_a_keeper_that_cannot_write_just_then() {
    let room = rivals().await;
    room.api.delete::<Secret>(NS, "shared");
    room.run_for(Duration::from_hours(24)).await;
    assert!(room.secret("shared").is_none(), "pods of db would start with the content of another vault");
    let message = room.condition("other", "Ready").message;
    assert!(message.contains("is kept by FerrVaultSecret \"db\", which has written it before"), "{message}");
    room.api.edit::<FerrVaultSecret>(NS, "db", |object| object["spec"]["suspend"] = false.into());
    room.rest().await;
    room.assert_current("shared", "db");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_its_keeper_gives_up_goes_to_the_next_at_once() {
    for give_up in [
        |room: &Room| room.api.delete::<FerrVaultSecret>(NS, "db"),
        |room: &Room| {
            room.api.edit::<FerrVaultSecret>(NS, "db", |object| object["spec"]["target"]["name"] = "own".into());
        },
    ] {
        let room = rivals().await;
        room.api.delete::<Secret>(NS, "shared");
        room.rest().await;
        assert_eq!(room.ready("other"), "False TargetConflict");
        give_up(&room);
        room.rest().await;
        assert_eq!(room.ready("other"), "True Synced", "{}", room.api.story());
        room.assert_current("shared", "other");
    }
}

/// `db` keeps Secret `shared`; `old`, which is older and has kept another Secret until now, was edited onto the same name
/// and is refused it.
async fn edited_onto() -> Room {
    let room = Room::started().await;
    room.vault.set("other", "USER", "canary-other");
    room.api.apply(&build::fvs(NS, "old").through("conn").vault("other").target("one").every("10h"));
    room.run_for(Duration::from_secs(2)).await;
    room.api.apply(&db().target("shared"));
    room.rest().await;
    assert_eq!((room.ready("old").as_str(), room.ready("db").as_str()), ("True Synced", "True Synced"));
    room.api.edit::<FerrVaultSecret>(NS, "old", |object| object["spec"]["target"]["name"] = "shared".into());
    room.rest().await;
    assert_eq!((room.ready("old").as_str(), room.ready("db").as_str()), ("False TargetConflict", "True Synced"));
    room.assert_current("shared", "db");
    room
}

#[tokio::test(start_paused = true)]
async fn who_never_wrote_a_secret_does_not_keep_its_keeper_from_making_it_again() {
    let room = edited_onto().await;
    room.api.edit::<FerrVaultSecret>(NS, "old", |object| object["spec"]["suspend"] = true.into());
    room.rest().await;
    assert_eq!(room.ready("old"), "False Suspended");
    room.api.delete::<Secret>(NS, "shared");
    room.run_for(Duration::from_hours(24)).await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.condition("db", "Ready").message);
    room.assert_current("shared", "db");
}

#[tokio::test(start_paused = true)]
async fn who_never_wrote_a_secret_does_not_take_it_over() {
    let room = edited_onto().await;
    room.api.edit::<FerrVaultSecret>(NS, "old", |object| object["spec"]["suspend"] = true.into());
    room.rest().await;
    room.api.delete::<Secret>(NS, "shared");
    room.rest().await;
    room.api.edit::<FerrVaultSecret>(NS, "old", |object| object["spec"]["suspend"] = false.into());
    room.run_for(Duration::from_hours(24)).await;
    room.assert_current("shared", "db");
}

/// As `kubectl replace` with a file that has neither marks nor owners; then the advice of the message is followed.
#[tokio::test(start_paused = true)]
async fn a_keeper_whose_secret_was_replaced_and_then_deleted_makes_it_again() {
    let room = edited_onto().await;
    room.api.edit::<Secret>(NS, "shared", |object| {
        object["metadata"]["ownerReferences"] = json!([]);
        object["metadata"]["annotations"] = json!({});
    });
    room.rest().await;
    assert_eq!(room.ready("db"), "False TargetConflict");
    let message = room.condition("db", "Ready").message;
    assert!(message.contains("delete it"), "{message}");
    room.api.delete::<Secret>(NS, "shared");
    room.run_for(Duration::from_mins(1)).await;
    room.assert_current("shared", "db");
}

/// No conflict beforehand: an older resource is edited onto a name whose keeper cannot write just then.
#[tokio::test(start_paused = true)]
async fn an_older_resource_edited_onto_a_name_does_not_step_in_for_its_keeper() {
    let room = Room::started().await;
    room.vault.set("other", "USER", "canary-other");
    room.api.apply(&build::fvs(NS, "old").through("conn").vault("other").target("one").every("10h"));
    room.run_for(Duration::from_secs(2)).await;
    room.api.apply(&db().target("shared"));
    room.rest().await;
    room.api.edit::<FerrVaultSecret>(NS, "db", |object| object["spec"]["suspend"] = true.into());
    room.rest().await;
    room.api.delete::<Secret>(NS, "shared");
    room.rest().await;
    room.api.edit::<FerrVaultSecret>(NS, "old", |object| object["spec"]["target"]["name"] = "shared".into());
    room.run_for(Duration::from_hours(1)).await;
    assert!(room.secret("shared").is_none(), "pods of db would start with the content of another vault");
}

/// Passes of others per edit of one.
#[tokio::test(start_paused = true)]
async fn an_edit_of_one_that_is_refused_a_secret_starts_no_pass_of_all_others_that_are() {
    let room = Room::with_db(db().target("shared")).await;
    room.run_for(Duration::from_secs(2)).await;
    let names: Vec<String> = (0..30).map(|index| format!("r{index:02}")).collect();
    for name in &names {
        room.api.apply(&build::fvs(NS, name).through("conn").vault("db").target("shared").every("10h"));
    }
    room.run_for(Duration::from_secs(10)).await;
    let before = room.here();
    room.nudge_now("r07");
    room.run_for(Duration::from_secs(10)).await;
    let calls = room.calls_since(before);
    let writes = room.writes_since(before);
    assert!(writes.len() <= 3, "{} writes, {} calls for one edit of one: {writes:#?}", writes.len(), calls.len());
}

/// Another replica, which led until just now, writes the first status while this one reads.
#[tokio::test(start_paused = true)]
async fn nobody_is_told_that_a_resource_is_in_its_own_way() {
    let room = Room::started().await;
    room.vault.set("tokens", "token", TOKEN);
    room.on("GET secrets default/token", Fault::Slow(Duration::from_secs(2)));
    room.api.apply(&build::fvs(NS, "rotator").through("conn").vault("tokens").target("token"));
    room.run_for(Duration::from_secs(3)).await;
    room.api.edit_status::<FerrVaultSecret>(NS, "rotator", |object| {
        object["status"]["contentHash"] = format!("v1.{}.{}.{}", "0".repeat(8), "0".repeat(16), "0".repeat(32)).into();
    });
    room.run_for(Duration::from_mins(10)).await;
    let events = room.events("rotator");
    assert!(!events.iter().any(|event| event.contains("TargetConflict")), "{events:?} {}", room.ready("rotator"));
}
