//! A resource whose target is the connection's own token Secret: the token rotates itself, and must never lock itself out.

use std::time::Duration;

use ferrvault_api::{FerrVaultSecret, marks};
use ferrvault_testkit::build;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::room::{NS, Room, TOKEN};

fn rotator() -> build::Built {
    build::fvs(NS, "rotator").through("conn").vault("tokens").target("token")
}

async fn room() -> Room {
    let room = Room::started().await;
    room.vault.set("tokens", "token", TOKEN);
    room
}

fn owners(room: &Room) -> usize {
    room.secret("token").unwrap().metadata.owner_references.unwrap_or_default().len()
}

#[tokio::test(start_paused = true)]
async fn it_is_written_without_an_owner_and_without_an_echo() {
    let room = room().await;
    room.api.apply(&build::fvs(NS, "db").through("conn").vault("db"));
    room.api.apply(&rotator());
    room.run_for(Duration::from_secs(5)).await;
    assert_eq!(room.ready("rotator"), "True Synced", "{}", room.api.story());
    assert_eq!(owners(&room), 0, "it outlives the resource");
    assert_eq!(room.secret("token").unwrap().metadata.annotations.unwrap()[marks::MANAGED_BY], marks::MANAGER);
    let before = room.here();
    room.run_for(Duration::from_secs(300)).await;
    assert_eq!(room.calls_since(before), Vec::<String>::new(), "{}", room.api.story());

    room.vault.set("tokens", "token", "fft_canary-next");
    let (reports, probes) = (room.reports("db").len(), room.vault.health_checks());
    room.nudge("rotator").await;
    room.assert_current("token", "tokens");
    assert_eq!(owners(&room), 0);
    assert_eq!(room.reports("db").len(), reports + 1, "whoever uses the token gets a pass with the new one");
    assert_eq!(room.vault.health_checks(), probes + 1, "and the connection a probe");
    assert_eq!(room.reports("rotator").len(), 2, "but its own write is no news: {}", room.api.story());

    room.api.delete::<FerrVaultSecret>(NS, "rotator");
    room.run_for(Duration::from_secs(5)).await;
    assert!(room.secret("token").is_some());
}

#[tokio::test(start_paused = true)]
async fn an_owner_from_before_is_removed() {
    let room = room().await;
    let resource = room.api.apply(&rotator().every("0s"));
    room.rest().await;
    room.api.edit::<Secret>(NS, "token", |secret| {
        secret["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret", "name": "rotator",
            "uid": resource["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }]);
    });
    room.rest().await;
    assert_eq!(owners(&room), 0, "{}", room.api.story());
    assert_eq!(room.ready("rotator"), "True Synced");
}

#[tokio::test(start_paused = true)]
async fn it_is_not_written_without_the_token() {
    for (case, value) in [("no such key", None), ("an empty token", Some(""))] {
        let room = Room::started().await;
        room.vault.set("tokens", "OTHER", "canary-other");
        if let Some(value) = value {
            room.vault.set("tokens", "token", value);
        }
        let before = room.secret("token");
        room.api.apply(&rotator().every("10m"));
        room.run_for(Duration::from_secs(3600)).await;
        assert_eq!(room.ready("rotator"), "False TokenKeyMissing", "{case}");
        let message = room.condition("rotator", "Ready").message;
        for part in ["\"token\"", "own token Secret", "is left alone", "choose another spec.target.name"] {
            assert!(message.contains(part), "{case}: {message:?} does not say {part:?}");
        }
        assert_eq!(room.secret("token"), before, "{case}");
        room.vault.set("tokens", "token", "fft_canary-next");
        room.run_for(Duration::from_secs(660)).await;
        assert_eq!(room.ready("rotator"), "True Synced", "{case}");
        room.assert_current("token", "tokens");
    }
}

#[tokio::test(start_paused = true)]
async fn two_resources_on_the_token_do_not_write_in_turns() {
    let room = room().await;
    room.vault.set("others", "token", "fft_canary-other");
    room.api.apply(&rotator().every("0s"));
    room.rest().await;
    room.run_for(Duration::from_secs(10)).await;
    room.api.apply(&build::fvs(NS, "second").through("conn").vault("others").target("token").every("0s"));
    room.run_for(Duration::from_secs(60)).await;
    let writes = room.times("PATCH secrets default/token").len();
    assert!(writes <= 2, "{writes} writes of the token Secret in a minute");
    room.assert_current("token", "tokens");
    assert_eq!(room.ready("rotator"), "True Synced");
    assert_eq!(room.ready("second"), "False TargetConflict");
    let message = room.condition("second", "Ready").message;
    assert!(message.contains("FerrVaultSecret \"rotator\""), "{message}");
    room.api.delete::<FerrVaultSecret>(NS, "rotator");
    room.api.apply(&build::fvs(NS, "second").through("conn").vault("others").target("token").every("0m"));
    room.rest().await;
    assert_eq!(room.ready("second"), "True Synced", "{}", room.api.story());
    room.assert_current("token", "others");
}
