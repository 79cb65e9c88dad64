//! Passes that hang: cut at their deadline they show themselves, and where nothing cuts them the watchdog does.

use std::time::Duration;

use ferrvault_operator::watchdog::LOOK;
use ferrvault_testkit::{Fault, build};

use crate::script::Mood;
use crate::ward::{MINUTE, NS, OPERATOR, THRESHOLD, Ward, resource};

/// Long enough that nothing is ever cut in these tests.
const NEVER: Duration = Duration::from_hours(100);

/// A queue with every worker stuck: passes over `db` hang and are never cut.
async fn stuck(every: &str) -> Ward {
    let mut ward = Ward::new().with_deadline(NEVER);
    ward.start().await;
    ward.api.apply(&resource("db", every));
    ward.run_for(Duration::from_secs(1)).await;
    assert_eq!((ward.ready("db"), ward.fresh("db")), ("True Synced".to_owned(), "True Current".to_owned()));
    ward.vault.always("db", Some(Mood::Stalls));
    ward
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_no_pass_takes_up_is_overdue_after_five_minutes_however_long_the_interval() {
    let ward = stuck("24h").await;
    ward.edit("db", |spec| spec["rolloutRestart"] = serde_json::json!([{"kind": "Deployment", "name": "api"}]));
    let took = ward.time_until(6 * MINUTE, "Fresh is false", |ward| ward.fresh("db") == "False Overdue").await;
    assert!((5 * MINUTE..=5 * MINUTE + LOOK + Duration::from_secs(1)).contains(&took), "{took:?}");
    assert_eq!(ward.ready("db"), "True Synced", "what the last pass found still stands");
    let fresh = ward.condition("db", "Fresh").unwrap();
    assert_eq!(fresh.message, "a pass was asked for at 2026-01-01T00:00:01Z and has not ended; the limit is 5m0s");
    assert_eq!(ward.events("db").last().unwrap(), "Warning Overdue");
    // Said once, not at each look.
    ward.run_for(10 * MINUTE).await;
    assert_eq!(ward.watchdog_calls(), ["PATCH ferrvaultsecrets/status default/db", "CREATE events default/*"][..1]);
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_pass_that_hangs_is_stale_after_two_intervals_and_five_minutes() {
    let ward = stuck("1m").await;
    let took = ward.time_until(9 * MINUTE, "Fresh is false", |ward| ward.fresh("db") == "False Stale").await;
    assert!(took.abs_diff(7 * MINUTE) <= LOOK, "{took:?}");
    let message = ward.condition("db", "Fresh").unwrap().message;
    assert!(message.ends_with("with this refresh interval the limit is 7m0s"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_metric_shows_a_pass_that_hangs_within_a_minute_and_liveness_past_its_threshold() {
    let ward = stuck("24h").await;
    ward.edit("db", |spec| spec["refreshInterval"] = "23h".into());
    let longest = "workqueue_longest_running_processor_seconds{controller=\"ferrvaultsecret\"}";
    let seen = ward.time_until(MINUTE, "the metric grows", |ward| ward.metric(longest) >= 30.0).await;
    assert!(seen <= MINUTE);
    assert_eq!(ward.health(), "ok");
    let took = ward.time_until(THRESHOLD, "liveness is red", |ward| ward.health() != "ok").await;
    assert!((seen + took).abs_diff(THRESHOLD) <= Duration::from_secs(1), "{took:?}");
    assert_eq!(
        ward.health(),
        "the ferrvaultsecret pass over default/db has been running for 15m0s, longer than --stall-threshold=15m0s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_ends_after_all_makes_it_true_again_by_itself() {
    let mut ward = Ward::new().with_deadline(NEVER);
    ward.start().await;
    ward.api.apply(&resource("db", "24h"));
    ward.run_for(Duration::from_secs(1)).await;
    ward.vault.next("db", Mood::Late(8 * MINUTE));
    ward.ask_for_refresh("db", "1");
    ward.time_until(6 * MINUTE, "Fresh is false", |ward| ward.fresh("db") == "False Overdue").await;
    assert_eq!(ward.fvs("db").status.unwrap().last_handled_refresh, None);
    let took = ward.time_until(4 * MINUTE, "Fresh is true", |ward| ward.fresh("db") == "True Current").await;
    assert!(took <= 3 * MINUTE + LOOK, "{took:?}");
    ward.run_for(LOOK).await;
    assert_eq!(ward.fvs("db").status.unwrap().last_handled_refresh.as_deref(), Some("1"));
    assert_eq!(ward.events("db"), ["Normal Synced", "Warning Overdue", "Normal Current"]);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_is_cut_shows_itself_and_a_request_it_does_not_answer_is_overdue_in_the_end() {
    let ward = Ward::with(&[resource("db", "24h"), resource("other", "24h")]).await;
    ward.vault.always("db", Some(Mood::Stalls));
    ward.ask_for_refresh("db", "now");
    let took =
        ward.time_until(3 * MINUTE, "the cut is shown", |ward| ward.ready("db") == "True ReconcileTimeout").await;
    assert!(took <= 2 * MINUTE + Duration::from_secs(1), "{took:?}");
    assert_eq!(ward.fresh("db"), "True Current", "not late yet");
    let timeouts = "controller_runtime_reconcile_timeouts_total{controller=\"ferrvaultsecret\"}";
    assert!((ward.metric(timeouts) - 1.0).abs() < f64::EPSILON);
    ward.time_until(4 * MINUTE, "the request is overdue", |ward| ward.fresh("db") == "False Overdue").await;
    assert_eq!(ward.fvs("db").status.unwrap().last_handled_refresh, None, "it has not ended");
    assert_eq!((ward.fresh("other"), ward.health()), ("True Current".to_owned(), "ok".to_owned()));

    ward.vault.always("db", None);
    ward.time_until(6 * MINUTE, "all is well", |ward| ward.fresh("db") == "True Current").await;
    assert_eq!(ward.ready("db"), "True Synced");
    assert_eq!(ward.fvs("db").status.unwrap().last_handled_refresh.as_deref(), Some("now"));
}

#[tokio::test(start_paused = true)]
async fn a_workload_call_that_never_answers_is_shown_within_a_minute_and_is_not_stale() {
    let ward = Ward::with(&[resource("other", "1m")]).await;
    ward.api.apply(&build::deployment(NS, "api"));
    ward.api.apply(&resource("db", "1m").restarts("Deployment", "api"));
    ward.run_for(Duration::from_secs(1)).await;
    ward.on(Fault::LostRequest, |call| call.who == OPERATOR && call.resource.starts_with("deployments"));
    ward.vault.set("db", "PASSWORD", "second");
    ward.ask_for_refresh("db", "now");
    let shown = |ward: &Ward| ward.says("db", "RolloutRestarted") == "False RolloutFailed";
    let took = ward.time_until(MINUTE, "the restart has failed", shown).await;
    assert!(took <= Duration::from_secs(30), "{took:?}");
    ward.run_for(15 * MINUTE).await;
    assert_eq!((ward.ready("db"), ward.fresh("db")), ("True Synced".to_owned(), "True Current".to_owned()));
    assert_eq!(ward.health(), "ok");
}
