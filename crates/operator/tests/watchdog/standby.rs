//! Who does not lead says nothing, and who begins to lead does not blame itself for what was before.

use std::time::Duration;

use ferrvault_operator::clock::Clock;
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::leader::{Candidate, Elector, Leadership, LeaseTimes};
use ferrvault_operator::watchdog::LOOK;
use ferrvault_testkit::{ApiServer, EPOCH_SECONDS, Fault};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::script::Mood;
use crate::ward::{MINUTE, OPERATOR, WATCHDOG, Ward, resource};

/// A candidate for the one lease there is, at work until the token is cancelled.
fn candidate(api: &ApiServer, pod: &str) -> (Leadership, CancellationToken) {
    let candidate = Candidate {
        namespace: "ferrvault-system".to_owned(),
        lease: "lease".to_owned(),
        pod: pod.to_owned(),
        times: LeaseTimes::default(),
    };
    let clock = Clock::simulated(Timestamp::from_second(EPOCH_SECONDS).unwrap());
    let (elector, leadership) = Elector::new(api.client_as(pod), candidate, clock, &Entropy::seeded(7));
    let drained = CancellationToken::new();
    tokio::spawn(elector.run(drained.clone()));
    (leadership, drained)
}

/// A standby beside a leader that does nothing but hold the lease, and the end of that leader.
async fn standby(every: &str) -> (Ward, CancellationToken) {
    let ward = Ward::new().with_deadline(Duration::from_hours(100));
    let (rival, end_of_rival) = candidate(&ward.api, "rival");
    ward.run_for(Duration::from_secs(2)).await;
    assert!(rival.is_leader_now());
    let (leadership, _) = candidate(&ward.api, "standby");
    let mut ward = ward.led_by(leadership);
    ward.start().await;
    ward.api.apply(&resource("db", every));
    (ward, end_of_rival)
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_alive_and_ready_and_writes_nothing_however_late_everything_is() {
    let (ward, _end_of_rival) = standby("1m").await;
    ward.ask_for_refresh("db", "unheard");
    for _ in 0..12 {
        ward.run_for(10 * MINUTE).await;
        assert_eq!((ward.health(), ward.readiness()), ("ok".to_owned(), "ok".to_owned()));
    }
    assert_eq!((ward.fresh("db"), ward.watchdog_calls()), (String::new(), Vec::new()));
    let mut writes = ward.api.requests_after(0, OPERATOR);
    writes.retain(|call| !call.starts_with("LIST"));
    assert_eq!(writes, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_waited_before_the_term_is_looked_at_in_peace() {
    let (ward, end_of_rival) = standby("1m").await;
    ward.run_for(120 * MINUTE).await;
    end_of_rival.cancel();
    ward.time_until(Duration::from_secs(20), "it has taken over", |ward| ward.ready("db") == "True Synced").await;
    ward.run_for(10 * MINUTE).await;
    assert_eq!((ward.fresh("db"), ward.watchdog_calls()), ("True Current".to_owned(), Vec::new()));
    assert_eq!(ward.events("db"), ["Normal Synced"]);
}

#[tokio::test(start_paused = true)]
async fn passes_that_hang_from_the_first_moment_of_a_term_are_late_from_its_beginning_on() {
    for (every, expected, limit) in [("24h", "False Overdue", 5 * MINUTE), ("1m", "False Stale", MINUTE)] {
        let (ward, end_of_rival) = standby(every).await;
        ward.vault.always("db", Some(Mood::Stalls));
        ward.run_for(120 * MINUTE).await;
        end_of_rival.cancel();
        // What nobody has looked at since it was made two hours ago is stale at once, after the minute that is left to a
        // new term; with a long interval it is that the first pass does not end.
        let late = |ward: &Ward| ward.fresh("db") == expected;
        let took = ward.time_until(10 * MINUTE, "Fresh is false", late).await;
        assert!((limit..=limit + 3 * LOOK).contains(&took), "{every}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_past_its_right_begins_nothing_when_it_goes_on() {
    let ward = Ward::new();
    let (leadership, _drained) = candidate(&ward.api, "leader");
    let mut ward = ward.led_by(leadership.clone());
    ward.start().await;
    for name in ["db", "other"] {
        ward.api.apply(&resource(name, "1m"));
    }
    for stop in 1..=8 {
        ward.run_for(MINUTE).await;
        assert!(leadership.is_leader_now());
        assert_eq!((ward.ready("db"), ward.ready("other")), ("True Synced".to_owned(), "True Synced".to_owned()));
        // Two minutes pass without any task getting to run, so that all of them are woken at once: the election, whose right
        // is over, and the queue, whose resources are due. The lease cannot be had back yet.
        ward.on(Fault::LostRequest, |call| call.who == "leader");
        let (calls, reveals) = (ward.api.last_call(), ward.vault.reveals());
        tokio::time::advance(2 * MINUTE).await;
        assert!(!leadership.is_leader_now());
        ward.run_for(Duration::from_millis(1_500)).await;
        let mut begun = ward.api.requests_after(calls, OPERATOR);
        begun.extend(ward.api.requests_after(calls, WATCHDOG));
        begun.retain(|call| !call.starts_with("LIST") && !call.contains("version"));
        assert_eq!((begun, ward.vault.reveals()), (Vec::new(), reveals), "stop {stop}");
        assert_eq!(leadership.state().losses, stop, "counted, and the process is still there");
        ward.api.clear_faults();
        ward.run_for(MINUTE).await;
        assert!(leadership.is_leader_now() && ward.vault.reveals() > reveals, "it leads again and looks at everything");
    }
}
