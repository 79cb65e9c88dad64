//! What is refused: FerrVault that throttles or knows the token no more, and an API server that denies a right.

use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use k8s_openapi::api::core::v1::Secret;

use crate::script::{Mood, throttled, unauthorized};
use crate::ward::{MINUTE, NS, OPERATOR, WATCHDOG, Ward, resource};

#[tokio::test(start_paused = true)]
async fn an_hour_of_throttling_is_shown_and_is_neither_stale_nor_a_reason_to_restart() {
    let ward = Ward::with(&[resource("db", "1m")]).await;
    ward.vault.always("db", Some(Mood::Fails(throttled(Some(Duration::from_secs(90))))));
    let shown = |ward: &Ward| ward.ready("db") == "True RateLimited";
    let took = ward.time_until(2 * MINUTE, "the throttling is shown", shown).await;
    assert!(took <= Duration::from_secs(67), "with the first pass: {took:?}");
    for _ in 0..60 {
        ward.run_for(MINUTE).await;
        assert_eq!((ward.fresh("db"), ward.health()), ("True Current".to_owned(), "ok".to_owned()));
    }
    assert!(ward.vault.reveals_of("db") <= 45, "{} calls in an hour", ward.vault.reveals_of("db"));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_revoked_is_shown_with_the_first_pass() {
    let ward = Ward::with(&[resource("db", "30s")]).await;
    ward.vault.always("db", Some(Mood::Fails(unauthorized())));
    let took = ward.time_until(MINUTE, "it is shown", |ward| ward.ready("db") == "False AuthFailed").await;
    assert!(took <= MINUTE, "{took:?}");
    ward.run_for(30 * MINUTE).await;
    assert_eq!((ward.fresh("db"), ward.health()), ("True Current".to_owned(), "ok".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_right_on_secrets_that_is_withdrawn_is_shown_on_the_resource_and_by_the_watch() {
    let ward = Ward::with(&[resource("db", "30s")]).await;
    for verb in ["get", "list", "watch", "create", "patch"] {
        ward.api.deny(OPERATOR, verb, "secrets");
    }
    let shown = |ward: &Ward| ["False TokenUnreadable", "False SecretReadFailed"].contains(&ward.ready("db").as_str());
    ward.time_until(MINUTE, "it is shown", shown).await;
    let failures = "ferrvault_watch_failures_total{watch=\"secrets\"}";
    ward.time_until(MINUTE, "the watch tells", |ward| ward.metric(failures) >= 1.0).await;
    ward.time_until(2 * MINUTE, "readiness tells", |ward| ward.readiness() != "ok").await;
    assert_eq!(
        ward.readiness(),
        "watch of secrets: watch secrets: forbidden: cannot watch secrets at the cluster scope"
    );
    ward.run_for(60 * MINUTE).await;
    assert_eq!(
        (ward.fresh("db"), ward.health()),
        ("True Current".to_owned(), "ok".to_owned()),
        "it answers: it refuses"
    );

    for verb in ["get", "list", "watch", "create", "patch"] {
        ward.api.allow_again(OPERATOR, verb, "secrets");
    }
    ward.time_until(MINUTE, "all is well", |ward| ward.ready("db") == "True Synced" && ward.readiness() == "ok").await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_is_told_by_an_event_and_a_metric() {
    let ward = Ward::with(&[resource("db", "30s")]).await;
    for who in [OPERATOR, WATCHDOG] {
        ward.api.deny(who, "patch", "ferrvaultsecrets/status");
    }
    ward.vault.set("db", "PASSWORD", "second");
    let event = |ward: &Ward| ward.events("db").last().is_some_and(|last| last == "Warning StatusWriteFailed");
    ward.time_until(MINUTE, "an event tells", event).await;
    assert!(ward.metric("ferrvault_secret_sync_errors_total{reason=\"StatusWriteFailed\"}") >= 1.0);
    ward.run_for(30 * MINUTE).await;
    assert_eq!(ward.events("db"), ["Normal Synced", "Warning StatusWriteFailed"], "told once");
    assert_eq!(ward.health(), "ok");
    let tries = ward.watchdog_calls().len();
    assert!((5..60).contains(&tries), "the watchdog insists without hammering: {tries} in half an hour");

    for who in [OPERATOR, WATCHDOG] {
        ward.api.allow_again(who, "patch", "ferrvaultsecrets/status");
    }
    ward.time_until(6 * MINUTE, "all is well", |ward| ward.fresh("db") == "True Current").await;
    let stored = ward.api.get::<Secret>(NS, "db").unwrap();
    assert_eq!(stored.data.unwrap()["PASSWORD"].0, b"second", "the data went on");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_says_so_itself() {
    let ward = Ward::with(&[resource("other", "1m")]).await;
    // As an object that was stored under another schema.
    ward.api.uninstall("ferrvaultsecrets.ferrvault.com");
    let mut definition = serde_json::to_value(<FerrVaultSecret as kube::CustomResourceExt>::crd()).unwrap();
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["vault"] = serde_json::json!({"x-kubernetes-preserve-unknown-fields": true});
    ward.api.install(&definition);
    ward.api.apply(&resource("db", "1m").set(&["spec", "vault"], serde_json::json!({"not": "a text"})));
    ward.api.apply(&resource("other", "1m"));
    let raw = |ward: &Ward| {
        let object = ward.api.get_json("ferrvault.com", "ferrvaultsecrets", NS, "db").unwrap();
        object["status"]["conditions"][0].clone()
    };
    let took = ward.time_until(2 * MINUTE, "it says so", |ward| raw(ward)["reason"] == "InvalidSpec").await;
    assert!(took <= MINUTE, "{took:?}");
    assert_eq!((&raw(&ward)["type"], &raw(&ward)["status"]), (&"Ready".into(), &"False".into()));
    let kind = "ferrvault_unreadable_objects{kind=\"FerrVaultSecret\"}";
    assert!((ward.metric(kind) - 1.0).abs() < f64::EPSILON);
    let message = raw(&ward)["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("this version of the operator cannot read the object"), "{message}");
    let writes = |ward: &Ward| {
        let patch = "PATCH ferrvaultsecrets/status default/db";
        ward.api.requests_after(0, WATCHDOG).iter().filter(|call| *call == patch).count()
    };
    ward.run_for(30 * MINUTE).await;
    assert_eq!(writes(&ward), 1, "said once");
    assert_eq!(ward.ready("other"), "True Synced");
    assert_eq!(ward.health(), "ok");

    ward.api.apply(&resource("db", "1m"));
    ward.time_until(MINUTE, "all is well", |ward| ward.ready("db") == "True Synced").await;
    assert_eq!(ward.api.get::<FerrVaultSecret>(NS, "db").unwrap().status.unwrap().conditions.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_deleted_is_named_by_the_watch_and_by_readiness() {
    let ward = Ward::with(&[resource("db", "1m")]).await;
    assert_eq!(ward.readiness(), "ok");
    ward.api.uninstall("ferrvaultsecrets.ferrvault.com");
    let failures = "ferrvault_watch_failures_total{watch=\"ferrvaultsecrets.ferrvault.com\"}";
    let took = ward.time_until(2 * MINUTE, "the watch tells", |ward| ward.metric(failures) >= 1.0).await;
    assert!(took <= MINUTE, "{took:?}");
    ward.time_until(2 * MINUTE, "readiness tells", |ward| ward.readiness() != "ok").await;
    assert!(ward.readiness().contains("is the CRD installed?"), "{}", ward.readiness());
    ward.run_for(60 * MINUTE).await;
    assert_eq!(ward.health(), "ok", "a restart installs no definition");

    // With the resources went what they own.
    ward.api.delete::<Secret>(NS, "db");
    ward.api.install_product();
    ward.api.apply(&resource("db", "1m"));
    ward.time_until(2 * MINUTE, "all is well", |ward| ward.readiness() == "ok" && ward.ready("db") == "True Synced")
        .await;
}
