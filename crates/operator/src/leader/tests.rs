//! The election against a store of one Lease that compares and swaps, under paused time.

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{advance, sleep};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::Clock;
use crate::cluster::mock::{Reply, Requests, api};
use crate::entropy::Entropy;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What happens to the calls of one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Fine,
    /// Nothing arrives and nothing is answered.
    Hangs,
    /// What is asked is done, and the answer gets lost.
    AnswersLost,
    Refuses,
    /// What is asked is done at once, and the answer comes when it is let through.
    Held,
}

/// The Lease in the API server.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Value>,
    version: u64,
    writes: u64,
}

impl Store {
    fn answer(&self, method: &Method, body: &Value) -> Reply {
        let mut stored = self.0.lock().unwrap();
        match (method, &stored.lease) {
            (&Method::GET, Some(lease)) => Reply::Json(200, lease.clone()),
            (&Method::GET | &Method::PUT, None) => Reply::refusal(404, "NotFound"),
            (&Method::POST, Some(_)) => Reply::refusal(409, "AlreadyExists"),
            (&Method::PUT, Some(lease))
                if lease["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] =>
            {
                Reply::refusal(409, "Conflict")
            }
            (&Method::PUT | &Method::POST, _) => Reply::Json(200, stored.write(body.clone())),
            _ => Reply::refusal(405, "MethodNotAllowed"),
        }
    }

    fn holder(&self) -> Option<String> {
        let stored = self.0.lock().unwrap();
        let holder = stored.lease.as_ref()?["spec"]["holderIdentity"].as_str()?;
        Some(holder.split('_').next().unwrap().to_owned())
    }

    fn spec(&self) -> Value {
        self.0.lock().unwrap().lease.as_ref().unwrap()["spec"].clone()
    }

    fn writes(&self) -> u64 {
        self.0.lock().unwrap().writes
    }

    /// Somebody writes it with other means.
    fn edit(&self, spec: &Value) {
        let lease = json!({"metadata": {"name": "fv", "namespace": "ops"}, "spec": spec});
        self.0.lock().unwrap().write(lease);
    }

    fn delete(&self) {
        self.0.lock().unwrap().lease = None;
    }
}

impl Stored {
    fn write(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        self.writes += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        lease
    }
}

struct Replica {
    leadership: Leadership,
    network: Arc<Mutex<Network>>,
    drained: CancellationToken,
    requests: Requests,
    task: JoinHandle<()>,
    /// Lets one answer through.
    let_through: Arc<tokio::sync::Notify>,
}

impl Replica {
    fn start(store: &Store, pod: &str) -> Self {
        Self::with(store, pod, LeaseTimes::default())
    }

    fn with(store: &Store, pod: &str, times: LeaseTimes) -> Self {
        let network = Arc::new(Mutex::new(Network::Fine));
        let (behind, state) = (store.clone(), Arc::clone(&network));
        let let_through = Arc::new(tokio::sync::Notify::new());
        let gate = Arc::clone(&let_through);
        let (client, requests) = api(move |seen| {
            let network = *state.lock().unwrap();
            match network {
                Network::Fine => behind.answer(&seen.method, &seen.body),
                Network::Refuses => Reply::refusal(503, "ServiceUnavailable"),
                Network::Hangs => Reply::Never,
                Network::Held => Reply::Held(Arc::clone(&gate), Box::new(behind.answer(&seen.method, &seen.body))),
                Network::AnswersLost => {
                    behind.answer(&seen.method, &seen.body);
                    Reply::Never
                }
            }
        });
        let candidate = Candidate { namespace: "ops".to_owned(), lease: "fv".to_owned(), pod: pod.to_owned(), times };
        let clock = Clock::simulated("2031-05-04T03:02:01Z".parse().unwrap());
        let seed = pod.bytes().map(u64::from).sum();
        let (elector, leadership) = Elector::new(client, candidate, clock, &Entropy::seeded(seed));
        let drained = CancellationToken::new();
        let task = tokio::spawn(elector.run(drained.clone()));
        Self { leadership, network, drained, requests, task, let_through }
    }

    fn leads(&self) -> bool {
        self.leadership.is_leader_now()
    }

    /// Waits until it leads or does not lead any more.
    async fn changed(&mut self) {
        let before = self.leads();
        while self.leads() == before {
            self.leadership.changed().await;
        }
    }

    fn set(&self, network: Network) {
        *self.network.lock().unwrap() = network;
    }

    /// SIGKILL: nothing more is sent, nothing is given back.
    fn kill(&self) {
        self.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_the_second_stands_by() {
    let store = Store::default();
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    let b = Replica::start(&store, "b");
    sleep(seconds(60)).await;
    assert!(a.leads() && !b.leads());
    assert!(a.leadership.check().is_ok());
    assert_eq!(b.leadership.check(), Err(CallError::NotLeading));
    let spec = store.spec();
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    assert_eq!(spec["acquireTime"], "2031-05-04T03:02:01.000000Z");
    assert!(b.leadership.state().holder.unwrap().starts_with("a_"));
    assert!(b.requests.all().iter().all(|seen| seen.method == Method::GET), "a standby writes nothing");
}

#[tokio::test(start_paused = true)]
async fn two_that_start_together_are_one_leader() {
    let store = Store::default();
    let (a, b) = (Replica::start(&store, "a"), Replica::start(&store, "b"));
    for _ in 0..600 {
        sleep(Duration::from_millis(100)).await;
        assert!(!(a.leads() && b.leads()));
    }
    assert!(a.leads() ^ b.leads());
}

#[tokio::test(start_paused = true)]
async fn holding_it_costs_at_most_twelve_writes_a_minute() {
    let store = Store::default();
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    let (writes, calls) = (store.writes(), a.requests.count());
    sleep(seconds(600)).await;
    assert_eq!(store.writes() - writes, 120);
    assert_eq!(a.requests.count() - calls, 120, "a renewal is one call");
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_replaced_within_twenty_seconds() {
    // Killed at every moment of the period, right after a renewal included.
    for moment in 0..50 {
        let store = Store::default();
        let a = Replica::start(&store, "a");
        sleep(seconds(1)).await;
        let mut b = Replica::start(&store, "b");
        sleep(seconds(20) + Duration::from_millis(100 * moment + 1)).await;
        a.kill();
        tokio::time::timeout(seconds(20), b.leadership.gained()).await.expect("nobody leads");
        assert!(!a.leads(), "moment {moment}");
        assert_eq!(store.spec()["leaseTransitions"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_stop_hands_over_within_two_seconds() {
    let store = Store::default();
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    let mut b = Replica::start(&store, "b");
    sleep(seconds(33)).await;
    a.drained.cancel();
    sleep(Duration::from_millis(1)).await;
    assert!(!a.leads());
    tokio::time::timeout(seconds(2), b.leadership.gained()).await.expect("nobody leads");
    a.task.await.unwrap();
    assert_eq!(store.holder().as_deref(), Some("b"));
    assert_eq!(a.leadership.state().losses, 0, "given back is not lost");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_steps_down_before_another_takes_over() {
    for network in [Network::Hangs, Network::Refuses] {
        let store = Store::default();
        let mut a = Replica::start(&store, "a");
        sleep(seconds(1)).await;
        let b = Replica::start(&store, "b");
        sleep(seconds(31)).await;
        a.set(network);
        let cut = tokio::time::Instant::now();
        a.changed().await;
        let stepped_down = cut.elapsed();
        assert!(!a.leads() && !b.leads());
        assert!(stepped_down <= seconds(10), "{network:?}: {stepped_down:?}");
        while !b.leads() {
            assert!(!a.leads());
            sleep(Duration::from_millis(100)).await;
        }
        assert!(cut.elapsed() <= seconds(20));
        assert_eq!(a.leadership.state().losses, 1);
        assert!(a.leadership.state().last_error.is_some());
        // The process is still there and stands by.
        a.set(Network::Fine);
        sleep(seconds(60)).await;
        assert!(!a.leads() && b.leads());
        assert_eq!(a.leadership.state().last_error, None);
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_whose_answers_are_lost_do_not_prolong_leadership() {
    let store = Store::default();
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    a.set(Network::AnswersLost);
    sleep(seconds(11)).await;
    assert!(!a.leads(), "nobody told it that the renewals were stored");
    assert_eq!(store.holder().as_deref(), Some("a"));
    a.set(Network::Fine);
    sleep(seconds(6)).await;
    assert!(a.leads(), "the lease is still its own");
}

#[tokio::test(start_paused = true)]
async fn one_renewal_that_fails_costs_no_leadership() {
    for network in [Network::Hangs, Network::AnswersLost, Network::Refuses] {
        let store = Store::default();
        let a = Replica::start(&store, "a");
        sleep(seconds(1)).await;
        // The renewals due at 5 s, 10 s and so on, each in an outage that the right outlives.
        for _ in 0..5 {
            a.set(network);
            sleep(seconds(4)).await;
            a.set(Network::Fine);
            for _ in 0..60 {
                sleep(Duration::from_millis(100)).await;
                assert!(a.leads(), "{network:?}");
            }
        }
        assert_eq!(a.leadership.state().losses, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_slept_past_its_right_does_not_lead_when_it_wakes() {
    let store = Store::default();
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    assert!(a.leads());
    // Time passes and no task of the process gets to run: the clock is asked, not what was known before.
    a.set(Network::Hangs);
    advance(seconds(11)).await;
    assert!(!a.leads());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_looked_at_too_late_prolongs_nothing() {
    let store = Store::default();
    let mut a = Replica::start(&store, "a");
    // The renewal at 5 s is under way.
    sleep(seconds(4)).await;
    a.set(Network::Held);
    sleep(seconds(2)).await;
    assert!(a.leads());
    // It is answered, and before any task gets to run the right ends at 10 s. The renewal alone would carry it to 15 s.
    a.let_through.notify_one();
    a.set(Network::Fine);
    let losses = || a.leadership.state().losses;
    assert_eq!(losses(), 0);
    advance(seconds(6)).await;
    assert!(!a.leads());
    assert_eq!(losses(), 1, "it is a loss like any other: what ran under the old right is over");
    a.leadership.changed().await;
    // The lease was its own all the time, so a new term begins with the next turn.
    tokio::time::timeout(seconds(2), a.leadership.gained()).await.expect("it does not lead again");
}

#[tokio::test(start_paused = true)]
async fn sleep_of_the_machine_uses_the_right_up_although_the_clock_stood_still() {
    let store = Store::default();
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    assert!(a.leads());
    // Nine of the ten seconds are left by the clock that nothing was added to.
    a.leadership.shared.sleeps.add(seconds(8));
    assert!(a.leads());
    a.leadership.shared.sleeps.add(seconds(2));
    assert!(!a.leads());
    assert_eq!(a.leadership.check(), Err(CallError::NotLeading));
    sleep(seconds(5)).await;
    assert_eq!(a.leadership.state().losses, 1);
    assert!(a.leads(), "nobody else took it");
}

#[tokio::test(start_paused = true)]
async fn shorter_times_are_obeyed() {
    let times =
        LeaseTimes { duration: seconds(3), renew_deadline: seconds(2), retry_period: Duration::from_millis(500) };
    let store = Store::default();
    let a = Replica::with(&store, "a", times);
    sleep(seconds(1)).await;
    let mut b = Replica::with(&store, "b", times);
    sleep(seconds(10)).await;
    assert_eq!(store.spec()["leaseDurationSeconds"], 3);
    a.kill();
    let killed = tokio::time::Instant::now();
    tokio::time::timeout(seconds(5), b.leadership.gained()).await.expect("nobody leads");
    assert!(killed.elapsed() >= seconds(2), "the holder is respected for its three seconds");
}

#[tokio::test(start_paused = true)]
async fn a_lease_taken_away_by_hand_is_not_fought_for() {
    let store = Store::default();
    let mut a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    store.edit(&json!({"holderIdentity": "someone-else", "leaseDurationSeconds": 40}));
    tokio::time::timeout(seconds(6), a.changed()).await.unwrap();
    assert!(!a.leads());
    sleep(seconds(30)).await;
    assert!(!a.leads(), "the holder's own duration is respected");
    sleep(seconds(12)).await;
    assert!(a.leads());
    assert_eq!(store.spec()["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_anew_without_a_break() {
    let store = Store::default();
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    store.delete();
    for _ in 0..200 {
        sleep(Duration::from_millis(100)).await;
        assert!(a.leads());
    }
    assert_eq!(store.holder().as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_lease_is_taken_after_its_time_as_observed_here() {
    let store = Store::default();
    // Clocks are never compared: this renewal claims to be from the future.
    store.edit(
        &json!({"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z"}),
    );
    let a = Replica::start(&store, "a");
    sleep(seconds(14)).await;
    assert!(!a.leads());
    sleep(seconds(2)).await;
    assert!(a.leads());
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_of_another_implementation_is_free() {
    let store = Store::default();
    store.edit(&json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 4}));
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    assert!(a.leads());
    assert_eq!(store.spec()["leaseTransitions"], 5);
}

#[tokio::test(start_paused = true)]
async fn stopping_while_the_api_hangs_does_not_hang() {
    let store = Store::default();
    let a = Replica::start(&store, "a");
    sleep(seconds(1)).await;
    a.set(Network::Hangs);
    a.drained.cancel();
    tokio::time::timeout(seconds(2) + Duration::from_millis(1), a.task).await.unwrap().unwrap();
    assert!(!a.leadership.is_leader_now());
}

#[tokio::test(start_paused = true)]
async fn the_only_replica_always_leads() {
    let mut leadership = Leadership::always();
    assert!(leadership.is_leader_now());
    leadership.gained().await;
    let waited = tokio::time::timeout(seconds(1_000), leadership.changed()).await;
    assert!(waited.is_err(), "nothing ever changes");
}
