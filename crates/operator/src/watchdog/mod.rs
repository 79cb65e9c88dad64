//! Looks at every resource every few seconds, and says on it when nobody looks after it any more.
//!
//! ```text
//! stores, queue ─▶ ages ─▶ core::freshness ─▶ condition Fresh, an event     (while this replica leads)
//! ```
//!
//! It shares nothing with the passes that it watches but the stores: no queue, no worker, no connection, and in the
//! process not even the runtime. So it also works when every pass hangs. It writes the condition `Fresh` and nothing else
//! on readable resources, each time on condition that nobody wrote since, and only where that condition has to become
//! false, or true again: that it is true at all is said by the passes, whose end is what makes it true.

mod ages;
mod thread;
mod unreadable;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_core::freshness::{self, Ages, Freshness};
use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::ages::Attempts;
pub use self::thread::Running;
use self::unreadable::Unreadable;
use self::writes::Writes;
use crate::cluster::access::Cluster;
use crate::cluster::client::WATCHDOG_DEADLINE;
use crate::context::Context;
use crate::hooks;
use crate::key::ObjectKey;
use crate::pulse::Pulse;
use crate::queue::Queue;
use crate::secret::Due;
use crate::term::Term;

/// How often it looks. What it looks for is minutes old; ten thousand resources cost a millisecond.
pub const LOOK: Duration = Duration::from_secs(5);

/// At the beginning of a term everything gets its pass, and what was late before is not called stale while it is about to
/// be looked at: that would be two writes per resource after each restart, and an alarm about something that is over.
const SETTLING: Duration = Duration::from_mins(1);

/// When nobody else has heard from the API server for this long, the watchdog asks for a sign of life: at most four
/// requests a minute, and none while there is other traffic.
const QUIET: Duration = Duration::from_secs(15);

/// The watchdog, before it runs.
#[derive(Debug)]
pub struct Watchdog {
    ctx: Arc<Context>,
    queue: Queue<Due>,
    term: Term,
    pulse: Pulse,
}

/// A resource of which `Fresh` has to say something else.
#[derive(Clone, Debug)]
struct Finding {
    key: ObjectKey,
    resource: Arc<FerrVaultSecret>,
    freshness: Freshness,
    interval: Duration,
    ages: Ages,
}

impl Watchdog {
    /// One that watches the passes over resources.
    pub fn new(ctx: Arc<Context>, queue: Queue<Due>, term: Term) -> Self {
        Self { ctx, queue, term, pulse: Pulse::default() }
    }

    /// When it last looked.
    pub const fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Looks until `stop`, and writes through `client`, which nobody else should use.
    pub async fn run(self, client: Client, stop: CancellationToken) {
        let cluster = self.ctx.cluster.beside(client, WATCHDOG_DEADLINE);
        // What a write holds that is dropped at the stop is a connection. Boxed, because a round with its writes is large.
        let _stopped = stop.run_until_cancelled(Box::pin(self.forever(cluster))).await;
    }

    async fn forever(self, cluster: Cluster) {
        let mut attempts = Attempts::default();
        let mut writes = Writes::new(Arc::clone(&self.ctx), cluster.clone());
        let mut unreadable = Unreadable::new(Arc::clone(&self.ctx), cluster.clone());
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            self.pulse.beat();
            if cluster.answers().silence() >= QUIET {
                // What becomes of it is noted beside the call, for metrics and liveness.
                let _ = cluster.ask_for_a_sign_of_life().await;
            }
            let leading = cluster.may_write().is_ok();
            let Some(term) = self.term.since().filter(|_| leading) else {
                attempts.forget_all();
                continue;
            };
            writes.carry_out(self.look(&mut attempts, term, Instant::now())).await;
            unreadable.tell().await;
        }
    }

    /// What has to be said, by key.
    fn look(&self, attempts: &mut Attempts, term: Instant, now: Instant) -> Vec<Finding> {
        let awaited = self.queue.awaited();
        let resources = self.ctx.resources.all();
        let wall = self.ctx.clock.now();
        let mut findings = Vec::new();
        attempts.look(now);
        for resource in resources {
            let key = crate::triggers::key_of(&resource.metadata);
            let (suspended, interval) = (resource.is_suspended(), self.ctx.cadence(&resource).interval);
            let expected = if suspended { Duration::ZERO } else { interval };
            let ages = Ages {
                attempted: attempts.age(&key, &resource, expected, wall),
                awaited: awaited.get(&key).map(|since| now.saturating_duration_since((*since).max(term))),
            };
            let judged =
                Ages { attempted: hooks::stretched(ages.attempted), awaited: ages.awaited.map(hooks::stretched) };
            let freshness = freshness::judge(suspended, interval, judged);
            let settling =
                freshness == Freshness::Stale && now.saturating_duration_since(term) < hooks::patience(SETTLING);
            if !settling && is_worth_a_write(&resource, freshness) {
                findings.push(Finding { key, resource, freshness, interval, ages });
            }
        }
        attempts.forget_unseen();
        findings
    }
}

/// Whether the watchdog has to say so: that something is late, or that it no longer is.
fn is_worth_a_write(resource: &FerrVaultSecret, freshness: Freshness) -> bool {
    let said = freshness::said(resource.status.as_ref());
    if freshness.is_true() {
        said.is_some_and(|said| said.status == "False")
    } else {
        said.is_none_or(|said| said.reason != freshness.reason().as_str())
    }
}
