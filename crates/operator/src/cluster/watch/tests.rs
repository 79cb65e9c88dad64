//! The watch loop against a scripted API server, under paused time.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;
use crate::cluster::mock::{Line, Lines, Reply, Requests, Seen, api};

mod wordless;

const MINUTE: Duration = Duration::from_mins(1);

/// Writes down what a watch hands on.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl<K: kube::Resource> Sink<K> for Notes {
    fn relist_started(&mut self) {
        self.note("[".to_owned());
    }
    fn applied(&mut self, object: K) {
        self.note(format!("+{}", object.name_any()));
    }
    fn deleted(&mut self, gone: &ObjectMeta) {
        self.note(format!("-{}", gone.name.as_deref().unwrap()));
    }
    fn relist_done(&mut self) {
        self.note("]".to_owned());
    }
    fn undecodable(&mut self, namespace: &str, name: &str, why: &str) {
        self.note(format!("?{namespace}/{name}: {why}"));
    }
}

struct Running {
    notes: Notes,
    requests: Requests,
    started: Started,
    stop: CancellationToken,
}

impl Running {
    fn state(&self) -> WatchState {
        self.started.health.snapshot()
    }

    fn lists(&self) -> usize {
        self.requests.all().iter().filter(|seen| !seen.is_watch()).count()
    }

    /// The resource versions that were followed from.
    fn followed_from(&self) -> Vec<String> {
        let all = self.requests.all();
        all.iter().filter(|seen| seen.is_watch()).filter_map(|seen| seen.parameter("resourceVersion")).collect()
    }
}

/// Watches resources of an API server that answers like this.
fn watching(answer: impl FnMut(&Seen) -> Reply + Send + 'static) -> Running {
    let (client, requests) = api(answer);
    let (notes, stop) = (Notes::default(), CancellationToken::new());
    let started = spawn_resources(&client, &Scope::Cluster, notes.clone(), &Entropy::seeded(1), &stop);
    Running { notes, requests, started, stop }
}

fn resource(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "ferrvault.com/v1alpha1",
        "kind": "FerrVaultSecret",
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"connectionRef": {"name": "main"}, "vault": "v"},
    })
}

fn list(version: u64, items: &[Value]) -> Reply {
    page(version, "", items)
}

/// A page of a list, which goes on where `token` says.
fn page(version: u64, token: &str, items: &[Value]) -> Reply {
    Reply::Json(
        200,
        json!({
            "apiVersion": "ferrvault.com/v1alpha1",
            "kind": "FerrVaultSecretList",
            "metadata": {"resourceVersion": version.to_string(), "continue": token},
            "items": items,
        }),
    )
}

fn event(kind: &str, object: &Value) -> Line {
    Line::Json(json!({"type": kind, "object": object}))
}

fn bookmark(version: u64) -> Line {
    let metadata = json!({"resourceVersion": version.to_string()});
    event("BOOKMARK", &json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret", "metadata": metadata}))
}

/// An answer that lists `a` at version 10 and leaves each watch open; the writing ends come out of the second value.
fn lists_and_stays_open() -> (impl FnMut(&Seen) -> Reply + Send + 'static, Arc<Mutex<Vec<Lines>>>) {
    let open: Arc<Mutex<Vec<Lines>>> = Arc::default();
    let opened = Arc::clone(&open);
    let answer = move |seen: &Seen| {
        if !seen.is_watch() {
            return list(10, &[resource("a", 9)]);
        }
        let (lines, reply) = Reply::lines();
        opened.lock().unwrap().push(lines);
        reply
    };
    (answer, open)
}

fn send(open: &Arc<Mutex<Vec<Lines>>>, line: Line) {
    open.lock().unwrap().last().unwrap().unbounded_send(line).unwrap();
}

#[tokio::test(start_paused = true)]
async fn lists_then_follows_from_the_list() {
    let (answer, open) = lists_and_stays_open();
    let running = watching(answer);
    assert!(!running.state().synced);
    sleep(Duration::from_millis(10)).await;
    assert_eq!(running.notes.take(), ["[", "+a", "]"]);
    assert!(running.state().synced);

    send(&open, event("ADDED", &resource("b", 11)));
    send(&open, event("MODIFIED", &resource("a", 12)));
    send(&open, event("DELETED", &resource("b", 13)));
    sleep(Duration::from_millis(10)).await;
    assert_eq!(running.notes.take(), ["+b", "+a", "-b"]);

    let seen = running.requests.all();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].path, "/apis/ferrvault.com/v1alpha1/ferrvaultsecrets");
    assert_eq!(seen[0].parameter("limit").as_deref(), Some("500"));
    assert_eq!(seen[1].parameter("resourceVersion").as_deref(), Some("10"));
    assert_eq!(seen[1].parameter("timeoutSeconds").as_deref(), Some("45"));
    assert_eq!(seen[1].parameter("allowWatchBookmarks").as_deref(), Some("true"));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_several_pages_is_one_list() {
    let running = watching(|seen| {
        if seen.is_watch() {
            return Reply::Never;
        }
        let (name, token) = match seen.parameter("continue").as_deref() {
            None => ("a", "second"),
            Some("second") => ("b", "third"),
            Some(_) => ("c", ""),
        };
        page(10, token, &[resource(name, 1)])
    });
    sleep(Duration::from_millis(10)).await;
    assert_eq!(running.notes.take(), ["[", "+a", "+b", "+c", "]"]);
    assert_eq!(running.lists(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_stops_no_other() {
    let (mut answer, open) = lists_and_stays_open();
    let mut broken = resource("broken", 8);
    broken["spec"]["vault"] = json!(7);
    let listed = broken.clone();
    let running = watching(
        move |seen| {
            if seen.is_watch() { answer(seen) } else { list(10, &[listed.clone(), resource("a", 9)]) }
        },
    );
    sleep(Duration::from_millis(10)).await;
    broken["metadata"]["resourceVersion"] = json!("11");
    send(&open, event("MODIFIED", &broken));
    send(&open, event("DELETED", &broken));
    sleep(Duration::from_millis(10)).await;
    let notes = running.notes.take();
    assert_eq!(notes.len(), 6, "{notes:?}");
    assert!(notes[1].starts_with("?shop/broken: "), "{notes:?}");
    assert!(notes[4].starts_with("?shop/broken: "), "{notes:?}");
    assert_eq!([&notes[2], &notes[3], &notes[5]], ["+a", "]", "-broken"]);
    assert_eq!(running.lists(), 1);
}

/// Keeps the metadata that a watch of Secrets hands on.
struct Keep(Arc<Mutex<Vec<ObjectMeta>>>);
impl Sink<PartialObjectMeta<Secret>> for Keep {
    fn relist_started(&mut self) {}
    fn applied(&mut self, object: PartialObjectMeta<Secret>) {
        self.0.lock().unwrap().push(object.metadata);
    }
    fn deleted(&mut self, _: &ObjectMeta) {}
    fn relist_done(&mut self) {}
    fn undecodable(&mut self, _: &str, _: &str, _: &str) {}
}

#[tokio::test(start_paused = true)]
async fn of_secrets_metadata_alone_is_asked_for_and_kept() {
    let (client, requests) = api(|seen| {
        if seen.is_watch() {
            return Reply::Never;
        }
        let metadata = json!({
            "namespace": "shop", "name": "db", "uid": "u", "resourceVersion": "3", "labels": {"a": "b"},
            "annotations": {"ferrvault.com/content-hash": "v1", "note": "x".repeat(1000)},
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "o"}],
            "managedFields": [{"manager": "m"}], "finalizers": ["f/f"],
        });
        Reply::Json(
            200,
            json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "3"},
                "items": [{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}],
            }),
        )
    });
    let kept = Arc::default();
    let scope = Scope::new("shop");
    let stop = CancellationToken::new();
    let started = spawn_secrets(&client, &scope, Keep(Arc::clone(&kept)), &Entropy::seeded(1), &stop);
    sleep(Duration::from_millis(10)).await;
    let kept = kept.lock().unwrap();
    assert_eq!(kept[0].annotations, Some([("ferrvault.com/content-hash".to_owned(), "v1".to_owned())].into()));
    assert_eq!(kept[0].owner_references.as_ref().map(Vec::len), Some(1));
    assert_eq!(kept[0].uid.as_deref(), Some("u"));
    assert_eq!((&kept[0].labels, &kept[0].managed_fields, &kept[0].finalizers), (&None, &None, &None));
    for seen in requests.all() {
        assert_eq!(seen.path, "/api/v1/namespaces/shop/secrets");
        // Never the plain form: it would bring the data of every Secret in the cluster here.
        assert!(seen.accept.contains("as=PartialObjectMetadata"), "{}", seen.accept);
    }
    assert_eq!(started.health.snapshot().name, "secrets");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_answers_is_cut_and_tried_again() {
    let mut first = true;
    let running = watching(move |seen| match std::mem::take(&mut first) {
        true => Reply::Never,
        false if seen.is_watch() => Reply::Never,
        false => list(10, &[]),
    });
    sleep(LIST_PAGE_DEADLINE + Duration::from_millis(1)).await;
    let state = running.state();
    assert_eq!(state.failures, 1);
    let error = "list ferrvaultsecrets.ferrvault.com: no answer within the deadline";
    assert_eq!(state.last_error.as_deref(), Some(error));
    sleep(Duration::from_secs(2)).await;
    assert!(running.state().synced);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_opens_is_cut_and_tried_again_without_a_list() {
    let running = watching(|seen| if seen.is_watch() { Reply::Never } else { list(10, &[]) });
    sleep(3 * MINUTE).await;
    assert_eq!(running.lists(), 1);
    assert!(running.followed_from().len() >= 4);
    assert!(running.state().last_error.unwrap().starts_with("watch ferrvaultsecrets.ferrvault.com: no answer"));
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_watch_and_the_next_begins_at_the_last_bookmark() {
    let (answer, open) = lists_and_stays_open();
    let running = watching(answer);
    let most = SILENCE_LIMIT.mul_f64(0.8);
    sleep(most).await;
    send(&open, bookmark(25));
    sleep(most).await;
    assert_eq!(running.followed_from(), ["10"], "a bookmark is a sign of life");
    assert!(running.state().silence(Instant::now()) <= most);
    sleep(most).await;
    assert_eq!(running.followed_from(), ["10", "25"]);
    assert_eq!(running.lists(), 1);
    assert_eq!(running.state().losses, 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_opens_and_never_speaks_is_known_to_be_dead_and_made_good_by_lists() {
    let mut lists = 0;
    let open: Arc<Mutex<Vec<Lines>>> = Arc::default();
    let opened = Arc::clone(&open);
    let running = watching(move |seen| {
        if seen.is_watch() {
            let (lines, reply) = Reply::lines();
            opened.lock().unwrap().push(lines);
            return reply;
        }
        lists += 1;
        if lists == 1 { list(10, &[resource("a", 9)]) } else { list(20, &[resource("a", 9), resource("b", 11)]) }
    });
    sleep(Duration::from_millis(1)).await;
    assert_eq!(running.notes.take(), ["[", "+a", "]"]);
    sleep(2 * MINUTE).await;
    assert_eq!(running.notes.take(), ["[", "+a", "+b", "]"], "after the second silence");
    sleep(13 * MINUTE).await;
    let (state, now) = (running.state(), Instant::now());
    assert!(state.silence(now) >= 14 * MINUTE, "{:?}", state.silence(now));
    assert!(state.without_answer(now) >= 14 * MINUTE, "{:?}", state.without_answer(now));
    assert!(running.lists() < 20, "{} lists in a quarter of an hour", running.lists());

    send(&open, bookmark(25));
    sleep(Duration::from_millis(1)).await;
    let (state, now) = (running.state(), Instant::now());
    assert!(state.silence(now) < MINUTE && state.without_answer(now) < MINUTE, "a word ends it");
}

fn ends_after_a_period(lines: Lines) {
    ends_after(lines, Duration::from_secs(u64::from(WATCH_PERIOD_SECONDS)));
}

fn ends_after(lines: Lines, period: Duration) {
    tokio::spawn(async move {
        sleep(period).await;
        drop(lines);
    });
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_old_is_made_anew_however_its_watch_ends() {
    let running = watching(|seen| {
        if !seen.is_watch() {
            return list(10, &[]);
        }
        let (lines, reply) = Reply::lines();
        tokio::spawn(async move {
            lines.unbounded_send(bookmark(25)).unwrap();
            sleep(GOOD_TIME / 2).await;
        });
        reply
    });
    sleep(MINUTE * 59).await;
    assert_eq!(running.lists(), 1);
    sleep(2 * MINUTE).await;
    assert_eq!(running.lists(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_opening_after_an_outage_is_a_sign_of_life() {
    let down = Arc::new(Mutex::new(false));
    let is_down = Arc::clone(&down);
    let (mut answer, _open) = lists_and_stays_open();
    let running = watching(move |seen| if *is_down.lock().unwrap() { Reply::Never } else { answer(seen) });
    sleep(Duration::from_millis(1)).await;
    // The watch that stood falls silent, and no other opens.
    *down.lock().unwrap() = true;
    sleep(20 * MINUTE).await;
    assert!(running.state().without_answer(Instant::now()) > 15 * MINUTE);
    *down.lock().unwrap() = false;
    // What the last try had left, and the longest wait of a backoff.
    sleep(Duration::from_secs(50)).await;
    assert!(running.state().without_answer(Instant::now()) <= MINUTE, "or it would be restarted for being well again");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ended_in_good_time_is_no_failure() {
    let (answer, open) = lists_and_stays_open();
    let running = watching(answer);
    for _ in 0..5 {
        sleep(Duration::from_secs(u64::from(WATCH_PERIOD_SECONDS))).await;
        send(&open, bookmark(25));
        sleep(Duration::from_millis(1)).await;
        open.lock().unwrap().pop();
    }
    sleep(Duration::from_millis(1)).await;
    assert_eq!(running.followed_from().len(), 6);
    let state = running.state();
    assert_eq!((state.failures, state.losses, state.last_error), (0, 0, None));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_never_came_is_made_good_within_the_age_of_a_list() {
    let mut lists = 0;
    let running = watching(move |seen| {
        if seen.is_watch() {
            let (lines, reply) = Reply::lines();
            lines.unbounded_send(bookmark(10)).unwrap();
            ends_after_a_period(lines);
            return reply;
        }
        lists += 1;
        if lists == 1 { list(10, &[resource("a", 9)]) } else { list(20, &[resource("a", 9), resource("b", 11)]) }
    });
    sleep(LIST_AGE).await;
    assert_eq!(running.notes.take(), ["[", "+a", "]"]);
    sleep(SILENCE_LIMIT).await;
    assert_eq!(running.notes.take(), ["[", "+a", "+b", "]"]);
    sleep(LIST_AGE / 2).await;
    assert_eq!(running.lists(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_each_watch_at_once_is_not_asked_in_a_tight_loop() {
    let running = watching(|seen| if seen.is_watch() { Reply::lines().1 } else { list(10, &[]) });
    sleep(10 * MINUTE).await;
    let asked = running.followed_from().len();
    assert!((20..40).contains(&asked), "{asked} in ten minutes");
    assert!(running.state().last_error.is_some_and(|error| error.contains("soon after it began")));
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_resumes_where_it_was() {
    let (answer, open) = lists_and_stays_open();
    let running = watching(answer);
    sleep(Duration::from_millis(10)).await;
    send(&open, event("MODIFIED", &resource("a", 17)));
    send(&open, Line::Broken);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(running.followed_from(), ["10", "17"]);
    assert_eq!(running.lists(), 1);
    assert_eq!(running.state().last_error, None, "it stands again");
}

#[tokio::test(start_paused = true)]
async fn history_that_is_gone_means_a_new_list() {
    let (answer, open) = lists_and_stays_open();
    let running = watching(answer);
    sleep(Duration::from_millis(10)).await;
    running.notes.take();
    send(&open, event("ERROR", &json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(running.notes.take(), ["[", "+a", "]"]);
    assert_eq!(running.state().lists, 2);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_refused_again_and_again_means_a_new_list() {
    let running = watching(|seen| if seen.is_watch() { Reply::refusal(504, "Timeout") } else { list(10, &[]) });
    sleep(MINUTE).await;
    let seen: Vec<_> = running.requests.all().iter().map(Seen::is_watch).collect();
    assert_eq!(seen[..8], [false, true, true, true, false, true, true, true]);
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_named() {
    let denied = "ferrvaultsecrets.ferrvault.com is forbidden: User \"system:serviceaccount:a:b\" cannot list resource \
                  \"ferrvaultsecrets\" in API group \"ferrvault.com\" at the cluster scope";
    let status = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": denied});
    let cases = [
        (
            Reply::Json(403, status),
            "list ferrvaultsecrets.ferrvault.com: forbidden: cannot list ferrvaultsecrets.ferrvault.com at the cluster scope",
        ),
        (
            Reply::Json(404, json!("404 page not found")),
            "list ferrvaultsecrets.ferrvault.com: the API server does not serve it; is the CRD installed?",
        ),
    ];
    for (reply, expected) in cases {
        let mut reply = Some(reply);
        let running = watching(move |_| reply.take().unwrap_or(Reply::Never));
        sleep(Duration::from_millis(10)).await;
        let state = running.state();
        assert_eq!(state.last_error.as_deref(), Some(expected));
        assert!(!state.synced);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_answer_and_silence_is_none() {
    for (reply, answered) in
        [(Reply::refusal(403, "Forbidden"), true), (Reply::refusal(500, "Internal"), true), (Reply::Broken, false)]
    {
        let mut reply = Some(reply);
        let running = watching(move |_| reply.take().unwrap_or(Reply::Never));
        sleep(MINUTE).await;
        let (state, now) = (running.state(), Instant::now());
        assert!(state.silence(now) >= MINUTE, "nothing was heard in either case");
        assert_eq!(state.last_answer.is_some(), answered);
        assert!(state.without_answer(now).as_secs() >= 59, "and nothing more was said");
        assert!(state.failures_in_all >= 2, "the first one, and the silence after it");
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_each_watch_is_back_within_its_longest_wait() {
    let down = Arc::new(Mutex::new(true));
    let is_down = Arc::clone(&down);
    let running = watching(move |seen| match (*is_down.lock().unwrap(), seen.is_watch()) {
        (true, _) => Reply::Broken,
        (false, true) => Reply::lines().1,
        (false, false) => list(10, &[]),
    });
    sleep(10 * MINUTE).await;
    assert!(running.lists() < 40, "{} tries in ten minutes", running.lists());
    *down.lock().unwrap() = false;
    sleep(Duration::from_secs(38)).await;
    assert!(running.state().synced);
}

#[tokio::test(start_paused = true)]
async fn one_watch_that_fails_delays_no_other() {
    let (mut answer, open) = lists_and_stays_open();
    let (client, requests) =
        api(
            move |seen: &Seen| {
                if seen.path.ends_with("ferrvaultconnections") {
                    Reply::refusal(403, "Forbidden")
                } else {
                    answer(seen)
                }
            },
        );
    let (notes, stop, entropy) = (Notes::default(), CancellationToken::new(), Entropy::seeded(1));
    let failing = spawn_connections(&client, &Scope::Cluster, Notes::default(), &entropy, &stop);
    let _standing = spawn_resources(&client, &Scope::Cluster, notes.clone(), &entropy, &stop);
    sleep(Duration::from_secs(20)).await;
    assert!(failing.health.snapshot().failures > 3);
    notes.take();
    send(&open, event("MODIFIED", &resource("a", 11)));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(notes.take(), ["+a"]);
    assert!(requests.count() > 4);
}

#[tokio::test(start_paused = true)]
async fn ends_when_told_to_whatever_it_waits_for() {
    let stays_open: fn(&Seen) -> Reply = |seen| if seen.is_watch() { Reply::Never } else { list(10, &[]) };
    for answer in [stays_open, |_| Reply::Never, |_| Reply::Broken] {
        let running = watching(answer);
        sleep(Duration::from_millis(10)).await;
        running.stop.cancel();
        tokio::time::timeout(Duration::from_millis(1), running.started.task).await.unwrap().unwrap();
    }
}

#[test]
fn an_empty_namespace_means_all_of_them() {
    assert_eq!(Scope::new(""), Scope::Cluster);
    assert_eq!(Scope::new("shop"), Scope::Namespace("shop".to_owned()));
}
