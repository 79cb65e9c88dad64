//! The election with every fault at every call: never two leaders, and always one again soon after.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrvault_operator::clock::Clock;
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::leader::{Candidate, Elector, Leadership, LeaseTimes};
use ferrvault_testkit::{ApiServer, Fault, Plan, Verb};
use k8s_openapi::api::coordination::v1::Lease;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

type Leaderships = Arc<Mutex<Vec<(&'static str, Leadership)>>>;

/// Everybody who ever led beside another, and when.
type Overlaps = Arc<Mutex<Vec<String>>>;

struct Room {
    server: ApiServer,
    replicas: Leaderships,
    overlaps: Overlaps,
    /// Ends with the room: what one run leaves behind must not go on in the next.
    tasks: Mutex<JoinSet<()>>,
}

impl Room {
    fn new(names: &[&'static str]) -> Self {
        let room = Self {
            server: ApiServer::default(),
            replicas: Arc::default(),
            overlaps: Arc::default(),
            tasks: Mutex::default(),
        };
        for name in names {
            room.start(name);
        }
        room
    }

    /// Starts a replica; the token ends it cleanly.
    fn start(&self, name: &'static str) -> CancellationToken {
        let candidate = Candidate {
            namespace: "ferrvault-system".to_owned(),
            lease: "ferrvault-operator.ferrvault.com".to_owned(),
            pod: name.to_owned(),
            times: LeaseTimes::default(),
        };
        let clock = Clock::simulated(self.server.now());
        let entropy = Entropy::seeded(name.bytes().map(u64::from).sum());
        let (elector, leadership) = Elector::new(self.server.client_as(name), candidate, clock, &entropy);
        let drained = CancellationToken::new();
        self.replicas.lock().unwrap().push((name, leadership.clone()));
        let looks = look_at_each_gain(leadership, Arc::clone(&self.replicas), Arc::clone(&self.overlaps));
        let mut tasks = self.tasks.lock().unwrap();
        tasks.spawn(elector.run(drained.clone()));
        tasks.spawn(looks);
        drained
    }

    /// Those who lead now and whose process has not ended.
    fn leaders(&self) -> Vec<&'static str> {
        leading(&self.replicas).into_iter().filter(|name| !self.server.has_ended(name)).collect()
    }

    async fn pass(&self, time: Duration, story: &str) {
        sleep(time).await;
        assert_eq!(*self.overlaps.lock().unwrap(), [""; 0], "{story}\n{}", self.server.story());
    }
}

/// Those who lead now, ended processes included: what they had begun may still arrive.
fn leading(replicas: &Leaderships) -> Vec<&'static str> {
    let replicas = replicas.lock().unwrap();
    replicas.iter().filter(|(_, leadership)| leadership.is_leader_now()).map(|(name, _)| *name).collect()
}

/// Two lead at once only if one of them begins while the other does, so these are the moments to look at.
async fn look_at_each_gain(mut leadership: Leadership, replicas: Leaderships, overlaps: Overlaps) {
    loop {
        leadership.gained().await;
        let names = leading(&replicas);
        if names.len() > 1 {
            overlaps.lock().unwrap().push(names.join(" beside "));
        }
        while leadership.is_leader_now() {
            leadership.changed().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_look_at_each_gain_sees_two_that_lead() {
    let room = Room::new(&["one"]);
    sleep(Duration::from_secs(1)).await;
    // Somebody deletes the Lease and keeps the first from seeing it: the one thing that an election cannot survive.
    room.server.on_call(|call| if call.who == "one" { Fault::LostRequest } else { Fault::None });
    room.server.delete::<Lease>("ferrvault-system", "ferrvault-operator.ferrvault.com");
    room.start("other");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*room.overlaps.lock().unwrap(), ["one beside other"]);
}

#[tokio::test(start_paused = true)]
async fn each_fault_at_each_call_leaves_at_most_one_leader_and_soon_one_again() {
    let mut faults = Fault::every();
    // The other refusals are treated alike.
    faults.retain(|fault| !matches!(fault, Fault::Refuse(code) if ![403, 404, 409, 500].contains(code)));
    faults.push(Fault::Late(Duration::from_secs(7)));
    faults.push(Fault::Late(Duration::from_secs(16)));
    faults.push(Fault::Slow(Duration::from_secs(4)));
    faults.push(Fault::Nonsense(404, "404 page not found".to_owned()));
    faults.push(Fault::Nonsense(200, "{}".to_owned()));
    for fault in &faults {
        for number in 1..=16 {
            let story = format!("{fault} at {number}");
            let room = Room::new(&["one", "other"]);
            room.server.set_plan(Plan::new().at(number, fault.clone()));
            room.pass(Duration::from_secs(50), &story).await;
            assert_eq!(room.leaders().len(), 1, "{story}\n{}", room.server.story());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_faults_never_makes_two_leaders() {
    for seed in 0..12 {
        let room = Room::new(&["one", "two", "three"]);
        let rng = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        let draw = Arc::clone(&rng);
        room.server.on_call(move |_| {
            let mut rng = draw.lock().unwrap();
            match rng.u8(..12) {
                0 => Fault::LostRequest,
                1 => Fault::LostAnswer,
                2 => Fault::Refuse(503),
                3 => Fault::ResetAfter,
                4 => Fault::Late(Duration::from_millis(rng.u64(..20_000))),
                5 => Fault::Slow(Duration::from_millis(rng.u64(..20_000))),
                6 => Fault::Stale(rng.u64(1..4)),
                _ => Fault::None,
            }
        });
        room.pass(Duration::from_mins(4), &format!("seed {seed}")).await;
        room.server.clear_faults();
        room.pass(Duration::from_secs(36), &format!("seed {seed}")).await;
        assert_eq!(room.leaders().len(), 1, "seed {seed}\n{}", room.server.story());
    }
}

#[tokio::test(start_paused = true)]
async fn the_right_counts_from_before_the_request_that_renewed_it() {
    let room = Room::new(&["one"]);
    sleep(Duration::from_secs(2)).await;
    let mut updates = 0;
    room.server.on_call(move |call| {
        updates += usize::from(call.verb == Verb::Update);
        match updates {
            // Stored at once, so others count from now; the answer takes its time.
            1 => Fault::Slow(Duration::from_secs(4)),
            _ => Fault::LostRequest,
        }
    });
    // The first renewal is sent at 5 s.
    sleep(Duration::from_millis(12_900)).await;
    assert_eq!(room.leaders(), ["one"]);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(room.leaders(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_hands_over_without_a_gap_of_more_than_two_seconds() {
    let room = Room::new(&[]);
    let drained = room.start("old");
    room.pass(Duration::from_secs(12), "old alone").await;
    room.start("new");
    room.pass(Duration::from_secs(12), "both").await;
    assert_eq!(room.leaders(), ["old"]);
    drained.cancel();
    room.pass(Duration::from_secs(2), "handing over").await;
    assert_eq!(room.leaders(), ["new"]);
    let lease: Lease = room.server.get("ferrvault-system", "ferrvault-operator.ferrvault.com").unwrap();
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_written_is_told_and_taken_once_it_may() {
    let room = Room::new(&[]);
    room.server.deny("one", "create", "leases");
    room.start("one");
    let leadership = room.replicas.lock().unwrap()[0].1.clone();
    sleep(Duration::from_secs(30)).await;
    assert!(!leadership.is_leader_now());
    let error = leadership.state().last_error.unwrap();
    assert!(error.contains("cannot create leases.coordination.k8s.io"), "{error}");
    room.server.allow_again("one", "create", "leases");
    sleep(Duration::from_secs(2)).await;
    assert!(leadership.is_leader_now());
    assert_eq!(leadership.state().last_error, None);
}
