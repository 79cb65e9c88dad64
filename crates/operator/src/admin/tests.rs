//! The servers as others meet them: over loopback, byte for byte.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrvault_api::Reason;

use super::metrics::{PassResult, SECRET_CONTROLLER};
use super::*;
use crate::key::ObjectKey;
use crate::queue::{Limits, Queue, Urgency, Work};
use crate::term::Term;

struct Bench {
    subjects: Subjects,
    metrics: SocketAddr,
    probes: SocketAddr,
    _admin: Admin,
}

fn bench(stall_threshold: Duration) -> Bench {
    let loopback = BindAddress::parse("--test", "127.0.0.1:0").unwrap();
    let sockets = Sockets::bind(&loopback, &loopback).unwrap();
    let (metrics, probes) = (sockets.metrics_address().unwrap(), sockets.probe_address().unwrap());
    let subjects = Subjects::new(stall_threshold);
    let admin = Admin::start(sockets, &subjects).unwrap();
    Bench { subjects, metrics, probes, _admin: admin }
}

/// Sends `request` and reads until the server closes, which it must do by itself.
fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Status and body of a page.
fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let answer = exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// A resource without any pass so far.
fn unsynced(name: &str) -> ResourceSeries {
    ResourceSeries {
        key: ObjectKey::new("shop", name),
        created: Some("2029-12-31T23:59:00Z".parse().unwrap()),
        last_synced: None,
        last_attempted: None,
        last_succeeded: None,
        refresh_interval: Duration::ZERO,
        fresh: true,
        restarts_failed: 0,
        restarts_waiting: 0,
    }
}

#[derive(Default)]
struct Nothing;

impl Work for Nothing {
    fn merge(&mut self, _: Self) {}
}

#[test]
fn readiness_is_red_and_names_what_is_missing_until_all_is_there() {
    let bench = bench(Duration::from_mins(15));
    assert_eq!(get(bench.probes, "/readyz"), (503, "starting\n".to_owned()));
    let part = bench.subjects.readiness.part("watch of FerrVaultSecret", "the CRD is not installed");
    let red = (503, "watch of FerrVaultSecret: the CRD is not installed\n".to_owned());
    assert_eq!(get(bench.probes, "/readyz"), red);
    part.ready();
    assert_eq!(get(bench.probes, "/readyz"), (200, "ok\n".to_owned()));
}

#[test]
fn health_is_green_while_the_runtime_beats_and_red_when_it_stands_still() {
    let bench = bench(Duration::from_millis(1));
    let main = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    // Nobody drives this runtime, which is what one that hangs looks like from here.
    let _hung = main.spawn(bench.subjects.heartbeat.clone().run());
    while bench.subjects.heartbeat.verdict().is_ok() {
        std::thread::yield_now();
    }
    let (status, body) = get(bench.probes, "/healthz");
    assert_eq!(status, 503);
    assert!(body.starts_with("the main runtime has stood still for "), "{body}");
    assert_eq!(body.lines().count(), 1);

    let living = self::bench(Duration::from_mins(15));
    assert_eq!(get(living.probes, "/healthz"), (200, "ok\n".to_owned()));
}

#[test]
fn health_is_red_with_one_line_once_a_part_that_lasts_has_ended() {
    let bench = bench(Duration::from_mins(15));
    assert_eq!(get(bench.probes, "/healthz"), (200, "ok\n".to_owned()));
    bench.subjects.liveness.ended("the watch of secrets has panicked");
    bench.subjects.liveness.ended("what follows from it");
    let why = "the watch of secrets has panicked, which it should not do before the end of the process\n";
    assert_eq!(get(bench.probes, "/healthz"), (503, why.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn health_counts_work_that_is_due_from_the_beginning_of_the_term() {
    let (subjects, term) = (Subjects::new(Duration::from_mins(15)), Term::default());
    let queue: Queue<Nothing> = Queue::new(SECRET_CONTROLLER, Limits::new(NonZeroUsize::MIN));
    subjects.liveness.watch_over_queue(&queue);
    subjects.liveness.watch_over_term(&term);
    queue.add(ObjectKey::new("shop", "db"), "g".into(), Nothing, Urgency::Now);
    // Nobody takes it up: the loop that starts passes is not there.
    tokio::time::advance(Duration::from_hours(5)).await;
    assert_eq!(subjects.liveness.verdict(), Ok(()), "a standby");
    term.begin();
    tokio::time::advance(Duration::from_mins(15)).await;
    assert_eq!(subjects.liveness.verdict(), Ok(()));
    tokio::time::advance(Duration::from_mins(1)).await;
    let why = "ferrvaultsecret work has been due for 16m0s and no pass has ended for 16m0s, longer than \
               --stall-threshold=15m0s";
    assert_eq!(subjects.liveness.verdict(), Err(why.to_owned()));
    term.end();
    assert_eq!(subjects.liveness.verdict(), Ok(()));
}

#[test]
fn only_the_pages_of_a_port_are_served_there() {
    let bench = bench(Duration::from_mins(15));
    assert_eq!(get(bench.probes, "/metrics"), (404, "nothing here but /healthz /readyz\n".to_owned()));
    assert_eq!(get(bench.metrics, "/healthz").0, 404);
    assert_eq!(get(bench.metrics, "/metrics?format=text").0, 200);
    let answer = exchange(bench.metrics, "POST /metrics HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: GET, HEAD\r\n"), "{answer}");
    let answer = exchange(bench.metrics, "HEAD /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn a_page_that_panics_ends_its_own_connection_only() {
    let bench = bench(Duration::from_mins(15));
    let calls = Arc::new(AtomicUsize::new(0));
    bench.subjects.metrics.tell_objects(move || {
        assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "the first scrape fails");
        ObjectSeries::default()
    });
    assert_eq!(exchange(bench.metrics, "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n"), "");
    assert_eq!(get(bench.metrics, "/metrics").0, 200);
    assert_eq!(get(bench.probes, "/healthz").0, 200);
}

#[test]
fn connections_that_say_nothing_are_closed_and_make_room() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap();
    let pages = Pages::default().page("/healthz", |_| Answer::text(StatusCode::OK, "ok"));
    let limits = server::Limits { connections: 2, time: Duration::from_millis(200) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _server = runtime.spawn(server::serve(socket, pages, limits));

    let silent: Vec<_> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(get(address, "/healthz"), (200, "ok\n".to_owned()));
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "closed by the server");
    }
}

#[test]
fn the_servers_end_with_their_owner() {
    let bench = bench(Duration::from_mins(15));
    let Bench { probes, _admin: admin, .. } = bench;
    drop(admin);
    // The thread closes the socket as its last act; until then a connection may still be taken.
    let closed = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        TcpStream::connect(probes).is_err()
    });
    assert!(closed);
}

#[test]
fn the_metrics_bear_exactly_the_names_of_the_contract() {
    let bench = bench(Duration::from_mins(15));
    let metrics = &bench.subjects.metrics;
    let queue: Queue<Nothing> = Queue::new(SECRET_CONTROLLER, Limits::new(NonZeroUsize::MIN));
    queue.add(ObjectKey::new("shop", "db"), "g".into(), Nothing, Urgency::Now);
    metrics.tell_queue(&queue, &Term::default());
    metrics.tell_objects(|| ObjectSeries {
        resources: vec![
            ResourceSeries {
                last_synced: Some("2030-01-01T00:00:00.5Z".parse().unwrap()),
                refresh_interval: Duration::from_mins(30),
                restarts_failed: 2,
                ..unsynced("db")
            },
            ResourceSeries { fresh: false, ..unsynced("new") },
        ],
        connections: vec![ConnectionSeries { key: ObjectKey::new("shop", "main"), ready: true }],
    });
    let now = "2030-01-01T00:00:01Z".parse().unwrap();
    metrics.pass_finished(PassResult::Success, Duration::from_millis(30), now);
    metrics.error(Reason::RolloutFailed);
    metrics.error(Reason::RolloutFailed);
    metrics.timeout(SECRET_CONTROLLER);

    let (status, page) = get(bench.metrics, "/metrics");
    assert_eq!(status, 200);
    for line in [
        "# TYPE ferrvault_secret_sync_duration_seconds histogram",
        "ferrvault_secret_sync_duration_seconds_bucket{result=\"success\",le=\"0.05\"} 1",
        "ferrvault_secret_sync_duration_seconds_count{result=\"success\"} 1",
        "ferrvault_secret_sync_duration_seconds_count{result=\"timeout\"} 0",
        "# TYPE ferrvault_secret_sync_errors_total counter",
        "ferrvault_secret_sync_errors_total{reason=\"RolloutFailed\"} 2",
        "ferrvault_secret_sync_errors_total{reason=\"AuthFailed\"} 0",
        "ferrvault_secret_last_sync_timestamp_seconds{namespace=\"shop\",name=\"db\"} 1893456000.5",
        "ferrvault_secret_refresh_interval_seconds{namespace=\"shop\",name=\"db\"} 1800.0",
        "ferrvault_secret_refresh_interval_seconds{namespace=\"shop\",name=\"new\"} 0.0",
        "ferrvault_secret_unsynced_since_timestamp_seconds{namespace=\"shop\",name=\"new\"} 1893455940.0",
        "ferrvault_secret_fresh{namespace=\"shop\",name=\"db\"} 1",
        "ferrvault_secret_fresh{namespace=\"shop\",name=\"new\"} 0",
        "ferrvault_secret_rollouts_owed{namespace=\"shop\",name=\"db\",state=\"failed\"} 2",
        "ferrvault_connection_ready{namespace=\"shop\",name=\"main\"} 1",
        "ferrvault_operator_ready 0.0",
        "ferrvault_last_successful_reconcile_timestamp_seconds 1893456001.0",
        "# TYPE controller_runtime_reconcile_timeouts_total counter",
        "controller_runtime_reconcile_timeouts_total{controller=\"ferrvaultsecret\"} 1",
        "controller_runtime_reconcile_timeouts_total{controller=\"ferrvaultconnection\"} 0",
        "workqueue_longest_running_processor_seconds{controller=\"ferrvaultsecret\"} 0.0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n--- is not in\n{page}");
    }
    assert!(!page.contains("ferrvault_secret_last_sync_timestamp_seconds{namespace=\"shop\",name=\"new\"}"));
    assert!(!page.contains("ferrvault_secret_unsynced_since_timestamp_seconds{namespace=\"shop\",name=\"db\"}"));
    assert!(!page.contains("state=\"waiting\""));
    assert!(!page.contains("reason=\"Synced\""));
}

/// Names and labels of every sample, without the bounds of buckets: the two formats write 1 and 1.0 there, and put them
/// last or first.
fn samples(page: &str) -> BTreeSet<(String, BTreeSet<String>)> {
    let samples = page.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap().0);
    let apart = samples.map(|sample| {
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let labels = labels.trim_end_matches('}').split(',').filter(|label| !label.starts_with("le="));
        (name.to_owned(), labels.map(str::to_owned).collect())
    });
    apart.collect()
}

#[test]
fn both_formats_say_the_same_under_the_same_names() {
    let bench = bench(Duration::from_mins(15));
    let metrics = &bench.subjects.metrics;
    metrics.tell_objects(|| ObjectSeries { resources: vec![unsynced("db")], connections: vec![] });
    let asked = "GET /metrics HTTP/1.1\r\nHost: test\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
    let answer = exchange(bench.metrics, asked);
    let (head, open_metrics) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"), "{head}");
    assert!(open_metrics.ends_with("\n# EOF\n"), "{open_metrics}");
    assert!(open_metrics.contains("# TYPE ferrvault_operator_build info\n"), "{open_metrics}");

    let (_, text) = get(bench.metrics, "/metrics");
    assert!(!text.contains("# EOF") && samples(&text).len() > 40, "{text}");
    assert_eq!(samples(open_metrics), samples(&text));
}

#[test]
fn the_series_of_an_object_goes_with_the_object() {
    let metrics = Metrics::default();
    let there = Arc::new(Mutex::new(vec![ConnectionSeries { key: ObjectKey::new("shop", "main"), ready: false }]));
    metrics.tell_objects({
        let there = Arc::clone(&there);
        move || ObjectSeries { connections: there.lock().unwrap().clone(), ..ObjectSeries::default() }
    });
    assert!(
        metrics
            .page(Format::Text)
            .unwrap()
            .contains("ferrvault_connection_ready{namespace=\"shop\",name=\"main\"} 0\n")
    );
    there.lock().unwrap().clear();
    assert!(!metrics.page(Format::Text).unwrap().contains("ferrvault_connection_ready{"));
}
