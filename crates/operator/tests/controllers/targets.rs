//! Targets that somebody took away, edited, made immutable or wants as well: whose they are, what is said of them while
//! their values are not to be had, and that nobody steps in with other values.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_operator::ferrvault::OidcLimits;
use ferrvault_testkit::build;
use ferrvault_vault::AllowedUrl;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::room::{NS, Room};
use crate::script::{self, Mood};

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

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_lost_while_ferrvault_is_away_ends_ready_and_is_named() {
    for (lose, named) in [
        (
            (|room: &Room| room.api.delete::<Secret>(NS, "db")) as fn(&Room),
            "Secret \"db\" was deleted and is made again with the next answer",
        ),
        (
            |room: &Room| {
                room.api.edit::<Secret>(NS, "db", |object| object["data"]["USER"] = "Y2FuYXJ5".into());
            },
            "Secret \"db\" was edited and is put right with the next answer",
        ),
    ] {
        let room = Room::with_db(db()).await;
        room.vault.always("db", Some(Mood::Fails(script::failing())));
        lose(&room);
        room.rest().await;
        assert_eq!(room.ready("db"), "False Unreachable", "{}", room.api.story());
        let message = room.condition("db", "Ready").message;
        assert!(message.contains(named) && message.contains("last synced at"), "{message}");
        assert_eq!(room.events("db").last().map(String::as_str), Some("Warning Unreachable"));
        room.vault.always("db", None);
        room.run_for(Duration::from_mins(6)).await;
        assert_eq!(room.ready("db"), "True Synced");
        room.assert_current("db", "db");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_bearer_to_ask_with_a_lost_secret_is_named_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let claims = URL_SAFE_NO_PAD.encode(r#"{"aud":"https://ferrflow.com"}"#);
    std::fs::write(&path, format!("e30.{claims}.c2ln")).unwrap();
    let mut room = Room::new();
    let origins = vec![AllowedUrl::parse("http://127.0.0.1:1").unwrap()];
    room.oidc = OidcLimits { token_dir: folder.path().to_owned(), origins };
    let oidc = json!({ "clusterID": "6f1c8a52-7d0e-4a55-9c52-3f6b1d2e4f60", "tokenPath": path });
    room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
        object["spec"]["oidc"] = oidc;
        object["spec"].as_object_mut().unwrap().remove("tokenSecretRef");
    });
    room.start().await;
    room.api.apply(&db());
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());

    room.vault.ill(Some(script::failing()));
    room.api.edit::<FerrVaultSecret>(NS, "db", |object| {
        object["metadata"]["annotations"] = json!({ "ferrvault.com/refresh": "1" });
    });
    room.rest().await;
    assert_eq!(room.ready("db"), "True Unreachable", "{}", room.condition("db", "Ready").message);
    room.api.delete::<Secret>(NS, "db");
    room.rest().await;
    assert_eq!(room.ready("db"), "False Unreachable", "{}", room.api.story());
    let message = room.condition("db", "Ready").message;
    assert!(message.contains("Secret \"db\" was deleted and is made again"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_immutable_secret_keeps_its_content_and_the_message_says_how_to_have_it_made_anew() {
    let room = Room::with_db(db()).await;
    room.api.edit::<Secret>(NS, "db", |object| object["immutable"] = true.into());
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced", "nothing is to be written");
    let (before, seen) = (room.data("db"), room.here());
    room.rotate(2);
    room.nudge("db").await;
    assert_eq!(room.ready("db"), "False SecretWriteFailed");
    let message = room.condition("db", "Ready").message;
    assert!(message.contains("is immutable") && message.contains("kubectl delete secret db -n default"), "{message}");
    assert!(room.writes_since(seen).iter().all(|call| !call.starts_with("PATCH secrets")), "it could only be refused");
    assert_eq!(room.data("db"), before);
    room.api.delete::<Secret>(NS, "db");
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced");
    room.assert_current("db", "db");
}
