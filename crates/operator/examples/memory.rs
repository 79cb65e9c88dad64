//! Measures, does not judge: live bytes on the heap that the operator keeps per resource, by what keeps them.
//!
//! The whole controllers at rest between an API server in memory and a FerrVault that always answers; counted is what is
//! given back when a part is emptied, so that the memory of the API server, which is in the same process, does not show.
//!
//! ```sh
//! cargo run --release -p ferrvault-operator --example memory
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "a measurement ends at the first thing that fails, and its numbers are small"
)]

use std::alloc::System;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use cap::Cap;
use ferrvault_core::content::{Answer, Content, SecretBytes};
use ferrvault_core::version::OperatorKey;
use ferrvault_operator::admin::Metrics;
use ferrvault_operator::clock::Clock;
use ferrvault_operator::cluster::client::Clients;
use ferrvault_operator::cluster::watch::{Scope, WatchHealth};
use ferrvault_operator::controllers::{Controllers, Parts};
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::ferrvault::{FerrVault, OidcLimits};
use ferrvault_operator::key::ObjectKey;
use ferrvault_operator::leader::Leadership;
use ferrvault_operator::queue::Limits;
use ferrvault_testkit::{ApiServer, EPOCH_SECONDS, build};
use ferrvault_vault::{Bearer, BearerGrant, Endpoint, RevealRequest, VaultError};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes that one thing keeps, told apart by what is emptied first.
struct Kept {
    memories: usize,
    queue: usize,
    rest: usize,
}

/// Two keys for every vault.
struct Vault;

impl FerrVault for Vault {
    fn reveal<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'a Bearer,
        _: &'a RevealRequest,
    ) -> BoxFuture<'a, Result<Answer, VaultError>> {
        let values = [("USER", "app"), ("PASSWORD", "correct horse battery staple")];
        let content = values.into_iter().map(|(key, value)| (key.to_owned(), SecretBytes::from(value))).collect();
        Box::pin(async { Ok(Answer { content: Content(content), missing: Vec::new() }) })
    }

    fn health<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async { Ok(()) })
    }

    fn exchange<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'a str,
        _: &'a Bearer,
    ) -> BoxFuture<'a, Result<BearerGrant, VaultError>> {
        Box::pin(async { Err(VaultError::Unreachable { why: "nobody exchanges here".to_owned() }) })
    }
}

fn main() {
    let (few, many) = (1_000, 3_000);
    let (small, large) = (measured(few), measured(many));
    let each = |of: fn(&Kept) -> usize| (of(&large) as f64 - of(&small) as f64) / (many - few) as f64;
    println!("live heap bytes per resource, each with one Deployment, between {few} and {many} resources:");
    println!("  store            {:>7.0}", each(|kept| kept.rest));
    println!("  queue            {:>7.0}", each(|kept| kept.queue));
    println!("  between passes   {:>7.0}", each(|kept| kept.memories));
    println!("  all              {:>7.0}", each(|kept| kept.rest + kept.queue + kept.memories));
}

fn measured(resources: usize) -> Kept {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let api = ApiServer::default();
        api.apply(&build::secret("shop", "token").key("token", "fft_token"));
        api.apply(&build::connection("shop", "ferrvault").url("http://127.0.0.1:1").token_in("token", "token"));
        for number in 0..resources {
            let name = format!("database-{number:05}");
            api.apply(&build::deployment("shop", &name));
            let resource = build::fvs("shop", &name).through("ferrvault").vault("production").every("1h");
            api.apply(&resource.names(&["USER", "PASSWORD"]).restarts("Deployment", &name));
        }
        kept(&api).await
    })
}

async fn kept(api: &ApiServer) -> Kept {
    let controllers = Controllers::new(Parts {
        clients: Clients::of(api.client_of("operator", "shop")),
        leadership: Leadership::always(),
        ferrvault: Arc::new(Vault),
        oidc: OidcLimits { token_dir: "/nowhere".into(), origins: Vec::new() },
        operator_key: OperatorKey::from_bytes(&[7; 32]).unwrap(),
        clock: Clock::simulated(jiff::Timestamp::from_second(EPOCH_SECONDS).unwrap()),
        entropy: Entropy::seeded(1),
        metrics: Metrics::default(),
        instance: "operator".to_owned(),
        scope: Scope::Cluster,
        limits: Limits::new(NonZeroUsize::new(32).unwrap()),
        default_refresh: Duration::from_hours(1),
        deadline: Duration::from_mins(2),
    });
    let stop = CancellationToken::new();
    let started = controllers.watch(&stop);
    let healths: Vec<_> = started.iter().map(|watch| watch.health.clone()).collect();
    while !healths.iter().all(WatchHealth::is_synced) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (ctx, queues) = (Arc::clone(&controllers.ctx), controllers.queues.clone());
    let passes = tokio::spawn(controllers.run(stop.clone()));
    // Every resource has had its first pass and the echoes of its writes, and the next one is an hour away.
    tokio::time::sleep(Duration::from_mins(5)).await;
    let keys: Vec<ObjectKey> = ctx.resources.all().iter().map(|resource| key(&resource.metadata)).collect();
    assert_eq!(queues.resources.snapshot().scheduled, keys.len(), "all are at rest");
    stop.cancel();
    passes.await.unwrap();
    for watch in started {
        watch.task.await.unwrap();
    }

    let full = HEAP.allocated();
    ctx.memories.forget_all();
    let without_memories = HEAP.allocated();
    for key in &keys {
        queues.resources.forget(key);
    }
    let without_queue = HEAP.allocated();
    drop((ctx, queues));
    let empty = HEAP.allocated();
    Kept { memories: full - without_memories, queue: without_memories - without_queue, rest: without_queue - empty }
}

fn key(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> ObjectKey {
    ObjectKey::new(meta.namespace.as_deref().unwrap(), meta.name.as_deref().unwrap())
}
