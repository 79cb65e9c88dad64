//! The loop that starts passes: each in a task of its own, so that one which never returns holds nobody up.
//!
//! It alone starts passes. Dropping it cuts off every pass that runs, so nothing outlives it.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Next, Queue, Work};
use crate::key::ObjectKey;

/// When a pass ended without any answer, its key is looked at again after this long: often enough to be noticed as a
/// retry, too rarely to be a load.
const UNANSWERED: Duration = Duration::from_mins(1);

impl<W: Work> Queue<W> {
    /// Starts passes until `stop`, then waits for those that run.
    ///
    /// `on_panic` decides what becomes of a key whose pass panicked.
    pub async fn run<P, F, R>(&self, pass: P, on_panic: R, stop: CancellationToken)
    where
        P: Fn(ObjectKey, W) -> F + Send + Sync + 'static,
        F: Future<Output = Next<W>> + Send + 'static,
        R: Fn(&ObjectKey) -> Next<W> + Send + Sync + 'static,
    {
        let calls = Arc::new((pass, on_panic));
        let mut passes = JoinSet::new();
        loop {
            let stopping = stop.is_cancelled();
            let next_tick = if stopping {
                None
            } else {
                let mut state = self.state();
                let now = Instant::now();
                state.tick(now);
                while let Some((key, work)) = state.start(now) {
                    passes.spawn(contained(Ending::new(self, key), work, Arc::clone(&calls)));
                }
                state.next_tick()
            };
            if stopping && passes.is_empty() {
                return;
            }
            tokio::select! {
                biased;
                () = stop.cancelled(), if !stopping => {}
                Some(_) = passes.join_next(), if !passes.is_empty() => {
                    // Each has told the queue itself; here they are only cleared away, all that are done at once.
                    while passes.try_join_next().is_some() {}
                }
                () = self.shared.changed.notified(), if !stopping => {}
                () = tokio::time::sleep_until(next_tick.unwrap_or_else(Instant::now)), if next_tick.is_some() => {}
            }
        }
    }
}

/// Runs one pass, whatever it does.
async fn contained<W, P, F, R>(ending: Ending<W>, work: W, calls: Arc<(P, R)>)
where
    W: Work,
    P: Fn(ObjectKey, W) -> F + Send + Sync,
    F: Future<Output = Next<W>> + Send,
    R: Fn(&ObjectKey) -> Next<W> + Send + Sync,
{
    let (pass, on_panic) = &*calls;
    let key = ending.key.clone();
    // What a panic leaves half done is the pass's own state, which is dropped with it.
    let answer = AssertUnwindSafe(async { pass(key, work).await }).catch_unwind().await;
    // The payload is dropped unread: it may hold anything. Where it happened was logged by the panic hook.
    let next = answer.unwrap_or_else(|_| {
        let (key, controller) = (&ending.key, ending.queue.controller());
        tracing::error!(controller, namespace = %key.namespace, name = %key.name, "a pass panicked");
        on_panic(key)
    });
    ending.with(next);
}

/// The end of a pass, which comes whatever happens: also when `on_panic` panics, or the task is cut off.
struct Ending<W: Work> {
    queue: Queue<W>,
    key: ObjectKey,
    next: Option<Next<W>>,
}

impl<W: Work> Ending<W> {
    fn new(queue: &Queue<W>, key: ObjectKey) -> Self {
        Self { queue: queue.clone(), key, next: None }
    }

    fn with(mut self, next: Next<W>) {
        self.next = Some(next);
    }
}

impl<W: Work> Drop for Ending<W> {
    fn drop(&mut self) {
        let next = self.next.take().unwrap_or_else(|| Next::Wake { after: UNANSWERED, work: W::default() });
        self.queue.state().finish(&self.key, next, Instant::now());
    }
}
