//! Puts the rooms together: stores fed by watches, queues fed by stores, passes fed by queues. The same for the process,
//! for tests and for a simulation; only what is handed in differs.

use std::sync::Arc;
use std::time::Duration;

use ferrvault_core::version::OperatorKey;
use tokio_util::sync::CancellationToken;

use crate::admin::{ConnectionSeries, Metrics, ObjectSeries, ResourceSeries};
use crate::clock::Clock;
use crate::cluster::access::Cluster;
use crate::cluster::client::Clients;
use crate::cluster::events::EventPublisher;
use crate::cluster::watch::{self, Scope, Started};
use crate::connection;
use crate::context::{self, Context};
use crate::entropy::Entropy;
use crate::ferrvault::{Credentials, FerrVault, OidcLimits};
use crate::key::ObjectKey;
use crate::leader::Leadership;
use crate::queue::{Limits, Queue};
use crate::secret;
use crate::triggers::{self, Queues, SecretSink};

/// What the controllers are made of.
pub struct Parts {
    /// How the API server is talked to.
    pub clients: Clients,
    /// Whether this replica may write.
    pub leadership: Leadership,
    /// How FerrVault is talked to.
    pub ferrvault: Arc<dyn FerrVault>,
    /// What the exchange of the pod's identity is held within.
    pub oidc: OidcLimits,
    /// The key that versions are made with.
    pub operator_key: OperatorKey,
    /// The wall clock.
    pub clock: Clock,
    /// Nonces and jitter.
    pub entropy: Entropy,
    /// Counters and histograms.
    pub metrics: Metrics,
    /// Who signs events: the pod's name.
    pub instance: String,
    /// Which namespaces are watched.
    pub scope: Scope,
    /// How many passes run side by side.
    pub limits: Limits,
    /// `--default-refresh-interval`; zero means no scheduled look.
    pub default_refresh: Duration,
    /// `--reconcile-timeout`.
    pub deadline: Duration,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// Both controllers with all they share.
#[derive(Debug)]
pub struct Controllers {
    /// What every pass is handed.
    pub ctx: Arc<Context>,
    /// The keys that are due.
    pub queues: Queues,
    clients: Clients,
    leadership: Leadership,
    scope: Scope,
}

impl Controllers {
    /// Puts them together. Nothing is sent and nothing runs yet.
    pub fn new(parts: Parts) -> Self {
        let queues = Queues {
            resources: Queue::new(crate::admin::metrics::SECRET_CONTROLLER, parts.limits),
            connections: Queue::new(crate::admin::metrics::CONNECTION_CONTROLLER, parts.limits),
        };
        let credentials = Arc::new(Credentials::new(Arc::clone(&parts.ferrvault), parts.clock.clone(), parts.oidc));
        let (resources, connections) = triggers::stores(&queues, Arc::clone(&credentials));
        let request = parts.clients.request.clone();
        let ctx = Context {
            cluster: Cluster::new(request.clone(), parts.leadership.clone()),
            resources,
            connections,
            ferrvault: parts.ferrvault,
            credentials,
            operator_key: parts.operator_key,
            memories: secret::Memories::default(),
            attempts: connection::Attempts::default(),
            events: EventPublisher::new(request, parts.clock.clone(), &parts.instance),
            metrics: parts.metrics,
            clock: parts.clock,
            entropy: parts.entropy,
            default_refresh: parts.default_refresh,
            deadline: parts.deadline,
        };
        let ctx = Arc::new(ctx);
        ctx.metrics.tell_queue(&queues.resources);
        ctx.metrics.tell_queue(&queues.connections);
        let told = Arc::downgrade(&ctx);
        ctx.metrics.tell_objects(move || told.upgrade().map(|ctx| series(&ctx)).unwrap_or_default());
        Self { ctx, queues, clients: parts.clients, leadership: parts.leadership, scope: parts.scope }
    }

    /// Starts the watches. A standby watches as well, so that it can take over at once.
    pub fn watch(&self, stop: &CancellationToken) -> Vec<Started> {
        let (ctx, client, scope) = (&self.ctx, &self.clients.watch, &self.scope);
        let sink = SecretSink::new(self.queues.clone(), ctx.resources.clone(), ctx.connections.clone());
        vec![
            watch::spawn_connections(client, scope, ctx.connections.sink(), &ctx.entropy, stop),
            watch::spawn_resources(client, scope, ctx.resources.sink(), &ctx.entropy, stop),
            watch::spawn_secrets(client, scope, sink, &ctx.entropy, stop),
        ]
    }

    /// Runs passes whenever this replica leads, until `stop`; then waits for those that run.
    ///
    /// To be called once every watch has a complete list: before that, what is absent may only be unseen.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.leadership.gained() => {}
            }
            // What was done while another led is unknown, and what was remembered from before is old.
            triggers::everything(&self.queues, &self.ctx.resources, &self.ctx.connections);
            let term = stop.child_token();
            let passes = self.passes(term.clone());
            tokio::pin!(passes);
            tokio::select! {
                () = &mut passes => return,
                () = lost(&mut self.leadership) => {
                    tracing::warn!("leadership lost: no new pass is started");
                    term.cancel();
                    passes.await;
                    self.ctx.memories.forget_all();
                }
            }
        }
    }

    fn passes(&self, stop: CancellationToken) -> impl Future<Output = ()> + use<> {
        let resources = {
            let (ctx, on_panic) = (Arc::clone(&self.ctx), Arc::clone(&self.ctx));
            let queue = self.queues.resources.clone();
            let stop = stop.clone();
            async move {
                let pass = move |key, due| secret::pass(Arc::clone(&ctx), key, due);
                queue.run(pass, move |key| secret::after_panic(&on_panic, key), stop).await;
            }
        };
        let connections = {
            let (ctx, on_panic) = (Arc::clone(&self.ctx), Arc::clone(&self.ctx));
            let queue = self.queues.connections.clone();
            async move {
                let pass = move |key, due| connection::pass(Arc::clone(&ctx), key, due);
                queue.run(pass, move |key| connection::after_panic(&on_panic, key), stop).await;
            }
        };
        async move {
            tokio::join!(resources, connections);
        }
    }
}

async fn lost(leadership: &mut Leadership) {
    while leadership.is_leader_now() {
        leadership.changed().await;
    }
}

/// What there is to tell of each object at this moment.
fn series(ctx: &Context) -> ObjectSeries {
    let key = |meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
    };
    let resources = ctx.resources.all().into_iter().map(|resource| ResourceSeries {
        key: key(&resource.metadata),
        last_synced: resource.status.as_ref().and_then(|status| Some(status.last_synced_at.as_ref()?.0)),
        refresh_interval: context::cadence(&resource, ctx.default_refresh).interval,
    });
    let connections = ctx.connections.all().into_iter().map(|connection| {
        let conditions = connection.status.iter().flat_map(|status| &status.conditions);
        let ready = conditions
            .into_iter()
            .any(|condition| condition.type_ == ferrvault_api::condition::READY && condition.status == "True");
        ConnectionSeries { key: key(&connection.metadata), ready }
    });
    ObjectSeries { resources: resources.collect(), connections: connections.collect() }
}
