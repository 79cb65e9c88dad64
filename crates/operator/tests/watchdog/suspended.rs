//! `spec.suspend`: left alone, said so, neither stale nor an error.

use std::time::Duration;

use ferrvault_operator::admin::Format;
use ferrvault_testkit::build;
use k8s_openapi::api::core::v1::Secret;

use crate::ward::{MINUTE, NS, OPERATOR, Ward, resource};

async fn suspended() -> Ward {
    let ward = Ward::with(&[resource("db", "1m")]).await;
    ward.edit("db", |spec| spec["suspend"] = true.into());
    ward.run_for(Duration::from_secs(1)).await;
    assert_eq!((ward.ready("db"), ward.fresh("db")), ("False Suspended".to_owned(), "True Suspended".to_owned()));
    ward
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_or_written_whatever_happens_around_it_but_that_a_refresh_waits() {
    let ward = suspended().await;
    let here = ward.api.last_call();
    let reveals = ward.vault.reveals_of("db");
    ward.vault.set("db", "PASSWORD", "second");
    ward.api.edit::<Secret>(NS, "db", |object| object["data"]["PASSWORD"] = "ZWRpdGVk".into());
    ward.api.apply(&build::secret(NS, "token").key("token", "fft_another"));
    ward.ask_for_refresh("db", "please");
    ward.run_for(3 * 60 * MINUTE).await;
    let mut calls = ward.api.requests_after(here, OPERATOR);
    // The connection goes on being probed, and every list is read anew from time to time.
    let others = ["ferrvaultconnections", "secrets default/token", "LIST "];
    calls.retain(|call| !others.iter().any(|other| call.contains(other)));
    assert_eq!(calls, ["PATCH ferrvaultsecrets/status default/db"]);
    let said = ward.condition("db", "Ready").unwrap().message;
    assert!(said.ends_with("; the refresh that was asked for is done then"), "{said}");
    assert_eq!(ward.fvs("db").status.unwrap().last_handled_refresh, None, "it has not been done");
    assert_eq!(ward.watchdog_calls(), Vec::<String>::new());
    assert_eq!(ward.vault.reveals_of("db"), reveals);
    assert_eq!(ward.fresh("db"), "True Suspended");
    assert_eq!(ward.events("db"), ["Normal Synced", "Normal Suspended"]);
    let page = ward.subjects.metrics.page(Format::Text).unwrap();
    assert!(!page.contains("reason=\"Suspended\""), "not an error");
    assert!(page.contains("ferrvault_secret_refresh_interval_seconds{namespace=\"default\",name=\"db\"} 0.0\n"));
    assert_eq!(ward.health(), "ok");
}

#[tokio::test(start_paused = true)]
async fn its_end_means_a_pass_at_once_and_no_alarm_about_the_time_between() {
    let ward = suspended().await;
    ward.ask_for_refresh("db", "meanwhile");
    ward.vault.set("db", "PASSWORD", "second");
    ward.run_for(8 * 60 * MINUTE).await;
    let changed = |ward: &Ward| ward.api.get::<Secret>(NS, "db").unwrap().data.unwrap()["PASSWORD"].0 == b"second";
    assert!(!changed(&ward));
    ward.edit("db", |spec| spec["suspend"] = false.into());
    ward.run_for(Duration::from_secs(1)).await;
    assert!(changed(&ward));
    assert_eq!((ward.ready("db"), ward.fresh("db")), ("True Synced".to_owned(), "True Current".to_owned()));
    assert_eq!(ward.fvs("db").status.unwrap().last_handled_refresh.as_deref(), Some("meanwhile"));
    ward.run_for(3 * MINUTE).await;
    assert_eq!(ward.events("db"), ["Normal Synced", "Normal Suspended", "Normal Synced"]);
    assert_eq!(ward.watchdog_calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_is_owed_stays_owed_and_is_paid_afterwards() {
    let ward = Ward::with(&[resource("db", "1m").restarts("Deployment", "api")]).await;
    ward.vault.set("db", "PASSWORD", "second");
    ward.ask_for_refresh("db", "now");
    ward.run_for(Duration::from_secs(1)).await;
    assert_eq!(ward.says("db", "RolloutRestarted"), "False RolloutPending", "there is no workload yet");
    ward.edit("db", |spec| spec["suspend"] = true.into());
    ward.run_for(Duration::from_secs(1)).await;
    ward.api.apply(&build::deployment(NS, "api"));
    ward.run_for(60 * MINUTE).await;
    assert_eq!(ward.says("db", "RolloutRestarted"), "False RolloutPending");
    ward.edit("db", |spec| spec["suspend"] = false.into());
    ward.run_for(Duration::from_secs(1)).await;
    assert_eq!(ward.says("db", "RolloutRestarted"), "True Restarted");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_resource_can_be_deleted_and_a_restart_of_the_operator_writes_nothing() {
    let mut ward = suspended().await;
    ward.start().await;
    let here = ward.api.last_call();
    ward.run_for(10 * MINUTE).await;
    let mut writes = ward.api.requests_after(here, OPERATOR);
    writes.retain(|call| call.contains("ferrvaultsecrets"));
    assert_eq!(writes, Vec::<String>::new());
    ward.api.delete::<ferrvault_api::FerrVaultSecret>(NS, "db");
    ward.run_for(Duration::from_secs(5)).await;
    assert!(ward.api.get::<ferrvault_api::FerrVaultSecret>(NS, "db").is_none());
}
