//! The queue under paused time, rule by rule. What is asserted is which passes began when, with what to do.

mod awaited;
mod endings;
mod model;
mod schedules;
mod turns;
mod work;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinHandle;
use tokio::time::{advance, sleep};
use tokio_util::sync::CancellationToken;

use super::*;

/// Work as a list of what was asked for, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked(Vec<&'static str>);

impl Work for Asked {
    fn merge(&mut self, newer: Self) {
        self.0.extend(newer.0);
    }
}

fn asked(what: &'static str) -> Asked {
    Asked(vec![what])
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A queue that runs, and what happened in it.
struct Bench {
    queue: Queue<Asked>,
    story: Arc<Mutex<Vec<String>>>,
    epoch: Instant,
    stop: CancellationToken,
    run: JoinHandle<()>,
}

impl Bench {
    /// Runs a queue whose passes do `pass` and note their beginning.
    fn new<P, F>(permits: usize, pass: P) -> Self
    where
        P: Fn(ObjectKey, Asked) -> F + Send + Sync + 'static,
        F: Future<Output = Next<Asked>> + Send + 'static,
    {
        let queue = Queue::new("test", Limits::new(NonZeroUsize::new(permits).unwrap()));
        let (story, stop, epoch) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new(), Instant::now());
        let run = tokio::spawn({
            let (queue, story, stop) = (queue.clone(), Arc::clone(&story), stop.clone());
            async move {
                let noted = move |key: ObjectKey, work: Asked| {
                    let at = epoch.elapsed().as_secs_f64();
                    story.lock().unwrap().push(format!("{at} {} {}", key.name, work.0.join("+")));
                    pass(key, work)
                };
                queue.run(noted, |_| Next::Wake { after: secs(5), work: asked("panicked") }, stop).await;
            }
        });
        Self { queue, story, epoch, stop, run }
    }

    fn add(&self, name: &str, group: &str, work: &'static str) {
        self.queue.add(key(name), group.into(), asked(work), Urgency::Now);
    }

    /// Adds a key of another namespace than the usual one.
    fn add_in(&self, namespace: &str, name: &str, group: &str) {
        self.queue.add(ObjectKey::new(namespace, name), group.into(), asked("x"), Urgency::Now);
    }

    fn routine(&self, name: &str, group: &str, work: &'static str) {
        self.queue.add(key(name), group.into(), asked(work), Urgency::Routine);
    }

    fn wake(&self, name: &str, work: &'static str, at: u64) {
        self.queue.add_at(key(name), "g".into(), asked(work), self.epoch + secs(at));
    }

    /// What happened since the last call.
    fn story(&self) -> Vec<String> {
        std::mem::take(&mut self.story.lock().unwrap())
    }

    /// Lets everything happen that is due, up to `seconds` from the start.
    async fn until(&self, seconds: f64) {
        tokio::time::sleep_until(self.epoch + Duration::from_secs_f64(seconds)).await;
        settle().await;
    }
}

/// Lets every task go as far as it can at this moment.
async fn settle() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

/// Passes that take `seconds` and need no other.
fn taking(seconds: u64) -> impl Fn(ObjectKey, Asked) -> futures::future::BoxFuture<'static, Next<Asked>> + Send + Sync {
    move |_, _| {
        Box::pin(async move {
            sleep(secs(seconds)).await;
            Next::Keep
        })
    }
}
