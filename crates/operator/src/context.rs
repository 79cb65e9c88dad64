//! Everything a pass needs, in one place: what it calls, what it knows, and what it was started with.

use std::sync::Arc;
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use ferrvault_core::duration::GoDuration;
use ferrvault_core::schedule::Cadence;
use ferrvault_core::version::OperatorKey;

use crate::admin::Metrics;
use crate::clock::Clock;
use crate::cluster::access::Cluster;
use crate::cluster::events::EventPublisher;
use crate::cluster::store::{Keep, Kept};
use crate::connection::Attempts;
use crate::entropy::Entropy;
use crate::ferrvault::{Credentials, FerrVault};
use crate::secret::Memories;
use crate::triggers::Queues;

/// No resource is looked at more often, whatever it asks for: `1ns`, or `30ms` for `30m`, would be a loop without pause.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// One for the process, shared by all passes.
pub struct Context {
    /// Calls to the API server.
    pub cluster: Cluster,
    /// Resources as last seen.
    pub resources: Kept<FerrVaultSecret>,
    /// Connections as last seen.
    pub connections: Kept<FerrVaultConnection>,
    /// Calls to FerrVault.
    pub ferrvault: Arc<dyn FerrVault>,
    /// Tokens and bearers of connections.
    pub credentials: Arc<Credentials>,
    /// The key that versions are made with.
    pub operator_key: OperatorKey,
    /// What is remembered between passes over resources.
    pub memories: Memories,
    /// Failed checks in a row of each connection.
    pub attempts: Attempts,
    /// Where a pass asks for another.
    pub queues: Queues,
    /// Events for people.
    pub events: EventPublisher,
    /// Counters and histograms.
    pub metrics: Metrics,
    /// The wall clock.
    pub clock: Clock,
    /// Nonces and jitter.
    pub entropy: Entropy,
    /// `--default-refresh-interval`; zero means no scheduled look.
    pub default_refresh: Duration,
    /// `--reconcile-timeout`.
    pub deadline: Duration,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// Keeps the resource that a write of ours answered, so that no later pass sees it from before.
    pub fn keep(&self, renewed: FerrVaultSecret) -> Arc<FerrVaultSecret> {
        keep(&self.resources, renewed)
    }

    /// Keeps the connection that a write of ours answered.
    pub fn keep_connection(&self, renewed: FerrVaultConnection) -> Arc<FerrVaultConnection> {
        keep(&self.connections, renewed)
    }

    /// Whether this replica leads, and so may write, at this moment.
    pub fn leads(&self) -> bool {
        self.cluster.may_write().is_ok()
    }

    /// How often `resource` is looked at. An interval that cannot be read counts as absent; the sync stage refuses it.
    pub fn cadence(&self, resource: &FerrVaultSecret) -> Cadence {
        cadence(resource, self.default_refresh)
    }
}

/// How often `resource` is looked at under an operator with this default.
pub fn cadence(resource: &FerrVaultSecret, default_refresh: Duration) -> Cadence {
    let own = resource.spec.refresh_interval.as_deref().and_then(|text| GoDuration::parse_non_negative(text).ok());
    let floored = |interval: Duration| if interval.is_zero() { interval } else { interval.max(SHORTEST_INTERVAL) };
    Cadence { interval: floored(own.unwrap_or(default_refresh)), fallback: floored(default_refresh) }
}

fn keep<K: Keep + Clone>(store: &Kept<K>, renewed: K) -> Arc<K> {
    store.insert_if_newer(renewed.clone());
    Arc::new(renewed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_resource_is_looked_at_more_than_once_a_second() {
        let hour = Duration::from_hours(1);
        let cases = [
            (Some("1ns"), hour, SHORTEST_INTERVAL),
            (Some("30ms"), hour, SHORTEST_INTERVAL),
            (Some("0s"), hour, Duration::ZERO),
            (Some("90s"), hour, Duration::from_secs(90)),
            (Some("soon"), hour, hour),
            (None, Duration::from_nanos(1), SHORTEST_INTERVAL),
            (None, Duration::ZERO, Duration::ZERO),
        ];
        for (own, default_refresh, expected) in cases {
            let resource: FerrVaultSecret = serde_json::from_value(serde_json::json!({
                "metadata": {"name": "db"},
                "spec": {"connectionRef": {"name": "main"}, "vault": "v", "refreshInterval": own},
            }))
            .unwrap();
            assert_eq!(cadence(&resource, default_refresh).interval, expected, "{own:?}");
        }
    }
}
