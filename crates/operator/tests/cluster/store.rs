//! A store fed by a watch ends up equal to what the API server holds, whatever happened on the way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrvault_api::secret::FerrVaultSecret;
use ferrvault_operator::cluster::store::{Change, Kept, Relation};
use ferrvault_operator::cluster::watch::{Scope, Started, spawn_resources};
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::key::ObjectKey;
use ferrvault_testkit::{ApiServer, Break, EventFault, Fault, Verb, build};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What somebody who only hears of changes believes to be there: name -> (uid, resource version).
type Heard = Arc<Mutex<BTreeMap<String, (String, u64)>>>;

struct Room {
    server: ApiServer,
    client: Client,
    kept: Kept<FerrVaultSecret>,
    heard: Heard,
    watch: Started,
    stop: CancellationToken,
}

fn identity(resource: &FerrVaultSecret) -> (String, u64) {
    (resource.uid().unwrap(), resource.resource_version().unwrap().parse().unwrap())
}

impl Drop for Room {
    /// What one run leaves behind must not go on in the next.
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Believes a change, and fails where it does not follow from what was heard before.
fn hear(heard: &Heard, change: &Change<FerrVaultSecret>) {
    let mut heard = heard.lock().unwrap();
    match change {
        Change::Added(new) => {
            assert_eq!(heard.insert(new.name_any(), identity(new)), None, "added twice");
        }
        Change::Changed { old, new } => {
            assert_eq!(identity(old).0, identity(new).0, "a change is of one object");
            assert!(identity(old).1 < identity(new).1, "a change goes forward");
            assert_eq!(heard.insert(new.name_any(), identity(new)), Some(identity(old)));
        }
        Change::Removed(old) => assert_eq!(heard.remove(&old.name_any()), Some(identity(old))),
    }
}

impl Room {
    fn new(seed: u64) -> Self {
        let server = ApiServer::default();
        let heard = Heard::default();
        let hearing = Arc::clone(&heard);
        let kept = Kept::new(move |_, change| hear(&hearing, &change));
        let client = server.client("default");
        let stop = CancellationToken::new();
        let watch = spawn_resources(&client, &Scope::Cluster, kept.sink(), &Entropy::seeded(seed), &stop);
        Self { server, client, kept, heard, watch, stop }
    }

    fn stored(&self) -> BTreeMap<String, (String, u64)> {
        let list: Vec<FerrVaultSecret> = self.server.list("default");
        list.iter().map(|resource| (resource.name_any(), identity(resource))).collect()
    }

    fn kept(&self) -> BTreeMap<String, (String, u64)> {
        self.kept.all().iter().map(|resource| (resource.name_any(), identity(resource))).collect()
    }

    /// Somebody makes, edits or deletes a resource, or makes it anew.
    fn edit(&self, rng: &mut fastrand::Rng) {
        let name = NAMES[rng.usize(..NAMES.len())];
        let exists = self.server.get::<FerrVaultSecret>("default", name).is_some();
        if exists && rng.u8(..4) == 0 {
            self.server.delete::<FerrVaultSecret>("default", name);
        } else if exists {
            let vault = format!("v{}", rng.u16(..));
            self.server.edit::<FerrVaultSecret>("default", name, |object| object["spec"]["vault"] = json!(vault));
        } else {
            self.server.apply(&build::fvs("default", name));
        }
    }

    /// A status write of our own, whose answer goes into the store.
    async fn write_status(&self, rng: &mut fastrand::Rng) {
        let name = NAMES[rng.usize(..NAMES.len())];
        let resources: Api<FerrVaultSecret> = Api::namespaced(self.client.clone(), "default");
        let patch = Patch::Merge(json!({"status": {"contentHash": format!("h{}", rng.u16(..))}}));
        let params = PatchParams::default();
        let write = resources.patch_status(name, &params, &patch);
        if let Ok(Ok(written)) = tokio::time::timeout(Duration::from_secs(10), write).await {
            let key = ObjectKey::new("default", name);
            let (uid, version) = identity(&written);
            self.kept.insert_if_newer(written);
            if let Some(kept) = self.kept.get(&key)
                && identity(&kept).0 == uid
            {
                assert!(identity(&kept).1 >= version, "a pass after this write would see the object from before it");
            }
        }
    }
}

fn any_fault(rng: &mut fastrand::Rng) -> Fault {
    let mut faults = Fault::every();
    // The process goes on in this test; what happens when it ends is another one's subject.
    faults.retain(|fault| !matches!(fault, Fault::CutBefore | Fault::CutAfter));
    faults.push(Fault::Nonsense(200, "{\"kind\": \"no list\"}".to_owned()));
    faults.push(Fault::Nonsense(404, "404 page not found".to_owned()));
    faults.push(Fault::Slow(Duration::from_secs(20)));
    faults.swap_remove(rng.usize(..faults.len()))
}

fn any_event_fault(rng: &mut fastrand::Rng) -> EventFault {
    match rng.u8(..10) {
        0 => EventFault::Late(Duration::from_millis(rng.u64(..30_000))),
        1 => EventFault::Twice,
        2 => EventFault::Dropped,
        _ => EventFault::None,
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_on_the_way_the_store_ends_up_as_the_server() {
    for seed in 0..40 {
        let room = Room::new(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut faults = rng.fork();
        room.server.on_call(move |call| match call.verb {
            // A stale list would be older than what was seen: not a fault that the reads asked for here can meet.
            Verb::List | Verb::Watch if faults.u8(..3) == 0 => match any_fault(&mut faults) {
                Fault::Stale(_) => Fault::None,
                fault => fault,
            },
            _ => Fault::None,
        });
        let mut events = rng.fork();
        room.server.on_event(move |_| any_event_fault(&mut events));
        for _ in 0..80 {
            match rng.u8(..10) {
                0..6 => room.edit(&mut rng),
                6 | 7 => room.write_status(&mut rng).await,
                8 => room.server.compact(),
                _ => {
                    let how = [Break::Silent, Break::Close, Break::Reset, Break::Expire][rng.usize(..4)];
                    room.server.break_watches(how, |_| true);
                }
            }
            sleep(Duration::from_millis(rng.u64(..20_000))).await;
        }
        room.server.clear_faults();
        // An event that never came is found by the next list: within an hour and the watch that was open then.
        sleep(Duration::from_mins(65)).await;
        let stored = room.stored();
        assert_eq!(room.kept(), stored, "seed {seed}\n{}", room.server.story());
        assert_eq!(*room.heard.lock().unwrap(), stored, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_lost_events_the_store_is_right_within_seconds_of_the_last_fault() {
    for how in [Break::Silent, Break::Close, Break::Reset, Break::Expire] {
        let room = Room::new(1);
        room.server.apply(&build::fvs("default", "a"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(room.kept(), room.stored());
        room.server.break_watches(how, |_| true);
        room.server.delete::<FerrVaultSecret>("default", "a");
        room.server.apply(&build::fvs("default", "b"));
        let patience = if how == Break::Silent { 101 } else { 2 };
        sleep(Duration::from_secs(patience)).await;
        assert_eq!(room.kept(), room.stored(), "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_fault_at_each_of_the_first_calls_is_survived() {
    for fault in Fault::every() {
        if matches!(fault, Fault::CutBefore | Fault::CutAfter) {
            continue;
        }
        for number in 1..=4 {
            let room = Room::new(1);
            room.server.apply(&build::fvs("default", "a"));
            let mut watched = 0;
            let faulty = fault.clone();
            room.server.on_call(move |call| {
                watched += usize::from(matches!(call.verb, Verb::List | Verb::Watch));
                if watched == number { faulty.clone() } else { Fault::None }
            });
            sleep(Duration::from_secs(130)).await;
            room.server.apply(&build::fvs("default", "b"));
            sleep(Duration::from_secs(130)).await;
            assert_eq!(room.kept(), room.stored(), "{fault} at {number}\n{}", room.server.story());
            assert!(room.watch.health.is_synced());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_watch_costs_less_than_two_calls_a_minute() {
    let room = Room::new(1);
    sleep(Duration::from_secs(1)).await;
    let before = room.server.last_call();
    sleep(Duration::from_mins(30)).await;
    let calls = room.server.last_call() - before;
    assert!((20..=40).contains(&calls), "{calls} in half an hour\n{}", room.server.story());
    let state = room.watch.health.snapshot();
    assert_eq!((state.lists, state.losses, state.failures), (1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn references_are_those_of_the_objects_that_are_there() {
    let room = Room::new(1);
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        room.edit(&mut rng);
        sleep(Duration::from_millis(5)).await;
    }
    let connection = room.kept.all()[0].spec.connection_ref.name.clone();
    let users = room.kept.referring(Relation::Connection, &ObjectKey::new("default", connection));
    let names: Vec<String> = users.iter().map(|key| key.name.to_string()).collect();
    assert_eq!(names, room.stored().into_keys().collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_late_is_watched_as_soon_as_it_is_served() {
    let server = ApiServer::new(ferrvault_testkit::Options { custom_resources: false, ..Default::default() });
    let kept: Kept<FerrVaultSecret> = Kept::new(|_, _| {});
    let stop = CancellationToken::new();
    let client = server.client("default");
    let watch = spawn_resources(&client, &Scope::Cluster, kept.sink(), &Entropy::seeded(1), &stop);
    sleep(Duration::from_mins(5)).await;
    let state = watch.health.snapshot();
    assert!(!state.synced);
    assert!(state.last_error.unwrap().ends_with("is the CRD installed?"));
    server.install_product();
    server.apply(&build::fvs("default", "a"));
    sleep(Duration::from_secs(38)).await;
    assert!(watch.health.is_synced());
    assert_eq!(kept.len(), 1);
}
