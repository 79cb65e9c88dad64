//! An API server that is away, and watches that are.

use std::time::Duration;

use ferrvault_operator::watchdog::LOOK;
use ferrvault_testkit::{Break, Fault, Verb};

use crate::ward::{MINUTE, OPERATOR, THRESHOLD, Ward, resource};

#[tokio::test(start_paused = true)]
async fn an_api_server_behind_a_black_hole_shows_in_metrics_within_a_minute_and_is_no_reason_to_restart() {
    let ward = Ward::with(&[resource("db", "24h")]).await;
    ward.black_hole();
    let silence = "ferrvault_apiserver_silence_seconds";
    let took = ward.time_until(MINUTE, "the silence shows", |ward| ward.metric(silence) >= 30.0).await;
    assert!(took <= MINUTE, "{took:?}");
    ward.run_for(2 * THRESHOLD).await;
    assert_eq!(ward.health(), "ok");
    assert_ne!(ward.readiness(), "ok");

    ward.api.clear_faults();
    ward.time_until(2 * MINUTE, "all is well", |ward| ward.metric(silence) < 20.0 && ward.readiness() == "ok").await;
    ward.run_for(MINUTE).await;
    assert_eq!((ward.ready("db"), ward.fresh("db")), ("True Synced".to_owned(), "True Current".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_was_late_when_the_server_came_back_is_said_and_unsaid() {
    let ward = Ward::with(&[resource("db", "1m")]).await;
    ward.black_hole();
    ward.run_for(20 * MINUTE).await;
    assert_eq!(ward.fresh("db"), "True Current", "nobody could write");
    ward.api.clear_faults();
    ward.time_until(6 * MINUTE, "a pass has ended", |ward| {
        ward.fvs("db").status.unwrap().last_attempted_at.unwrap().0 > ward.api.now() - MINUTE
    })
    .await;
    ward.run_for(LOOK).await;
    assert_eq!(ward.fresh("db"), "True Current");
}

#[tokio::test(start_paused = true)]
async fn one_watch_that_is_silently_dead_is_given_up_within_a_minute_and_delays_no_other() {
    let ward = Ward::with(&[resource("db", "24h")]).await;
    ward.run_for(MINUTE).await;
    let broken = ward.api.break_watches(Break::Silent, |watch| watch.resource == "ferrvaultsecrets.ferrvault.com");
    assert_eq!(broken, 1);
    ward.ask_for_refresh("db", "unheard");
    let losses = "ferrvault_watch_losses_total{watch=\"ferrvaultsecrets.ferrvault.com\"}";
    let took = ward.time_until(2 * MINUTE, "it is given up", |ward| ward.metric(losses) >= 1.0).await;
    assert!(took <= MINUTE, "{took:?}");
    ward.time_until(MINUTE, "the request is answered", |ward| {
        ward.fvs("db").status.unwrap().last_handled_refresh.as_deref() == Some("unheard")
    })
    .await;
    assert_eq!(ward.health(), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stays_dead_while_others_hear_turns_liveness_red_past_its_threshold() {
    let ward = Ward::with(&[resource("db", "24h")]).await;
    ward.on(Fault::LostRequest, |call| {
        call.who == OPERATOR && call.resource == "ferrvaultsecrets" && [Verb::Watch, Verb::List].contains(&call.verb)
    });
    ward.api.break_watches(Break::Silent, |watch| watch.resource == "ferrvaultsecrets.ferrvault.com");
    let silence = "ferrvault_watch_silence_seconds{watch=\"ferrvaultsecrets.ferrvault.com\"}";
    ward.time_until(2 * MINUTE, "the silence shows", |ward| ward.metric(silence) >= 55.0).await;
    ward.time_until(THRESHOLD, "liveness is red", |ward| ward.health() != "ok").await;
    assert_eq!(
        ward.health(),
        "the watch of ferrvaultsecrets.ferrvault.com has heard nothing for 15m0s while the API server answers others, \
         longer than --stall-threshold=15m0s"
    );
    assert!(ward.readiness().starts_with("watch of ferrvaultsecrets.ferrvault.com: "), "{}", ward.readiness());
}

#[tokio::test(start_paused = true)]
async fn a_dead_watch_does_not_keep_the_watchdog_from_writing() {
    use crate::script::Mood;
    let mut ward = Ward::new().with_deadline(Duration::from_hours(100));
    ward.start().await;
    ward.api.apply(&resource("db", "1m"));
    ward.run_for(Duration::from_secs(1)).await;
    ward.vault.always("db", Some(Mood::Stalls));
    ward.run_for(2 * MINUTE).await;
    // From now on the store is behind: an edit that it never hears of makes its resourceVersion an old one.
    ward.on(Fault::LostRequest, |call| {
        call.who == OPERATOR && call.resource == "ferrvaultsecrets" && [Verb::Watch, Verb::List].contains(&call.verb)
    });
    ward.api.break_watches(Break::Silent, |watch| watch.resource == "ferrvaultsecrets.ferrvault.com");
    ward.ask_for_refresh("db", "unheard");
    ward.time_until(7 * MINUTE, "Fresh is false", |ward| ward.fresh("db") == "False Stale").await;
    let status = "PATCH ferrvaultsecrets/status default/db";
    assert_eq!(ward.watchdog_calls()[..3], [status, "GET ferrvaultsecrets default/db", status]);
}
