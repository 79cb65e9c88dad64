//! Puts the rooms together: stores fed by watches, queues fed by stores, passes fed by queues. The same for the process,
//! for tests and for a simulation; only what is handed in differs.

use std::sync::Arc;
use std::time::Duration;

use ferrvault_core::version::OperatorKey;
use tokio_util::sync::CancellationToken;

use crate::admin::{Liveness, Metrics};
use crate::clock::Clock;
use crate::cluster::access::Cluster;
use crate::cluster::client::Clients;
use crate::cluster::events::EventPublisher;
use crate::cluster::watch::{self, Scope, Started};
use crate::connection;
use crate::context::Context;
use crate::entropy::Entropy;
use crate::ferrvault::{self, Credentials, FerrVault, Listener, OidcLimits};
use crate::hooks;
use crate::key::ObjectKey;
use crate::leader::Leadership;
use crate::queue::{Limits, Next, Queue, Work};
use crate::secret;
use crate::series::series;
use crate::term::Term;
use crate::triggers::{self, Queues, SecretSink};
use crate::watchdog::Watchdog;

/// Within this, the end of leadership is noticed and no pass is started any more: by a task that is woken at that moment.
const UNTIL_NOTICED: Duration = Duration::from_secs(1);

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
    term: Term,
}

impl Controllers {
    /// Puts them together. Nothing is sent and nothing runs yet.
    pub fn new(parts: Parts) -> Self {
        let queues = Queues {
            resources: Queue::new(crate::admin::metrics::SECRET_CONTROLLER, parts.limits),
            connections: Queue::new(crate::admin::metrics::CONNECTION_CONTROLLER, parts.limits),
        };
        let ferrvault: Arc<dyn FerrVault> = Arc::new(Listener(parts.ferrvault));
        let credentials = Arc::new(Credentials::new(Arc::clone(&ferrvault), parts.clock.clone(), parts.oidc));
        let (resources, connections) = triggers::stores(&queues, Arc::clone(&credentials));
        let request = parts.clients.request.clone();
        let ctx = Context {
            cluster: Cluster::new(request.clone(), parts.leadership.clone()),
            resources,
            connections,
            ferrvault,
            credentials,
            operator_key: parts.operator_key,
            memories: secret::Memories::default(),
            attempts: connection::Attempts::default(),
            queues: queues.clone(),
            events: EventPublisher::new(request, parts.leadership.clone(), parts.clock.clone(), &parts.instance),
            metrics: parts.metrics,
            clock: parts.clock,
            entropy: parts.entropy,
            default_refresh: parts.default_refresh,
            deadline: parts.deadline,
        };
        let ctx = Arc::new(ctx);
        let term = Term::default();
        ctx.metrics.tell_queue(&queues.resources, &term);
        ctx.metrics.tell_queue(&queues.connections, &term);
        ctx.metrics.tell_leadership(&parts.leadership);
        ctx.metrics.tell_events(&ctx.events);
        ctx.metrics.tell_answers(ctx.cluster.answers());
        ctx.metrics.tell_unreadable(&ctx.resources);
        ctx.metrics.tell_unreadable(&ctx.connections);
        let told = (Arc::downgrade(&ctx), queues.resources.clone(), term.clone());
        ctx.metrics.tell_objects(move || {
            let (ctx, queue, term) = &told;
            ctx.upgrade().map(|ctx| series(&ctx, queue, term)).unwrap_or_default()
        });
        Self { ctx, queues, clients: parts.clients, leadership: parts.leadership, scope: parts.scope, term }
    }

    /// Since when passes are started.
    pub const fn term(&self) -> &Term {
        &self.term
    }

    /// What looks after the passes over resources, to be run beside them.
    pub fn watchdog(&self) -> Watchdog {
        Watchdog::new(Arc::clone(&self.ctx), self.queues.resources.clone(), self.term.clone())
    }

    /// What has to stay alive here, told to `liveness` and metrics: queues, watches, and the watchdog that looks after them.
    pub fn tell_liveness(&self, liveness: &Liveness, watches: &[Started], watchdog: &Watchdog) {
        liveness.watch_over_term(&self.term);
        liveness.watch_over_queue(&self.queues.resources);
        liveness.watch_over_queue(&self.queues.connections);
        for watch in watches {
            liveness.watch_over_watch(&watch.health);
        }
        liveness.compare_with(self.ctx.cluster.answers());
        liveness.watch_over_watchdog(watchdog.pulse());
        self.ctx.metrics.tell_watchdog(watchdog.pulse());
    }

    /// Starts the watches. A standby watches as well, so that it can take over at once.
    pub fn watch(&self, stop: &CancellationToken) -> Vec<Started> {
        let (ctx, client, scope) = (&self.ctx, &self.clients.watch, &self.scope);
        let sink = SecretSink::new(self.queues.clone(), ctx.resources.clone(), ctx.connections.clone());
        let started = vec![
            watch::spawn_connections(client, scope, ctx.connections.sink(), &ctx.entropy, stop),
            watch::spawn_resources(client, scope, ctx.resources.sink(), &ctx.entropy, stop),
            watch::spawn_secrets(client, scope, sink, &ctx.entropy, stop),
        ];
        for watch in &started {
            ctx.metrics.tell_watch(&watch.health);
        }
        started
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
            self.term.begin();
            let term = stop.child_token();
            let passes = self.passes(term.clone());
            tokio::pin!(passes);
            tokio::select! {
                () = &mut passes => return,
                () = lost(&mut self.leadership) => {
                    tracing::warn!("leadership lost: no new pass is started");
                    self.term.end();
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
            let (queue, leadership, stop) = (self.queues.resources.clone(), self.leadership.clone(), stop.clone());
            async move {
                let pass = move |key, due| {
                    let ctx = Arc::clone(&ctx);
                    hooks::held(in_office(leadership.clone(), key, due, |key, due| secret::pass(ctx, key, due)))
                };
                hooks::held_queue(queue.run(pass, move |key| secret::after_panic(&on_panic, key), stop)).await;
            }
        };
        let connections = {
            let (ctx, on_panic) = (Arc::clone(&self.ctx), Arc::clone(&self.ctx));
            let (queue, leadership) = (self.queues.connections.clone(), self.leadership.clone());
            async move {
                let pass = move |key, due| {
                    let ctx = Arc::clone(&ctx);
                    hooks::held(in_office(leadership.clone(), key, due, |key, due| connection::pass(ctx, key, due)))
                };
                hooks::held_queue(queue.run(pass, move |key| connection::after_panic(&on_panic, key), stop)).await;
            }
        };
        async move {
            tokio::join!(resources, connections);
        }
    }
}

/// Runs `pass`, if this replica still leads at the moment at which it begins. A process that was stopped may come here
/// before anybody has noticed that its right ended meanwhile; the next term asks for a pass over everything.
async fn in_office<W: Work, F: Future<Output = Next<W>>>(
    leadership: Leadership,
    key: ObjectKey,
    work: W,
    pass: impl FnOnce(ObjectKey, W) -> F,
) -> Next<W> {
    if !leadership.is_leader_now() {
        return Next::Wake { after: UNTIL_NOTICED, work };
    }
    ferrvault::until_the_end(Arc::clone(&key.namespace), pass(key, work)).await
}

async fn lost(leadership: &mut Leadership) {
    while leadership.is_leader_now() {
        leadership.changed().await;
    }
}
