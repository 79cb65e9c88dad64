//! One read for all who ask for the same thing meanwhile.
//!
//! A rotated token makes a thousand resources due at once, and each of their passes needs the token. A pass may only use a
//! read that began after it asked: an older one may have seen the Secret from before the change that the pass is about.
//! So whoever comes while a read is under way waits for the next one, which then serves all who came.
//!
//! A failure is nobody's but its reader's. Nothing is kept: what was read goes with the last of those who waited for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// So long one waits for the read of another at most, then reads by itself: a read that hangs holds up nobody else for
/// longer than that (I9), and a pass has time for its own ten seconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads that are under way or waited for.
pub(super) struct Reads<K: Ord, V>(Mutex<BTreeMap<K, Weak<Turns<V>>>>);

/// The reads of one thing, one after another.
struct Turns<V> {
    /// How many have begun.
    begun: AtomicU64,
    /// The last one that ended, by its number.
    last: tokio::sync::Mutex<Option<(u64, V)>>,
}

/// A place among those who wait. The last one to leave takes what was read along.
struct Seat<'a, K: Ord, V> {
    reads: &'a Reads<K, V>,
    key: K,
    /// Always there until the seat is left.
    turns: Option<Arc<Turns<V>>>,
}

impl<K: Ord, V> Default for Reads<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Clone, V: Clone> Reads<K, V> {
    /// What `read` gives, of this call or of another one that began after this one was made.
    ///
    /// `is_news`: whether the others may believe it. A failure is its own reader's alone: it is no word about the thing.
    pub(super) async fn shared<F: Future<Output = V>>(
        &self,
        key: K,
        is_news: impl Fn(&V) -> bool,
        read: impl FnOnce() -> F,
    ) -> V {
        let seat = self.seat(key);
        let Some(turns) = &seat.turns else { return read().await };
        let asked = turns.begun.load(Ordering::Relaxed);
        let Ok(mut last) = tokio::time::timeout(PATIENCE, turns.last.lock()).await else { return read().await };
        if let Some((number, value)) = last.as_ref()
            && *number > asked
        {
            return value.clone();
        }
        let number = turns.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let value = read().await;
        if is_news(&value) {
            *last = Some((number, value.clone()));
        }
        value
    }

    fn seat(&self, key: K) -> Seat<'_, K, V> {
        let mut all = self.lock();
        let turns = all.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let turns = Arc::new(Turns { begun: AtomicU64::new(0), last: tokio::sync::Mutex::new(None) });
            all.insert(key.clone(), Arc::downgrade(&turns));
            turns
        });
        drop(all);
        Seat { reads: self, key, turns: Some(turns) }
    }
}

impl<K: Ord, V> Reads<K, V> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Weak<Turns<V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord, V> Drop for Seat<'_, K, V> {
    fn drop(&mut self) {
        let mut all = self.reads.lock();
        // Left under the lock, so that of two who leave at once the second one sees that nobody is left.
        drop(self.turns.take());
        if all.get(&self.key).is_some_and(|turns| turns.strong_count() == 0) {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use futures::future::join_all;
    use tokio::time::{Instant, sleep};

    use super::*;

    const TAKES: Duration = Duration::from_millis(100);

    /// A thing that is read; each read sees it as it is at its beginning.
    #[derive(Default)]
    struct Thing {
        reads: Reads<&'static str, u32>,
        holds: Cell<u32>,
        read: RefCell<Vec<u32>>,
    }

    impl Thing {
        async fn ask(&self, takes: Duration) -> u32 {
            let read = || async {
                let seen = self.holds.get();
                self.read.borrow_mut().push(seen);
                sleep(takes).await;
                seen
            };
            self.reads.shared("token", |_| true, read).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_who_ask_at_once_are_served_by_two_reads() {
        let thing = Thing::default();
        let answers = join_all((0..1000).map(|_| thing.ask(TAKES))).await;
        assert_eq!(answers, [0; 1000]);
        // All but the first came while its read was under way.
        assert_eq!(thing.read.borrow().len(), 2);
        assert!(thing.reads.lock().is_empty(), "nothing is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_given_what_was_seen_before_he_asked() {
        let thing = Thing::default();
        let later = async {
            sleep(TAKES / 2).await;
            thing.holds.set(1);
            join_all((0..10).map(|_| thing.ask(TAKES))).await
        };
        let (first, later) = tokio::join!(thing.ask(TAKES), later);
        assert_eq!((first, later), (0, vec![1; 10]));
        assert_eq!(*thing.read.borrow(), [0, 1]);
        assert_eq!(thing.ask(TAKES).await, 1);
        assert_eq!(thing.read.borrow().len(), 3, "the next one begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_hangs_holds_up_nobody_for_longer_than_a_moment() {
        let thing = Thing::default();
        let began = Instant::now();
        let hanging = thing.ask(Duration::from_hours(1));
        let others = async {
            join_all((0..10).map(|_| thing.ask(TAKES))).await;
            began.elapsed()
        };
        tokio::select! {
            // In this order: the one that hangs has to come first.
            biased;
            _ = hanging => unreachable!(),
            took = others => assert_eq!(took, PATIENCE + TAKES),
        }
        assert!(thing.reads.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_cut_off_leaves_its_turn_to_the_next() {
        let thing = Thing::default();
        let cut = tokio::time::timeout(TAKES / 2, thing.ask(TAKES));
        let others = join_all((0..10).map(|_| thing.ask(TAKES)));
        let (cut, others) = tokio::join!(cut, others);
        assert!(cut.is_err());
        assert_eq!((others, thing.read.borrow().len()), (vec![0; 10], 2));
        assert!(thing.reads.lock().is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 8)]
    async fn nothing_is_kept_whoever_leaves_at_the_same_moment() {
        let reads: Arc<Reads<u32, u32>> = Arc::default();
        for round in 0..20_000 {
            let ask = || {
                let reads = Arc::clone(&reads);
                tokio::spawn(async move { reads.shared(round, |_| true, || std::future::ready(1)).await })
            };
            for asked in [ask(), ask(), ask()] {
                assert_eq!(asked.await.unwrap(), 1);
            }
        }
        assert_eq!(reads.lock().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_fails_fails_nobody_but_its_reader() {
        let reads: Reads<&str, Result<u32, &str>> = Reads::default();
        let begun = Cell::new(0);
        let ask = || {
            reads.shared("token", Result::is_ok, || async {
                begun.set(begun.get() + 1);
                let fails = begun.get() == 2;
                sleep(TAKES).await;
                if fails { Err("500") } else { Ok(1) }
            })
        };
        let answers = join_all((0..100).map(|_| ask())).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1);
    }
}
