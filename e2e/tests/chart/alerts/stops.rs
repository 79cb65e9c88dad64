//! Each way in which the operator can stop doing its work. Every story begins healthy, and the trouble with it.

use super::world::{LEADER, STANDBY, WATCH, growing, steady, then};
use super::{Firing, ROLLOUT, STALE, STUCK, Story, TIMEOUTS};
use crate::alerts::world::SECRETS;

const LONGEST: &str = "workqueue_longest_running_processor_seconds";
const LAST_SYNC: &str = "ferrvault_secret_last_sync_timestamp_seconds";
const FRESH: &str = "ferrvault_secret_fresh";
const ERRORS: &str = "ferrvault_secret_sync_errors_total";
const REFUSED: &str = r#"reason="RolloutFailed""#;
/// Restarts that are refused after 1, 2, 4 ... 256 s, then every five minutes.
const TRIES: &str = "0 5 6 7 7 8 8 8 8 8 9 9 9 9 9 9 9 9 9 10 10 10 10 10 10 10 10 10 10 11";
const TIMED_OUT: &str = "controller_runtime_reconcile_timeouts_total";

/// Nothing before the third minute, and this at the tenth.
fn by_the_tenth(firing: &[Firing]) -> Vec<(u32, Vec<Firing>)> {
    vec![(0, Vec::new()), (2, Vec::new()), (10, firing.to_vec())]
}

pub(super) fn stories() -> Vec<Story> {
    vec![
        // Pod ready, lease held, watches alive, every condition as it was: a call that does not return.
        Story::new(
            "one pass hangs for ever, and its resource shows what it showed last",
            |world| {
                world.pod(LEADER, LONGEST, SECRETS, &growing());
                world.object("db", LAST_SYNC, "", &steady(0));
            },
            by_the_tenth(&[(STUCK, "pass"), (STALE, "sync")]),
        ),
        Story::new(
            "one pass hangs for ever, and the watchdog says so on its resource",
            |world| {
                world.pod(LEADER, LONGEST, SECRETS, &growing());
                world.object("db", LAST_SYNC, "", &steady(0));
                world.object("db", FRESH, "", &then(10, "1", "0"));
            },
            vec![
                (2, vec![]),
                (8, vec![(STUCK, "pass"), (STALE, "pass")]),
                (10, vec![(STUCK, "pass"), (STALE, "pass")]),
            ],
        ),
        Story::new(
            "each pass hangs, is cut at two minutes, and hangs again",
            |world| {
                let cuts: Vec<String> = (0..=80).map(|step| (step / 4).to_string()).collect();
                world.pod(LEADER, TIMED_OUT, SECRETS, &cuts.join(" "));
                world.object("db", LAST_SYNC, "", &steady(0));
            },
            vec![(2, vec![]), (6, vec![(TIMEOUTS, "")]), (10, vec![(TIMEOUTS, ""), (STALE, "sync")])],
        ),
        Story::new(
            "work is due and no pass begins",
            |world| world.pod(LEADER, "ferrvault_queue_stalled_seconds", SECRETS, &growing()),
            by_the_tenth(&[(STUCK, "queue")]),
        ),
        Story::new(
            "the main runtime is blocked, and only the thread of the metrics answers",
            |world| world.pod(LEADER, "ferrvault_operator_runtime_silence_seconds", "", &growing()),
            by_the_tenth(&[(STUCK, "runtime")]),
        ),
        Story::new(
            "the watchdog hangs, and nobody would write that a resource is stale",
            |world| world.pod(LEADER, "ferrvault_watchdog_silence_seconds", "", &growing()),
            by_the_tenth(&[(STUCK, "runtime")]),
        ),
        Story::new(
            "one watch is silently dead, the others are not",
            |world| world.pod(LEADER, "ferrvault_watch_silence_seconds", WATCH, &growing()),
            by_the_tenth(&[(STUCK, "watch")]),
        ),
        Story::new(
            "a right is missing, and no replica becomes ready",
            |world| {
                for pod in [LEADER, STANDBY] {
                    world.pod(pod, "ferrvault_operator_ready", "", &steady(0));
                }
            },
            by_the_tenth(&[(STUCK, "readiness")]),
        ),
        Story::new(
            "the lease cannot be written, and nobody leads",
            |world| world.pod(LEADER, "ferrvault_operator_leader", "", &then(2, "1", "0")),
            by_the_tenth(&[(STUCK, "leader")]),
        ),
        Story::new(
            "the pods are gone, or their processes are stopped",
            |world| world.end_all(2),
            by_the_tenth(&[(STUCK, "absence")]),
        ),
        Story::new(
            "passes end, and fail: the token was revoked",
            |world| world.object("db", LAST_SYNC, "", &steady(0)),
            vec![(7, vec![]), (10, vec![(STALE, "sync")])],
        ),
        Story::new(
            "a resource was created and has never synced",
            |world| {
                world.object("new", "ferrvault_secret_unsynced_since_timestamp_seconds", "", &steady(0));
                world.object("new", "ferrvault_secret_refresh_interval_seconds", "", &steady(60));
                world.object("new", FRESH, "", &steady(1));
            },
            vec![(7, vec![]), (10, vec![(STALE, "sync")])],
        ),
        Story::new(
            "a pass that was asked for does not end although the interval is a day",
            |world| {
                world.resource("yearly", 86_400, &steady(0));
                world.object("yearly", FRESH, "", &then(10, "1", "0"));
            },
            by_the_tenth(&[(STALE, "pass")]),
        ),
        Story::new(
            "an object was stored under another schema",
            |world| {
                let kind = r#"kind="FerrVaultSecret""#;
                world.pod(LEADER, "ferrvault_unreadable_objects", kind, &then(2, "0", "1"));
            },
            by_the_tenth(&[(STALE, "unreadable")]),
        ),
        Story::new(
            "a workload may not be restarted",
            |world| {
                let failed = then(2, "_", "1");
                world.object("db", "ferrvault_secret_rollouts_owed", r#"state="failed""#, &failed);
                world.pod(LEADER, ERRORS, REFUSED, TRIES);
            },
            by_the_tenth(&[(ROLLOUT, "refused")]),
        ),
        Story::new(
            "a workload may not be restarted, and no status can be written either",
            |world| {
                world.pod(LEADER, ERRORS, REFUSED, TRIES);
            },
            by_the_tenth(&[(ROLLOUT, "refused")]),
        ),
        Story::new(
            "a workload is listed that does not exist",
            |world| world.object("db", "ferrvault_secret_rollouts_owed", r#"state="waiting""#, &steady(1)),
            vec![(10, vec![]), (29, vec![]), (31, vec![(ROLLOUT, "waiting")])],
        ),
    ]
}
