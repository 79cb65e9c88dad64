//! The store as a table of what came and what was told.

use std::sync::Mutex;

use ferrvault_api::secret::{ConnectionRef, FerrVaultSecret, FerrVaultSecretSpec, FerrVaultSecretStatus, Selector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use proptest::prelude::*;

use super::*;

type Told = Arc<Mutex<Vec<String>>>;

fn resource(name: &str, uid: &str, version: u64) -> FerrVaultSecret {
    let spec = FerrVaultSecretSpec {
        connection_ref: ConnectionRef { name: "main".to_owned() },
        project: None,
        vault: "v".to_owned(),
        selector: None,
        target: None,
        refresh_interval: None,
        rollout_restart: Vec::new(),
        transforms: Vec::new(),
        suspend: None,
    };
    let mut resource = FerrVaultSecret::new(name, spec);
    resource.metadata.namespace = Some("shop".to_owned());
    resource.metadata.uid = Some(uid.to_owned());
    resource.metadata.resource_version = Some(version.to_string());
    resource
}

fn reading_through(connection: &str, mut resource: FerrVaultSecret) -> FerrVaultSecret {
    connection.clone_into(&mut resource.spec.connection_ref.name);
    resource
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("shop", name)
}

fn version(resource: &FerrVaultSecret) -> &str {
    resource.metadata.resource_version.as_deref().unwrap()
}

fn store() -> (Kept<FerrVaultSecret>, Told) {
    let told = Told::default();
    let teller = Arc::clone(&told);
    let kept = Kept::new(move |_, change| {
        let line = match &change {
            Change::Added(new) => format!("+{}", version(new)),
            Change::Changed { old, new } => format!("{}>{}", version(old), version(new)),
            Change::Removed(old) => format!("-{}", version(old)),
        };
        teller.lock().unwrap().push(line);
    });
    (kept, told)
}

fn told(told: &Told) -> Vec<String> {
    std::mem::take(&mut *told.lock().unwrap())
}

#[test]
fn a_watch_adds_changes_and_removes() {
    let (kept, log) = store();
    let mut sink = kept.sink();
    sink.applied(resource("a", "u1", 1));
    sink.applied(resource("a", "u1", 2));
    assert_eq!(version(&kept.get(&key("a")).unwrap()), "2");
    sink.deleted(&resource("a", "u1", 3).metadata);
    assert!(kept.get(&key("a")).is_none());
    assert!(kept.is_empty());
    assert_eq!(told(&log), ["+1", "1>2", "-2"]);
}

#[test]
fn our_own_write_is_told_once_and_its_echo_not_at_all() {
    let (kept, log) = store();
    let mut sink = kept.sink();
    sink.applied(resource("a", "u1", 1));
    assert!(kept.insert_if_newer(resource("a", "u1", 5)));
    sink.applied(resource("a", "u1", 5));
    assert_eq!(told(&log), ["+1", "1>5"]);
}

#[test]
fn an_older_state_never_replaces_a_newer_one_from_either_side() {
    let (kept, log) = store();
    let mut sink = kept.sink();
    sink.applied(resource("a", "u1", 9));
    sink.applied(resource("a", "u1", 8));
    assert!(!kept.insert_if_newer(resource("a", "u1", 7)));
    assert!(!kept.insert_if_newer(resource("a", "u1", 9)));
    // As numbers, not as text.
    sink.applied(resource("a", "u1", 10));
    assert_eq!(version(&kept.get(&key("a")).unwrap()), "10");
    assert_eq!(told(&log), ["+9", "9>10"]);
}

#[test]
fn an_edit_that_only_our_own_write_showed_is_told() {
    let (kept, log) = store();
    kept.sink().applied(resource("a", "u1", 1));
    // Version 2 was somebody's edit; the answer to our write carries it and is version 3.
    kept.insert_if_newer(reading_through("other", resource("a", "u1", 3)));
    kept.sink().applied(reading_through("other", resource("a", "u1", 2)));
    assert_eq!(told(&log), ["+1", "1>3"]);
    assert_eq!(kept.get(&key("a")).unwrap().spec.connection_ref.name, "other");
}

#[test]
fn a_late_answer_does_not_bring_a_deleted_object_back() {
    let (kept, log) = store();
    let mut sink = kept.sink();
    sink.applied(resource("a", "u1", 1));
    sink.deleted(&resource("a", "u1", 3).metadata);
    assert!(!kept.insert_if_newer(resource("a", "u1", 2)));
    sink.applied(resource("a", "u2", 4));
    assert!(!kept.insert_if_newer(resource("a", "u1", 9)));
    assert_eq!(told(&log), ["+1", "-1", "+4"]);
}

#[test]
fn events_that_come_twice_do_no_harm() {
    let (kept, log) = store();
    let mut sink = kept.sink();
    for _ in 0..2 {
        sink.applied(resource("a", "u1", 1));
        sink.deleted(&resource("a", "u1", 2).metadata);
    }
    sink.applied(resource("a", "u2", 3));
    sink.deleted(&resource("a", "u1", 2).metadata);
    assert_eq!(told(&log), ["+1", "-1", "+3"]);
}

#[test]
fn recreation_that_nobody_watched_is_a_removal_and_an_addition() {
    let (kept, log) = store();
    let mut sink = kept.sink();
    sink.applied(resource("a", "u1", 5));
    sink.applied(resource("a", "u2", 6));
    assert_eq!(told(&log), ["+5", "-5", "+6"]);
}

#[test]
fn what_a_complete_list_does_not_name_is_gone() {
    let (kept, log) = store();
    let mut sink = kept.sink();
    for (name, version) in [("a", 1), ("b", 2), ("c", 3)] {
        sink.applied(resource(name, name, version));
    }
    told(&log);
    sink.relist_started();
    sink.applied(resource("a", "a", 1));
    // Broken off: nothing may be concluded from half a list.
    sink.relist_started();
    sink.applied(resource("b", "b", 4));
    assert_eq!(told(&log), ["2>4"]);
    sink.relist_done();
    assert_eq!(told(&log), ["-1", "-3"]);
    assert_eq!(kept.all().len(), 1);
}

#[test]
fn an_object_that_cannot_be_read_is_there_all_the_same() {
    let (kept, log) = store();
    let mut sink = kept.sink();
    sink.applied(resource("a", "u1", 1));
    sink.relist_started();
    sink.undecodable("shop", "a", "spec.vault is missing");
    sink.undecodable("shop", "b", "spec.vault is missing");
    sink.relist_done();
    assert_eq!(told(&log), ["+1"]);
    let why = "spec.vault is missing".to_owned();
    assert_eq!(kept.unreadable(), [(key("a"), why.clone()), (key("b"), why)]);
    sink.applied(resource("a", "u1", 2));
    sink.deleted(&resource("b", "u2", 3).metadata);
    assert!(kept.unreadable().is_empty());
    assert_eq!(told(&log), ["1>2"]);
}

#[test]
fn an_unreadable_object_that_the_next_list_lacks_is_forgotten() {
    let (kept, _) = store();
    let mut sink = kept.sink();
    sink.undecodable("shop", "b", "spec.vault is missing");
    sink.relist_started();
    sink.relist_done();
    assert!(kept.unreadable().is_empty());
}

#[test]
fn who_refers_to_what_follows_every_change() {
    let (kept, _) = store();
    let mut sink = kept.sink();
    sink.applied(resource("a", "a", 1));
    sink.applied(reading_through("other", resource("b", "b", 2)));
    sink.applied(resource("c", "c", 3));
    assert_eq!(kept.referring(Relation::Connection, &key("main")), [key("a"), key("c")]);
    assert_eq!(kept.referring(Relation::Connection, &key("other")), [key("b")]);
    assert_eq!(kept.referring(Relation::Target, &key("b")), [key("b")]);
    assert!(kept.referring(Relation::Token, &key("main")).is_empty());
    assert!(kept.referring(Relation::Connection, &ObjectKey::new("else", "main")).is_empty());

    sink.applied(reading_through("other", resource("a", "a", 4)));
    sink.deleted(&resource("b", "b", 5).metadata);
    assert_eq!(kept.referring(Relation::Connection, &key("main")), [key("c")]);
    assert_eq!(kept.referring(Relation::Connection, &key("other")), [key("a")]);
    assert!(kept.referring(Relation::Target, &key("b")).is_empty());
}

#[test]
fn a_namespace_is_listed_without_its_neighbours() {
    let (kept, _) = store();
    for (namespace, name) in [("sho", "z"), ("shop", "b"), ("shop", "a"), ("shop-2", "a")] {
        let mut resource = resource(name, name, 1);
        resource.metadata.namespace = Some(namespace.to_owned());
        kept.sink().applied(resource);
    }
    let names: Vec<_> = kept.in_namespace("shop").iter().map(|r| r.metadata.name.clone().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn what_no_pass_reads_is_not_kept() {
    let (kept, _) = store();
    let mut resource = resource("a", "u1", 1);
    resource.metadata.managed_fields = Some(vec![ManagedFieldsEntry::default()]);
    resource.metadata.labels = Some([("team".to_owned(), "shop".to_owned())].into());
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration".to_owned();
    let refresh = "ferrvault.com/refresh".to_owned();
    resource.metadata.annotations = Some([(last_applied, "{}".to_owned()), (refresh.clone(), "1".to_owned())].into());
    resource.status = Some(FerrVaultSecretStatus::default());
    kept.sink().applied(resource);
    let kept = kept.get(&key("a")).unwrap();
    assert_eq!(kept.metadata.managed_fields, None);
    assert_eq!(kept.metadata.labels, None);
    assert_eq!(kept.metadata.annotations, Some([(refresh, "1".to_owned())].into()));
    assert!(kept.status.is_some());
}

#[test]
fn texts_that_many_objects_share_are_there_once() {
    let (kept, _) = store();
    for name in ["a", "b", "c"] {
        kept.sink().applied(resource(name, name, 1));
    }
    let contents = kept.lock();
    let namespaces: Vec<_> = contents.objects.keys().map(|key| &key.namespace).collect();
    assert!(namespaces.iter().all(|namespace| Arc::ptr_eq(namespace, namespaces[0])));
    let connections: Vec<_> =
        contents.references.iter().filter(|(is, ..)| *is == Relation::Connection).map(|(_, to, _)| &to.name).collect();
    assert_eq!(connections.len(), 3);
    assert!(connections.iter().all(|name| Arc::ptr_eq(name, connections[0])));
}

#[test]
fn lists_are_kept_without_room_to_grow() {
    let (kept, _) = store();
    let mut resource = resource("a", "u1", 1);
    let mut names = Vec::with_capacity(16);
    names.push("A".to_owned());
    resource.spec.selector = Some(Selector { names });
    kept.sink().applied(resource);
    assert!(kept.get(&key("a")).unwrap().spec.selector.as_ref().unwrap().names.capacity() < 16);
}

#[test]
fn the_handler_may_ask_and_even_feed_the_store_that_tells_it() {
    let own: Arc<Mutex<Option<Kept<FerrVaultSecret>>>> = Arc::default();
    let log = Told::default();
    let (within, line) = (Arc::clone(&own), Arc::clone(&log));
    let kept = Kept::new(move |_, change| {
        let kept = within.lock().unwrap().clone().unwrap();
        if let Change::Added(new) = &change {
            assert_eq!(kept.len(), 1);
            assert!(kept.insert_if_newer(resource("a", "u1", 2)));
            // Told after this call, not inside it.
            assert_eq!(version(new), "1");
            line.lock().unwrap().push("added".to_owned());
        } else {
            line.lock().unwrap().push("changed".to_owned());
        }
    });
    *own.lock().unwrap() = Some(kept.clone());
    kept.sink().applied(resource("a", "u1", 1));
    assert_eq!(told(&log), ["added", "changed"]);
}

#[test]
fn a_handler_that_panics_does_not_silence_the_store() {
    let (count, log) = (Mutex::new(0), Told::default());
    let line = Arc::clone(&log);
    let kept = Kept::new(move |_, _: Change<FerrVaultSecret>| {
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        assert_ne!(*count, 1, "the first change is too much");
        line.lock().unwrap().push("told".to_owned());
    });
    let first = std::thread::spawn({
        let kept = kept.clone();
        move || kept.sink().applied(resource("a", "u1", 1))
    });
    assert!(first.join().is_err());
    kept.sink().applied(resource("a", "u1", 2));
    assert_eq!(told(&log), ["told"]);
}

proptest! {
    /// Whatever the two sides deliver, and in whatever order, versions of one object only rise, each told once.
    #[test]
    fn versions_only_rise(feed in proptest::collection::vec((any::<bool>(), 1_u64..20), 0..60)) {
        let (kept, log) = store();
        let mut sink = kept.sink();
        let mut highest = 0;
        let mut expected = Vec::new();
        for (own_write, number) in feed {
            let object = resource("a", "u1", number);
            if own_write { kept.insert_if_newer(object); } else { sink.applied(object); }
            let is_first = highest == 0;
            if number > highest && !(is_first && own_write) {
                expected.push(if is_first { format!("+{number}") } else { format!("{highest}>{number}") });
                highest = number;
            }
        }
        prop_assert_eq!(told(&log), expected);
    }
}
