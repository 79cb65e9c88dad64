//! Input that nobody should write, as far as no condition of `reasons` is provoked by it: what is taken as it is meant,
//! what is refused before it is stored, and a cluster that lacks kinds or rights.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_testkit::{Fault, build};
use kube::api::{Api, PostParams};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use serde_json::json;

use crate::invariants::OPERATOR;
use crate::room::{NS, Room, VALUE};

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m")
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_listed_twice_is_synced_and_told_of() {
    let room = Room::with_db(db().names(&["USER", "PASSWORD", "USER"])).await;
    assert_eq!(room.ready("db"), "True Synced");
    let message = room.condition("db", "Ready").message;
    assert!(message.contains("spec.selector.names lists USER more than once"), "{message}");
    room.assert_current("db", "db");
}

#[tokio::test(start_paused = true)]
async fn what_is_cloud_or_not_decides_what_is_asked() {
    let room = Room::with_db(db().set(&["spec", "project"], "shop")).await;
    let vaults = room.vault.last_asked();
    assert_eq!(vaults.scope, ferrvault_vault::Scope::FerrVault, "a project means nothing to mode ferrvault");
    room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
        object["spec"]["mode"] = "cloud".into();
        object["spec"]["organization"] = "acme".into();
    });
    room.rest().await;
    let expected =
        ferrvault_vault::Scope::Cloud { organization: "acme".into(), project: "shop".into(), namespace: NS.into() };
    assert_eq!(room.vault.last_asked().scope, expected);
    assert_eq!(room.ready("db"), "True Synced");
}

#[tokio::test(start_paused = true)]
async fn white_space_around_a_token_is_forgiven() {
    let room = Room::new();
    room.api.apply(&build::secret(NS, "token").key("token", "  fft_canary-token\r\n"));
    let mut room = room;
    room.start().await;
    room.api.apply(&db());
    room.rest().await;
    assert_eq!(room.ready("db"), "True Synced");
}

#[tokio::test(start_paused = true)]
async fn bytes_arrive_as_they_are() {
    let room = Room::started().await;
    let every: Vec<u8> = (0..=255).collect();
    room.vault.set("raw", "ALL", &every);
    room.vault.set("raw", "NOTHING", "");
    room.vault.set("raw", "LINES", "canary\r\n\u{0}canary\u{feff}");
    room.api.apply(&build::fvs(NS, "raw").through("conn").vault("raw"));
    room.rest().await;
    assert_eq!(room.ready("raw"), "True Synced", "{}", room.api.story());
    room.assert_current("raw", "raw");
}

#[tokio::test(start_paused = true)]
async fn transforms_are_applied_before_anything_is_compared() {
    let room = Room::started().await;
    room.api.apply(
        &db()
            .transform(json!({ "type": "prefix", "value": "DB_" }))
            .transform(json!({ "type": "rename", "from": "DB_USER", "to": "LOGIN" })),
    );
    room.rest().await;
    assert_eq!(room.data("db").keys().collect::<Vec<_>>(), ["DB_PASSWORD", "LOGIN"]);
    let version = room.version("db");
    room.nudge("db").await;
    assert_eq!(room.version("db"), version, "the same again is no change");
}

#[tokio::test(start_paused = true)]
async fn half_an_answer_is_never_written() {
    // (names wanted, what FerrVault loses, reason): what pods run on stays whole.
    for (names, lost, reason) in [
        (&["USER", "PASSWORD"][..], &["PASSWORD"][..], "MissingKeys"),
        (&["USER", "PASSWORD"], &["USER", "PASSWORD"], "MissingKeys"),
        (&[], &["USER", "PASSWORD"], "EmptyAnswer"),
    ] {
        let room = Room::with_db(db().names(names)).await;
        let secret = room.secret("db");
        for key in lost {
            room.vault.unset("db", key);
        }
        room.run_for(Duration::from_secs(3600)).await;
        assert_eq!(room.ready("db"), format!("False {reason}"));
        assert_eq!(room.secret("db"), secret, "{reason}");
        let missing = room.status("db").missing_keys;
        assert_eq!(missing.len(), if reason == "MissingKeys" { lost.len() } else { 0 });
        let message = room.condition("db", "Ready").message;
        assert!(message.contains("\"db\" keeps its last content"), "{message}");
    }
    // And where there is nothing yet, nothing is made.
    for names in [&["USER", "MAIL"][..], &[]] {
        let room = Room::started().await;
        room.vault.empty("db");
        room.api.apply(&db().names(names));
        room.run_for(Duration::from_secs(3600)).await;
        assert!(room.secret("db").is_none());
        let message = room.condition("db", "Ready").message;
        assert!(message.contains("\"db\" is not made"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_transforms_leave_of_an_answer_may_be_nothing() {
    let room = Room::started().await;
    room.vault.set("json", "CONFIG", "{}");
    let resource = build::fvs(NS, "json").through("conn").vault("json");
    room.api.apply(&resource.transform(json!({ "type": "jsonExpand", "key": "CONFIG" })));
    room.rest().await;
    assert_eq!(room.ready("json"), "False EmptyAnswer");
    assert!(room.secret("json").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_in_place_of_a_watch_asks_nothing_ahead_of_the_schedule_for_a_target_that_was_never_made() {
    let room = Room::started().await;
    room.api.apply(&build::fvs(NS, "db").through("conn").vault("nowhere").every("10h"));
    room.rest().await;
    assert_eq!(room.ready("db"), "False VaultNotFound");
    let (asked, lists) = (room.vault.reveals(), Arc::new(AtomicUsize::new(0)));
    room.api.on_call({
        let lists = Arc::clone(&lists);
        move |call| match call.summary() {
            summary if call.who == OPERATOR && summary.starts_with("WATCH secrets") => Fault::Refuse(410),
            summary if call.who == OPERATOR && summary.starts_with("LIST secrets") => {
                lists.fetch_add(1, Ordering::Relaxed);
                Fault::None
            }
            _ => Fault::None,
        }
    });
    room.run_for(Duration::from_mins(10)).await;
    assert!(lists.load(Ordering::Relaxed) >= 5, "{lists:?}");
    assert_eq!(room.vault.reveals(), asked);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_restarted_is_refused_before_it_is_stored() {
    let room = Room::started().await;
    let api: Api<DynamicObject> =
        Api::namespaced_with(room.api.client_as("somebody"), NS, &ApiResource::erase::<FerrVaultSecret>(&()));
    let object: DynamicObject = serde_json::from_value(db().restarts("Pod", "api").json()).unwrap();
    let error = api.create(&PostParams::default(), &object).await.unwrap_err().to_string();
    for part in ["spec.rolloutRestart[0].kind", "Pod", "Deployment", "StatefulSet", "DaemonSet"] {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
    assert!(room.fvs("db").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_installed_is_waited_for() {
    for missing in ["ferrvaultsecrets", "ferrvaultconnections"] {
        let mut room = Room::new();
        room.api.uninstall(&format!("{missing}.ferrvault.com"));
        let start = tokio::time::timeout(Duration::from_secs(120), room.start()).await;
        assert!(start.is_err(), "{missing}: there is no list without it");
        let errors = room.watch_errors();
        assert_eq!(errors.len(), 1, "{missing}: {errors:?}");
        for part in [missing, "is the CRD installed?"] {
            assert!(errors[0].contains(part), "{errors:?} does not say {part:?}");
        }
        room.api.install_product();
        room.api.apply(&build::connection(NS, "conn").url("http://127.0.0.1:1").token_in("token", "token"));
        room.go_on().await;
        assert!(room.watch_errors().is_empty(), "{missing}");
        room.api.apply(&db());
        room.rest().await;
        assert_eq!(room.ready("db"), "True Synced", "{missing}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_verb_that_is_refused_is_named_and_waited_for() {
    for (verb, resource) in
        [("list", "ferrvaultsecrets"), ("list", "ferrvaultconnections"), ("list", "secrets"), ("watch", "secrets")]
    {
        let mut room = Room::new();
        room.api.apply(&db());
        room.api.deny(OPERATOR, verb, resource);
        let _ = tokio::time::timeout(Duration::from_secs(120), room.start()).await;
        let errors = room.watch_errors();
        assert_eq!(errors.len(), 1, "{verb} {resource}: {errors:?}");
        for part in [verb, resource, "forbidden"] {
            assert!(errors[0].contains(part), "{errors:?} does not say {part:?}");
        }
        room.api.allow_again(OPERATOR, verb, resource);
        room.go_on().await;
        room.run_for(Duration::from_secs(60)).await;
        assert!(room.watch_errors().is_empty(), "{verb} {resource}: {:?}", room.watch_errors());
        assert_eq!(room.ready("db"), "True Synced", "{verb} {resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_read_of_the_target_loses_nothing() {
    let room = Room::with_db(db()).await;
    let secret = room.secret("db");
    room.rotate(2);
    for fault in [Fault::Refuse(403), Fault::Refuse(401), Fault::Nonsense(200, "<html>".into()), Fault::ResetMidBody] {
        room.on("GET secrets default/db", fault.clone());
        room.nudge("db").await;
        assert_eq!(room.ready("db"), "False SecretReadFailed", "{fault}");
        assert_eq!(room.secret("db"), secret, "{fault}");
    }
    room.api.clear_faults();
    room.run_for(Duration::from_secs(301)).await;
    room.assert_current("db", "db");
    assert_eq!(room.ready("db"), "True Synced");
}

#[tokio::test(start_paused = true)]
async fn what_an_admission_webhook_says_of_a_secret_is_not_repeated() {
    let room = Room::started().await;
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 400, "reason": "Invalid",
        "message": format!("admission webhook \"policy.example.com\" denied the request: value {VALUE}-1 is weak"),
    });
    room.on("CREATE secrets default/db", Fault::Nonsense(400, body.to_string()));
    room.api.apply(&db());
    room.rest().await;
    assert_eq!(room.ready("db"), "False SecretWriteFailed", "{}", room.api.story());
    let message = room.condition("db", "Ready").message;
    assert!(message.contains("policy.example.com"), "{message}");
    assert!(!message.contains("weak"), "{message}");
}
