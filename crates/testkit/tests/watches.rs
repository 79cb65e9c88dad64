//! Watches as real clients see them: kube's `watcher` and `reflector` over the model, under paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_testkit::{ApiServer, Break, EventFault, Fault, Verb, build};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, ResourceExt as _};
use tokio::time::{Instant, timeout};

const LONG: Duration = Duration::from_hours(1);

/// The next event in short: `init`, `+a`, `done`, `a`, `-a`, or `error`.
async fn next<K: kube::Resource>(stream: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin)) -> String {
    let event = timeout(LONG, stream.next()).await.expect("an event within an hour").expect("an endless stream");
    match event {
        Ok(Event::Init) => "init".to_owned(),
        Ok(Event::InitApply(object)) => format!("+{}", object.name_any()),
        Ok(Event::InitDone) => "done".to_owned(),
        Ok(Event::Apply(object)) => object.name_any(),
        Ok(Event::Delete(object)) => format!("-{}", object.name_any()),
        Err(_) => "error".to_owned(),
    }
}

async fn several<K: kube::Resource>(
    count: usize,
    stream: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
) -> Vec<String> {
    let mut events = Vec::new();
    for _ in 0..count {
        events.push(next(stream).await);
    }
    events
}

/// Whole seconds, to the nearest: a timer may be a millisecond off.
fn seconds_since(before: Instant) -> u64 {
    (before.elapsed() + Duration::from_millis(500)).as_secs()
}

/// How often each of LIST and WATCH was asked for.
fn lists_and_watches(api: &ApiServer) -> (usize, usize) {
    let journal = api.journal();
    let count = |verb| journal.iter().filter(|record| record.call.verb == verb).count();
    (count(Verb::List), count(Verb::Watch))
}

fn secrets(api: &ApiServer) -> Api<Secret> {
    Api::namespaced(api.client("default"), "default")
}

/// A watcher that has seen its first list, of one Secret called `first`, and reads on by itself.
async fn started(
    api: &ApiServer,
    config: Config,
) -> impl Stream<Item = watcher::Result<Event<Secret>>> + Unpin + use<> {
    api.apply(&build::secret("default", "first"));
    let mut stream = Box::pin(watcher(secrets(api), config).default_backoff());
    assert_eq!(several(3, &mut stream).await, ["init", "+first", "done"]);
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(event) = stream.next().await {
            if send.send(event).is_err() {
                return;
            }
        }
    });
    // The first millisecond of nothing to do: the watch has been asked for by then.
    tokio::time::sleep(Duration::from_millis(1)).await;
    Box::pin(futures::stream::poll_fn(move |context| receive.poll_recv(context)))
}

#[tokio::test(start_paused = true)]
async fn what_is_there_comes_first_and_then_what_happens() {
    let api = ApiServer::default();
    let mut stream = started(&api, Config::default()).await;
    api.apply(&build::secret("default", "second"));
    api.apply(&build::secret("elsewhere", "other"));
    api.apply(&build::secret("default", "first").key("k", "v"));
    api.delete::<Secret>("default", "second");
    assert_eq!(several(3, &mut stream).await, ["second", "first", "-second"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_is_no_event() {
    let api = ApiServer::default();
    let mut stream = started(&api, Config::default()).await;
    api.apply(&build::secret("default", "first"));
    assert!(timeout(Duration::from_mins(4), stream.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn selectors_turn_changes_into_arrivals_and_departures() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "a").labelled("mine", "yes"));
    api.apply(&build::secret("default", "b"));
    let mut stream = Box::pin(watcher(secrets(&api), Config::default().labels("mine=yes")));
    assert_eq!(several(3, &mut stream).await, ["init", "+a", "done"]);
    api.apply(&build::secret("default", "b").labelled("mine", "yes"));
    api.apply(&build::secret("default", "a").labelled("mine", "no"));
    api.apply(&build::secret("default", "b").labelled("mine", "yes").key("k", "v"));
    assert_eq!(several(3, &mut stream).await, ["b", "-a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_time_goes_on_from_its_bookmark_without_a_list() {
    let api = ApiServer::default();
    let mut stream = started(&api, Config::default().timeout(100)).await;
    // The event is later than the first watch, and there have been other changes that this watch did not see.
    let server = api.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(30)).await;
        server.apply(&build::connection("default", "noise"));
        tokio::time::sleep(Duration::from_secs(320)).await;
        server.compact();
        server.apply(&build::secret("default", "late"));
    });
    assert_eq!(next(&mut stream).await, "late");
    assert_eq!(lists_and_watches(&api), (1, 4), "{}", api.story());
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_revision_is_told_so_and_lists_again() {
    let api = ApiServer::default();
    let mut stream = started(&api, Config::default().timeout(100).disable_bookmarks()).await;
    api.apply(&build::connection("default", "noise"));
    api.compact();
    api.break_watches(Break::Close, |_| true);
    assert_eq!(several(4, &mut stream).await, ["error", "init", "+first", "done"]);
    assert_eq!(lists_and_watches(&api).0, 2);
}

#[tokio::test(start_paused = true)]
async fn streamed_lists_need_no_list() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "a"));
    let mut stream = Box::pin(watcher(secrets(&api), Config::default().streaming_lists()));
    assert_eq!(several(3, &mut stream).await, ["init", "+a", "done"]);
    api.apply(&build::secret("default", "b"));
    assert_eq!(next(&mut stream).await, "b");
    assert_eq!(lists_and_watches(&api), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn long_lists_come_in_pages_of_one_moment() {
    let api = ApiServer::default();
    for number in 0..7 {
        api.apply(&build::secret("default", &format!("s{number}")));
    }
    let server = api.clone();
    // Between the pages the world goes on: what is new must come as an event, not within the list.
    api.on_call(move |call| {
        if call.verb == Verb::List && call.number == 2 {
            server.apply(&build::secret("default", "s3a"));
        }
        Fault::None
    });
    let mut stream = Box::pin(watcher(secrets(&api), Config::default().page_size(3)));
    let all = ["init", "+s0", "+s1", "+s2", "+s3", "+s4", "+s5", "+s6", "done", "s3a"];
    assert_eq!(several(all.len(), &mut stream).await, all);
    assert_eq!(lists_and_watches(&api).0, 3);
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_pages_are_forgotten_starts_again() {
    let api = ApiServer::default();
    for number in 0..4 {
        api.apply(&build::secret("default", &format!("s{number}")));
    }
    let server = api.clone();
    api.on_call(move |call| {
        if call.number == 2 {
            server.apply(&build::secret("default", "s9"));
            server.compact();
        }
        Fault::None
    });
    let mut stream = Box::pin(watcher(secrets(&api), Config::default().page_size(3)));
    let found = several(9, &mut stream).await;
    assert_eq!(found, ["init", "+s0", "+s1", "+s2", "error", "init", "+s0", "+s1", "+s2"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_watched_without_the_data() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "a").key("k", "v").annotated("x/y", "z"));
    let partial = Api::<PartialObjectMeta<Secret>>::namespaced(api.client("default"), "default");
    let mut stream = Box::pin(watcher(partial.clone(), Config::default()));
    assert_eq!(several(3, &mut stream).await, ["init", "+a", "done"]);
    api.apply(&build::secret("default", "a").key("k", "w"));
    assert_eq!(next(&mut stream).await, "a");
    let one = serde_json::to_value(partial.get("a").await.unwrap()).unwrap();
    assert_eq!(one.get("data"), None);
    assert_eq!(one["kind"], "PartialObjectMetadata");
}

#[tokio::test(start_paused = true)]
async fn a_reflector_holds_what_the_server_holds() {
    let api = ApiServer::default();
    api.apply(&build::fvs("default", "a"));
    let (reader, writer) = reflector::store::<FerrVaultSecret>();
    let resources = Api::<FerrVaultSecret>::all(api.client("default"));
    let mut stream = Box::pin(watcher(resources, Config::default()).default_backoff().reflect(writer));
    assert_eq!(several(3, &mut stream).await, ["init", "+a", "done"]);
    api.apply(&build::fvs("default", "b"));
    api.edit::<FerrVaultSecret>("default", "a", |object| object["spec"]["vault"] = "other".into());
    api.delete::<FerrVaultSecret>("default", "b");
    several(3, &mut stream).await;
    let held: Vec<_> = reader.state().iter().map(|object| (object.name_any(), object.spec.vault.clone())).collect();
    assert_eq!(held, [("a".to_owned(), "other".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn events_can_come_late_twice_or_never() {
    for (fault, expected) in [
        (EventFault::None, vec!["x", "y"]),
        (EventFault::Late(Duration::from_secs(30)), vec!["x", "y"]),
        (EventFault::Twice, vec!["x", "x", "y"]),
        (EventFault::Dropped, vec!["y"]),
    ] {
        let api = ApiServer::default();
        let mut stream = started(&api, Config::default()).await;
        api.on_event(move |event| if event.name == "x" { fault } else { EventFault::None });
        let before = Instant::now();
        api.apply(&build::secret("default", "x"));
        api.apply(&build::secret("default", "y"));
        assert_eq!(several(expected.len(), &mut stream).await, expected, "{fault:?}");
        // What is behind a late event is late with it.
        let late = if let EventFault::Late(by) = fault { by } else { Duration::ZERO };
        assert_eq!(seconds_since(before), late.as_secs(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_event_that_the_watch_does_not_live_to_see_comes_with_the_next_watch() {
    let api = ApiServer::default();
    let mut stream = started(&api, Config::default().timeout(10)).await;
    api.on_event(|_| EventFault::Late(Duration::from_mins(1)));
    let before = Instant::now();
    api.apply(&build::secret("default", "x"));
    assert_eq!(next(&mut stream).await, "x");
    assert_eq!(seconds_since(before), 10);
}

#[tokio::test(start_paused = true)]
async fn streams_break_in_every_way_and_nothing_is_lost() {
    // How a stream breaks, and how long a client that waits `timeout` + 5 s for any sign needs to notice.
    for (how, errors, seconds) in
        [(Break::Close, false, 0), (Break::Reset, true, 0), (Break::Expire, true, 0), (Break::Silent, false, 65)]
    {
        let api = ApiServer::default();
        let mut stream = started(&api, Config::default().timeout(60)).await;
        assert_eq!(api.watches().len(), 1);
        assert_eq!(api.break_watches(how, |watch| watch.resource == "secrets"), 1);
        let before = Instant::now();
        api.apply(&build::secret("default", "x"));
        let mut events = Vec::new();
        while !events.iter().any(|event| event == "x" || event == "+x") {
            events.push(next(&mut stream).await);
        }
        assert_eq!(events.contains(&"error".to_owned()), errors, "{how:?}: {events:?}");
        let waited = seconds_since(before);
        assert!((seconds..=seconds + 2).contains(&waited), "{how:?}: {waited} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_an_ended_process_stays_silent_and_open() {
    let api = ApiServer::default();
    let mut stream = started(&api, Config::default().timeout(60)).await;
    api.end("operator");
    api.apply(&build::secret("default", "x"));
    assert!(timeout(LONG, stream.next()).await.is_err());
    // Its next life sees everything.
    let mut stream = Box::pin(watcher(secrets(&api), Config::default()));
    assert_eq!(several(4, &mut stream).await, ["init", "+first", "+x", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_call_can_be_refused_stale_or_cut_like_any_other() {
    let api = ApiServer::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let faults = [Fault::Refuse(403), Fault::ResetBefore, Fault::ResetMidBody, Fault::Refuse(410)];
    let log = Arc::clone(&seen);
    api.on_call(move |call| {
        if call.verb != Verb::Watch {
            return Fault::None;
        }
        let mut seen = log.lock().unwrap();
        let fault = faults.get(seen.len()).cloned().unwrap_or_default();
        seen.push(fault.clone());
        fault
    });
    let mut stream = started(&api, Config::default()).await;
    api.apply(&build::secret("default", "x"));
    let mut events = Vec::new();
    while !events.iter().any(|event| event == "x" || event == "+x") {
        events.push(next(&mut stream).await);
    }
    assert_eq!(events.iter().filter(|event| *event == "error").count(), 4, "{events:?}\n{}", api.story());
    assert_eq!(seen.lock().unwrap().last(), Some(&Fault::None));
}

#[tokio::test(start_paused = true)]
async fn a_stale_list_makes_a_watcher_go_back_in_time_and_catch_up() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "old"));
    api.apply(&build::secret("default", "new"));
    api.delete::<Secret>("default", "old");
    api.on_call(|call| if call.verb == Verb::List { Fault::Stale(2) } else { Fault::None });
    let mut stream = Box::pin(watcher(secrets(&api), Config::default()));
    assert_eq!(several(5, &mut stream).await, ["init", "+old", "done", "new", "-old"]);
}
