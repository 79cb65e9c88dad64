//! Targets that somebody took away, edited, made immutable or took over while their values are not to be had: what is said
//! of them, and that no older success is left standing.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_operator::ferrvault::OidcLimits;
use ferrvault_testkit::{Fault, build};
use ferrvault_vault::AllowedUrl;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::invariants::OPERATOR;
use crate::legacy;
use crate::room::{NS, Room};
use crate::script::{self, Mood};

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m")
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_lost_while_ferrvault_is_away_ends_ready_and_is_named() {
    for (lose, named) in [
        (
            (|room: &Room| room.api.delete::<Secret>(NS, "db")) as fn(&Room),
            "Secret \"db\" was deleted meanwhile and is made again afterwards",
        ),
        (
            |room: &Room| {
                room.api.edit::<Secret>(NS, "db", |object| object["data"]["USER"] = "Y2FuYXJ5".into());
            },
            "Secret \"db\" was edited meanwhile and is put right afterwards",
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

/// The shortest deadline that settings admit, a slow API server and a slow FerrVault.
#[tokio::test(start_paused = true)]
async fn a_pass_that_saw_its_target_lost_and_was_cut_does_not_leave_ready_true() {
    let mut room = Room::new();
    room.deadline = Duration::from_secs(31);
    room.start().await;
    room.api.apply(&db());
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced");
    room.vault.always("db", Some(Mood::Late(Duration::from_secs(30))));
    room.on("GET secrets default/token", Fault::Slow(Duration::from_secs(5)));
    room.api.delete::<Secret>(NS, "db");
    room.run_for(Duration::from_mins(10)).await;
    assert_eq!(room.ready("db"), "False ReconcileTimeout", "{}", room.condition("db", "Ready").message);
}

async fn with_identity() -> (Room, tempfile::TempDir) {
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
    (room, folder)
}

#[tokio::test(start_paused = true)]
async fn without_a_bearer_to_ask_with_a_lost_secret_is_named_as_well() {
    let (room, _folder) = with_identity().await;
    room.api.edit::<FerrVaultSecret>(NS, "db", |object| {
        object["metadata"]["annotations"] = json!({ "ferrvault.com/refresh": "1" });
    });
    room.rest().await;
    assert_eq!(room.ready("db"), "True Unreachable", "{}", room.condition("db", "Ready").message);
    room.api.delete::<Secret>(NS, "db");
    room.rest().await;
    assert_eq!(room.ready("db"), "False Unreachable", "{}", room.api.story());
    let message = room.condition("db", "Ready").message;
    assert!(message.contains("Secret \"db\" was deleted meanwhile and is made again"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn without_a_bearer_a_target_that_became_anothers_is_told_as_such_and_promised_nothing() {
    for edited in [false, true] {
        let (room, _folder) = with_identity().await;
        room.api.edit::<Secret>(NS, "db", |object| {
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "name": "site", "uid": "another",
                "controller": true
            }]);
            if edited {
                object["data"]["USER"] = "Y2FuYXJ5".into();
            }
        });
        room.rest().await;
        assert_eq!(room.ready("db"), "False TargetConflict", "{}", room.condition("db", "Ready").message);
        let message = room.condition("db", "Ready").message;
        assert!(message.contains("belongs to Certificate") && !message.contains("is put right"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn ready_of_the_go_operator_ends_with_a_lost_target_as_well() {
    let mut room = Room::new();
    let resource = legacy::stored(&room, db());
    legacy::target(&room, &resource);
    room.vault.always("db", Some(Mood::Fails(script::failing())));
    room.api.delete::<Secret>(NS, "db");
    room.start().await;
    room.run_for(Duration::from_mins(1)).await;
    assert_eq!(room.ready("db"), "False Unreachable", "{}", room.condition("db", "Ready").message);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_written_promises_nothing_of_the_next() {
    let room = Room::with_db(db().names(&["USER", "PASSWORD"])).await;
    room.vault.unset("db", "PASSWORD");
    room.api.delete::<Secret>(NS, "db");
    room.rest().await;
    let message = room.condition("db", "Ready").message;
    assert!(message.contains("made again afterwards"), "{}: {message}", room.ready("db"));
}

/// One read of the token that fails is one pass that failed, as it was before reads were shared.
#[tokio::test(start_paused = true)]
async fn one_read_of_the_token_that_fails_does_not_fail_the_passes_of_others() {
    let room = Room::started().await;
    let names: Vec<String> = (0..20).map(|index| format!("r{index}")).collect();
    for name in &names {
        room.api.apply(&build::fvs(NS, name).through("conn").vault("db").every("1h"));
    }
    room.run_for(Duration::from_secs(30)).await;
    let mut reads = 0;
    room.api.on_call(move |call| {
        if call.who != OPERATOR || call.summary() != "GET secrets default/token" {
            return Fault::None;
        }
        reads += 1;
        if reads == 2 { Fault::Refuse(500) } else { Fault::Slow(Duration::from_millis(100)) }
    });
    names.iter().for_each(|name| room.nudge_now(name));
    room.run_for(Duration::from_secs(20)).await;
    let told: Vec<_> = names.iter().filter(|n| room.events(n).iter().any(|e| e.contains("TokenUnreadable"))).collect();
    assert!(told.len() <= 1, "{} resources were told not Ready: {told:?}", told.len());
}
