//! The series of the process: queues, watches, leadership; and that all of them are documented.

use std::collections::BTreeMap;
use std::time::Duration;

use ferrvault_operator::admin::metrics::PassResult;
use ferrvault_operator::admin::{Format, Subjects};
use ferrvault_testkit::{Break, build};

use crate::invariants::OPERATOR;
use crate::room::{NS, Room};

const FVS: &str = "watch=\"ferrvaultsecrets.ferrvault.com\"";

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_grows_silent_and_its_neighbours_do_not() {
    let room = Room::with_db(build::fvs(NS, "db").through("conn").vault("db")).await;
    let silence = |watch: &str| room.metric(&format!("ferrvault_watch_silence_seconds{{{watch}}}"));
    room.run_for(Duration::from_mins(30)).await;
    assert!(silence(FVS) <= 100.0, "bookmarks come: {}", silence(FVS));

    room.api.deny(OPERATOR, "watch", "ferrvaultsecrets");
    room.api.deny(OPERATOR, "list", "ferrvaultsecrets");
    room.api.break_watches(Break::Reset, |watch| watch.resource.starts_with("ferrvaultsecrets"));
    room.run_for(Duration::from_mins(10)).await;
    assert!((595.0..700.0).contains(&silence(FVS)), "{}", silence(FVS));
    assert!(silence("watch=\"secrets\"") <= 100.0, "{}", silence("watch=\"secrets\""));
    assert!(room.metric(&format!("ferrvault_watch_failures_total{{{FVS}}}")) >= 5.0);
    assert_eq!(room.metric(&format!("ferrvault_watch_losses_total{{{FVS}}}")), 1.0);
    assert_eq!(room.metric(&format!("ferrvault_watch_lists_total{{{FVS}}}")), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_works_is_neither_late_nor_stalled() {
    let room = Room::with_db(build::fvs(NS, "db").through("conn").vault("db").every("1m")).await;
    room.run_for(Duration::from_mins(30)).await;
    for metric in [
        "workqueue_depth",
        "ferrvault_queue_running",
        "ferrvault_queue_stalled_seconds",
        "ferrvault_queue_oldest_due_seconds",
    ] {
        assert_eq!(room.metric(&format!("{metric}{{controller=\"ferrvaultsecret\"}}")), 0.0, "{metric}");
    }
    assert_eq!(room.metric("ferrvault_queue_scheduled{controller=\"ferrvaultsecret\"}"), 1.0);
    assert_eq!(room.metric("ferrvault_operator_leader"), 1.0);
    assert_eq!(room.metric("ferrvault_events_lost_total"), 0.0);
}

/// The families of a page with their types.
fn families(page: &str) -> BTreeMap<String, String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
}

/// The rows of the tables that begin with the name of a series: name, type.
fn documented() -> BTreeMap<String, String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = std::fs::read_to_string(root).unwrap();
    let rows = page.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    });
    rows.collect()
}

#[test]
fn every_series_is_documented_with_its_type_and_none_that_is_not_there() {
    let subjects = Subjects::new(Duration::from_mins(15));
    subjects.metrics.pass_finished(PassResult::Success, Duration::ZERO, jiff::Timestamp::UNIX_EPOCH);
    let told = families(&subjects.metrics.page(Format::Text).unwrap());
    assert!(told.len() > 25, "{told:?}");
    assert_eq!(told, documented());
}
