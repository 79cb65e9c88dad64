//! The series that belong to objects: computed at each scrape from what exists then.
//!
//! So none of them can freeze, and the series of an object goes when the object goes. Labels are namespaces and names,
//! never a value. Five series for each resource, at most two more while it owes restarts, and one for each connection:
//! 10,000 resources are 50,000 series.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue};
use prometheus_client::metrics::MetricType;

use crate::key::ObjectKey;

/// Everything there is at the moment of a scrape.
#[derive(Clone, Debug, Default)]
pub struct ObjectSeries {
    /// The resources.
    pub resources: Vec<ResourceSeries>,
    /// The connections.
    pub connections: Vec<ConnectionSeries>,
}

/// What is told of one resource.
#[derive(Clone, Debug)]
pub struct ResourceSeries {
    /// Which.
    pub key: ObjectKey,
    /// When it was created: told until the first sync, so that one which never synced has an age, too.
    pub created: Option<Timestamp>,
    /// `status.lastSyncedAt`; before the first sync there is no series.
    pub last_synced: Option<Timestamp>,
    /// `status.lastAttemptedAt`; before the first pass there is no series.
    pub last_attempted: Option<Timestamp>,
    /// When a pass of this process last ended with nothing wrong, restarts included.
    pub last_succeeded: Option<Timestamp>,
    /// The interval in force, the default included; zero where no look is scheduled.
    pub refresh_interval: Duration,
    /// Whether passes end as they should.
    pub fresh: bool,
    /// Workloads whose restart was refused.
    pub restarts_failed: usize,
    /// Workloads that are waited for.
    pub restarts_waiting: usize,
}

/// What is told of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionSeries {
    /// Which.
    pub key: ObjectKey,
    /// Whether its last probe found it ready.
    pub ready: bool,
}

impl ObjectSeries {
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let resources = || self.resources.iter();
        let times = |time: fn(&ResourceSeries) -> Option<Timestamp>| {
            resources().filter_map(move |of| Some((&of.key, seconds_of(time(of)?))))
        };
        gauges(
            encoder,
            "ferrvault_secret_last_sync_timestamp_seconds",
            "When the target was last proven equal to FerrVault, as Unix time.",
            times(|of| of.last_synced),
        )?;
        gauges(
            encoder,
            "ferrvault_secret_unsynced_since_timestamp_seconds",
            "When a resource that has never synced was created, as Unix time; gone with the first sync.",
            times(|of| of.created.filter(|_| of.last_synced.is_none())),
        )?;
        gauges(
            encoder,
            "ferrvault_secret_last_attempt_timestamp_seconds",
            "When a pass over the resource last ended, whatever its result, as Unix time.",
            times(|of| of.last_attempted),
        )?;
        gauges(
            encoder,
            "ferrvault_secret_last_successful_reconcile_timestamp_seconds",
            "When a pass of this process last ended with nothing wrong, restarts included, as Unix time.",
            times(|of| of.last_succeeded),
        )?;
        gauges(
            encoder,
            "ferrvault_secret_refresh_interval_seconds",
            "The refresh interval in force; 0 where no look is scheduled: 0s, or suspended.",
            resources().map(|of| (&of.key, of.refresh_interval.as_secs_f64())),
        )?;
        gauges(
            encoder,
            "ferrvault_secret_fresh",
            "Whether passes over the resource end in time, as the condition Fresh says: 1 or 0.",
            resources().map(|of| (&of.key, i64::from(of.fresh))),
        )?;
        self.restarts_owed(encoder)?;
        gauges(
            encoder,
            "ferrvault_connection_ready",
            "Whether the last probe of the connection succeeded.",
            self.connections.iter().map(|of| (&of.key, i64::from(of.ready))),
        )
    }
}

impl ObjectSeries {
    /// Told only of resources that owe something, which are few: two series for each resource would be zeros.
    fn restarts_owed(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = (
            "ferrvault_secret_rollouts_owed",
            "Workloads whose restart is owed: refused (failed), or not there yet (waiting). None, where none is.",
        );
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for of in &self.resources {
            for (state, owed) in [("failed", of.restarts_failed), ("waiting", of.restarts_waiting)] {
                if owed > 0 {
                    let labels = [("namespace", &*of.key.namespace), ("name", &*of.key.name), ("state", state)];
                    // A list of workloads has far fewer than 2^63.
                    metric.encode_family(&labels)?.encode_gauge(&i64::try_from(owed).unwrap_or(i64::MAX))?;
                }
            }
        }
        Ok(())
    }
}

/// Unix time with its fraction.
pub(super) fn seconds_of(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

fn gauges<'a, V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl Iterator<Item = (&'a ObjectKey, V)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (key, value) in series {
        metric.encode_family(&[("namespace", &*key.namespace), ("name", &*key.name)])?.encode_gauge(&value)?;
    }
    Ok(())
}
