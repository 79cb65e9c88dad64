//! Mistakes of the operator's own: a pass that panics takes nobody else with it, and does not hide.

use std::time::Duration;

use crate::script::Mood;
use crate::ward::{MINUTE, Ward, resource};

const PANICS: &str = "controller_runtime_reconcile_panics_total{controller=\"ferrvaultsecret\"}";

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_shown_on_its_resource_and_tried_again() {
    let ward = Ward::with(&[resource("db", "24h"), resource("other", "1m")]).await;
    ward.vault.always("db", Some(Mood::Panics));
    ward.ask_for_refresh("db", "now");
    let took = ward.time_until(MINUTE, "the panic is shown", |ward| ward.ready("db") == "False InternalError").await;
    assert!(took <= Duration::from_secs(1), "{took:?}");
    let message = ward.condition("db", "Ready").unwrap().message;
    assert!(message.contains("while asking FerrVault for vault db"), "{message}");
    assert!(!message.contains("as the test asked for"), "what a panic says may hold anything");
    assert!(ward.metric(PANICS) >= 1.0);
    assert!(ward.metric("ferrvault_secret_sync_errors_total{reason=\"InternalError\"}") >= 1.0);
    assert_eq!(ward.events("db"), ["Normal Synced", "Warning InternalError"]);

    ward.time_until(6 * MINUTE, "the request is overdue", |ward| ward.fresh("db") == "False Overdue").await;
    assert!((5.0..30.0).contains(&ward.metric(PANICS)), "with backoff: {}", ward.metric(PANICS));
    assert_eq!((ward.ready("other"), ward.fresh("other")), ("True Synced".to_owned(), "True Current".to_owned()));
    assert_eq!(ward.health(), "ok", "a restart would not cure it");

    ward.vault.always("db", None);
    ward.time_until(6 * MINUTE, "all is well", |ward| ward.fresh("db") == "True Current").await;
    assert_eq!(ward.ready("db"), "True Synced");
}

#[tokio::test(start_paused = true)]
async fn a_standby_and_an_empty_cluster_are_green_for_ever() {
    let mut ward = Ward::new();
    ward.start().await;
    ward.run_for(3 * 60 * MINUTE).await;
    assert_eq!((ward.health(), ward.readiness()), ("ok".to_owned(), "ok".to_owned()));
}
