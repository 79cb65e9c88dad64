//! The series that belong to objects: computed at each scrape from what exists then.
//!
//! So none of them can freeze, and the series of an object goes when the object goes. Labels are namespaces and names.

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
    /// `status.lastSyncedAt`; before the first sync there is no series.
    pub last_synced: Option<Timestamp>,
    /// The interval in force, the default included; zero where scheduled refresh is off.
    pub refresh_interval: Duration,
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
        let synced = self.resources.iter().filter_map(|of| Some((&of.key, seconds_of(of.last_synced?))));
        gauges(
            encoder,
            "ferrvault_secret_last_sync_timestamp_seconds",
            "When the target was last proven equal to FerrVault, as Unix time.",
            synced,
        )?;
        gauges(
            encoder,
            "ferrvault_secret_refresh_interval_seconds",
            "The refresh interval in force; 0 where scheduled refresh is off.",
            self.resources.iter().map(|of| (&of.key, of.refresh_interval.as_secs_f64())),
        )?;
        gauges(
            encoder,
            "ferrvault_connection_ready",
            "Whether the last probe of the connection succeeded.",
            self.connections.iter().map(|of| (&of.key, i64::from(of.ready))),
        )
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
