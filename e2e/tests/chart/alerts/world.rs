//! A cluster as Prometheus sees it: two replicas, one of which leads, and a few resources. Stories change what they are
//! about and leave the rest healthy.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{HOME, RELEASE};

/// The replica that leads, and the one that stands by.
pub(super) const LEADER: &str = "a";
pub(super) const STANDBY: &str = "b";

/// The two controllers, as a label.
pub(super) const SECRETS: &str = r#"controller="ferrvaultsecret""#;
const CONNECTIONS: &str = r#"controller="ferrvaultconnection""#;

/// One of the watches, as a label.
pub(super) const WATCH: &str = r#"watch="ferrvaultsecrets.ferrvault.com""#;
const OTHER_WATCH: &str = r#"watch="secrets""#;

/// Half-minutes in a story: 40 minutes.
const STEPS: u32 = 80;

/// The same value all along.
pub(super) fn steady(value: i64) -> String {
    format!("{value}+0x{STEPS}")
}

/// An age that grows from the beginning, or a clock that is up to date.
pub(super) fn growing() -> String {
    format!("0+30x{STEPS}")
}

/// `before` for so many half-minutes, then `after` to the end; `_` is nothing.
pub(super) fn then(steps: u32, before: &str, after: &str) -> String {
    let before = if before == "_" { format!("_x{steps}") } else { format!("{before}+0x{}", steps - 1) };
    format!("{before} {after}+0x{}", STEPS - steps)
}

/// All series, each with its values.
pub(super) struct World(BTreeMap<String, String>);

impl World {
    pub(super) fn healthy() -> Self {
        let mut world = Self(BTreeMap::new());
        for pod in [LEADER, STANDBY] {
            let leads = pod == LEADER;
            world.pod(pod, "ferrvault_operator_build_info", r#"version="0.1.0""#, &steady(1));
            world.pod(pod, "ferrvault_operator_ready", "", &steady(1));
            world.pod(pod, "ferrvault_operator_leader", "", &steady(i64::from(leads)));
            world.pod(pod, "ferrvault_operator_runtime_silence_seconds", "", "0 1 0 1+0x77");
            world.pod(pod, "ferrvault_watchdog_silence_seconds", "", "5 1 3 4+0x77");
            for controller in [SECRETS, CONNECTIONS] {
                world.pod(pod, "workqueue_longest_running_processor_seconds", controller, &steady(0));
                world.pod(pod, "workqueue_depth", controller, &steady(if leads { 0 } else { 40 }));
                world.pod(pod, "ferrvault_queue_stalled_seconds", controller, &steady(0));
                world.pod(pod, "controller_runtime_reconcile_timeouts_total", controller, &steady(0));
            }
            for watch in [WATCH, OTHER_WATCH] {
                world.pod(pod, "ferrvault_watch_silence_seconds", watch, &steady(55));
            }
            world.pod(pod, "ferrvault_unreadable_objects", r#"kind="FerrVaultSecret""#, &steady(0));
            world.pod(pod, "ferrvault_secret_sync_errors_total", r#"reason="RolloutFailed""#, &steady(0));
            world.pod(pod, "ferrvault_secret_sync_errors_total", r#"reason="Unreachable""#, &steady(0));
        }
        for name in ["db", "mail"] {
            world.resource(name, 60, &growing());
        }
        world
    }

    /// A series of a replica.
    pub(super) fn pod(&mut self, pod: &str, metric: &str, labels: &str, values: &str) {
        let target = target(pod);
        let comma = if labels.is_empty() { "" } else { "," };
        let key = format!("{metric}{{namespace=\"{HOME}\",{target}{comma}{labels}}}");
        self.0.insert(key, values.to_owned());
    }

    /// A series of a resource, which both replicas tell.
    pub(super) fn object(&mut self, name: &str, metric: &str, labels: &str, values: &str) {
        for pod in [LEADER, STANDBY] {
            let target = target(pod);
            let comma = if labels.is_empty() { "" } else { "," };
            let key = format!("{metric}{{namespace=\"shop\",{target},name=\"{name}\"{comma}{labels}}}");
            self.0.insert(key, values.to_owned());
        }
    }

    /// A resource looked at at this interval, last synced at these times.
    pub(super) fn resource(&mut self, name: &str, interval: i64, last_synced: &str) {
        self.object(name, "ferrvault_secret_last_sync_timestamp_seconds", "", last_synced);
        self.object(name, "ferrvault_secret_refresh_interval_seconds", "", &steady(interval));
        self.object(name, "ferrvault_secret_fresh", "", &steady(1));
    }

    /// After so many half-minutes nothing is told any more.
    pub(super) fn end_all(&mut self, steps: u32) {
        for values in self.0.values_mut() {
            *values = format!("1+0x{} stale", steps - 1);
        }
    }

    /// As promtool wants it.
    pub(super) fn series(&self) -> Value {
        self.0.iter().map(|(series, values)| json!({"series": series, "values": values})).collect()
    }
}

/// The labels that the chart's `ServiceMonitor` leads to, beside the namespace.
fn target(pod: &str) -> String {
    format!("job=\"{RELEASE}-ferrvault-operator-metrics\",pod=\"{pod}\",instance=\"{pod}:8080\"")
}
