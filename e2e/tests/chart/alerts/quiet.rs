//! What looks like a stop and is none. Half an hour each, and nothing fires at any minute of it.

use super::Story;
use super::world::{LEADER, STANDBY, WATCH, growing, steady, then};
use crate::alerts::world::SECRETS;

const LAST_SYNC: &str = "ferrvault_secret_last_sync_timestamp_seconds";
const FRESH: &str = "ferrvault_secret_fresh";

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story::quiet("all is well, with work waiting on the standby", |_| {}),
        Story::quiet("a standby whose watch broke delays nobody", |world| {
            world.pod(STANDBY, "ferrvault_watch_silence_seconds", WATCH, &growing());
        }),
        Story::quiet("a fresh start, three hours after the operator was taken away", |world| {
            // For a minute nobody is ready and nobody leads; what the resources say is three hours old.
            for pod in [LEADER, STANDBY] {
                world.pod(pod, "ferrvault_operator_build_info", r#"version="0.1.0""#, &then(2, "_", "1"));
                world.pod(pod, "ferrvault_operator_ready", "", "_x1 0x1 1+0x76");
            }
            world.pod(LEADER, "ferrvault_operator_leader", "", "_x1 0x1 1+0x76");
            world.pod(LEADER, "ferrvault_queue_stalled_seconds", SECRETS, "_x1 10 25 0+0x76");
            for name in ["db", "mail"] {
                world.object(name, LAST_SYNC, "", "_x1 -10800 -10800 120+30x76");
                world.object(name, FRESH, "", "_x1 0 0 1+0x76");
            }
        }),
        Story::quiet("a leader that changes, and a rolling update with it", |world| {
            world.pod(LEADER, "ferrvault_operator_leader", "", &then(10, "1", "0"));
            world.pod(STANDBY, "ferrvault_operator_leader", "", &then(12, "0", "1"));
            world.pod(LEADER, "ferrvault_operator_ready", "", "1+0x9 0+0x3 1+0x67");
        }),
        Story::quiet("0s: nobody looks, and nobody is expected to", |world| {
            world.resource("manual", 0, &steady(-86_400));
        }),
        Story::quiet("a suspended resource, which is told with an interval of 0", |world| {
            world.resource("resting", 0, &steady(-86_400));
        }),
        Story::quiet("a resource that is resumed after a day, and gets its pass within a minute", |world| {
            world.resource("resting", 0, "-86400+0x19 600+30x60");
            world.object("resting", "ferrvault_secret_refresh_interval_seconds", "", "0+0x17 60+0x62");
        }),
        Story::quiet("a resource that is late, and is deleted", |world| {
            world.object("db", LAST_SYNC, "", "0+0x15 stale");
            world.object("db", FRESH, "", "1+0x13 0 0 stale");
            world.object("db", "ferrvault_secret_refresh_interval_seconds", "", "60+0x15 stale");
            world.object("db", "ferrvault_secret_rollouts_owed", r#"state="failed""#, "_x11 1 1 1 1 stale");
        }),
        // From the second minute to the seventh; passes last 31 s each, and are tried again within a minute.
        Story::quiet("FerrVault is down for five minutes", |world| {
            let waiting = format!("0+0x3 {} 0+0x66", "25 0 ".repeat(5).trim_end());
            world.pod(LEADER, "workqueue_longest_running_processor_seconds", SECRETS, &waiting);
            world.pod(LEADER, "ferrvault_secret_sync_errors_total", r#"reason="Unreachable""#, "0+0x3 0+4x10 40+0x65");
            world.pod(LEADER, "ferrvault_queue_stalled_seconds", SECRETS, &waiting);
            for (name, interval) in [("db", 60), ("eager", 10), ("hourly", 3_600)] {
                // The last success just before the outage, the next one a minute after it.
                world.resource(name, interval, "0+30x4 120+0x11 480+30x63");
            }
        }),
        Story::quiet("one pass was cut at its deadline, and the next one was not", |world| {
            let metric = "controller_runtime_reconcile_timeouts_total";
            world.pod(LEADER, metric, SECRETS, &then(10, "0", "1"));
        }),
        Story::quiet("passes that overlap, and take their two minutes each", |world| {
            world.pod(LEADER, "workqueue_longest_running_processor_seconds", SECRETS, &steady(120));
        }),
        Story::quiet("one of two replicas does not become ready", |world| {
            world.pod(STANDBY, "ferrvault_operator_ready", "", &steady(0));
        }),
        Story::quiet("a restart was refused, and granted two minutes later", |world| {
            world.object("db", "ferrvault_secret_rollouts_owed", r#"state="failed""#, "_x3 1+0x3 stale");
            world.pod(LEADER, "ferrvault_secret_sync_errors_total", r#"reason="RolloutFailed""#, "0+0x3 1+0x76");
        }),
        Story::quiet("a workload that is created ten minutes after its Secret changed", |world| {
            world.object("db", "ferrvault_secret_rollouts_owed", r#"state="waiting""#, "_x3 1+0x20 stale");
        }),
        Story::quiet("a cluster without any resource", |world| {
            for name in ["db", "mail"] {
                for metric in [LAST_SYNC, FRESH, "ferrvault_secret_refresh_interval_seconds"] {
                    world.object(name, metric, "", "_x80");
                }
            }
        }),
    ]
}
