//! The hooks themselves. Never in a build that ships.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Handle;

/// The variable that names the folder of wishes.
const FOLDER: &str = "FERRVAULT_TEST_HOOKS";

/// Between two looks at a wish.
const LOOK: Duration = Duration::from_millis(100);

/// Tasks that block a thread each: more than any machine that runs tests has workers.
const BLOCKERS: usize = 256;

/// Whether this is the program of the tests. Another that happens to be built with the feature has no doors either.
static ARMED: AtomicBool = AtomicBool::new(false);

static PASSES_HELD: AtomicBool = AtomicBool::new(false);
static QUEUES_HELD: AtomicBool = AtomicBool::new(false);
static RUNTIME_BLOCKED: AtomicBool = AtomicBool::new(false);
static CLOCK_OFFSET_SECONDS: AtomicI64 = AtomicI64::new(0);
/// The whole number that every patience of minutes is divided by.
static HASTE: AtomicU32 = AtomicU32::new(1);

/// Lets the doors be opened. For the program of the tests alone, as its first act.
pub fn arm() {
    ARMED.store(true, Ordering::Relaxed);
}

/// Begins to look at the folder, if the doors are armed, from a thread that nothing here can block. To be called on the
/// main runtime, before any patience is asked for.
pub(crate) fn start() {
    let Some(folder) = folder(std::env::var_os(FOLDER)) else { return };
    HASTE.store(number::<u32>(&folder, "haste").max(1), Ordering::Relaxed);
    tracing::warn!(folder = %folder.display(), "this operator has the hooks of its tests: not for use");
    let runtime = Handle::current();
    thread::spawn(move || {
        loop {
            PASSES_HELD.store(folder.join("hold-passes").exists(), Ordering::Relaxed);
            QUEUES_HELD.store(folder.join("hold-queues").exists(), Ordering::Relaxed);
            CLOCK_OFFSET_SECONDS.store(number(&folder, "clock-offset"), Ordering::Relaxed);
            let block = folder.join("block-runtime").exists();
            if !RUNTIME_BLOCKED.swap(block, Ordering::Relaxed) && block {
                for _ in 0..BLOCKERS {
                    runtime.spawn(async { block_this_thread() });
                }
            }
            thread::sleep(LOOK);
        }
    });
}

/// Where wishes are looked for: nowhere unless the doors are armed, whatever the environment says.
fn folder(named: Option<OsString>) -> Option<PathBuf> {
    named.filter(|_| ARMED.load(Ordering::Relaxed)).map(PathBuf::from)
}

/// The number in a file; zero where there is none, or it is being written.
fn number<N: std::str::FromStr + Default>(folder: &Path, name: &str) -> N {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

fn block_this_thread() {
    while RUNTIME_BLOCKED.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
}

/// The wall clock, set forward or back.
pub(crate) fn wall(now: Timestamp) -> Timestamp {
    let offset = SignedDuration::from_secs(CLOCK_OFFSET_SECONDS.load(Ordering::Relaxed));
    now.checked_add(offset).unwrap_or(now)
}

/// A threshold, in the haste of the test.
pub(crate) fn patience(threshold: Duration) -> Duration {
    threshold / HASTE.load(Ordering::Relaxed)
}

/// An age that is held against a threshold which cannot be made shorter.
pub(crate) fn stretched(age: Duration) -> Duration {
    age.saturating_mul(HASTE.load(Ordering::Relaxed))
}

/// A pass that does not begin while passes are held: for whoever looks, it has begun.
pub(crate) async fn held<F: Future>(pass: F) -> F::Output {
    while PASSES_HELD.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK).await;
    }
    pass.await
}

/// A queue that starts nothing while queues are held.
pub(crate) async fn held_queue<F: Future>(queue: F) -> F::Output {
    let mut queue = pin!(queue);
    loop {
        while QUEUES_HELD.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
        // In slices, or a queue with nothing to do would never ask again whether it is held.
        if let Ok(ended) = tokio::time::timeout(LOOK, queue.as_mut()).await {
            return ended;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_looked_at_until_the_program_of_the_tests_arms_the_doors() {
        let named = || Some(OsString::from("wishes"));
        assert_eq!(folder(named()), None);
        arm();
        assert_eq!((folder(named()), folder(None)), (Some(PathBuf::from("wishes")), None));
    }
}
