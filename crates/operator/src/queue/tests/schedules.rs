//! The queue under random schedules: whatever is asked in whatever order, no key runs twice at once and nothing is lost.
//!
//! Each case is one seed; a failing one names it. Work is a set of numbers, each handed out once, so that every number
//! can be followed from the call that brought it to the pass that took it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::*;

/// `None` is "look at everything".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Numbers(Option<BTreeSet<u32>>);

impl Work for Numbers {
    fn merge(&mut self, newer: Self) {
        self.0 = match (self.0.take(), newer.0) {
            (Some(mut ours), Some(theirs)) => {
                ours.extend(theirs);
                Some(ours)
            }
            (one, other) => one.or(other),
        };
    }
}

fn number(n: u32) -> Numbers {
    Numbers(Some(BTreeSet::from([n])))
}

/// What passes saw.
#[derive(Default)]
struct Seen {
    running: BTreeMap<ObjectKey, usize>,
    most_running: usize,
    overlaps: usize,
    handed_out: BTreeSet<u32>,
    twice: Vec<u32>,
    order: Vec<(Duration, ObjectKey)>,
}

struct Schedule {
    seed: u64,
    permits: usize,
    keys: usize,
    groups: usize,
    calls: u32,
}

/// Runs one schedule and gives back what its passes saw, and which numbers were asked for with a promise.
async fn play(schedule: &Schedule) -> (Seen, BTreeSet<u32>, Snapshot) {
    let Schedule { seed, permits, keys, groups, calls } = *schedule;
    let mut rng = fastrand::Rng::with_seed(seed);
    let queue: Queue<Numbers> = Queue::new("test", Limits::new(NonZeroUsize::new(permits).unwrap()));
    let (seen, stop, epoch) = (Arc::new(Mutex::new(Seen::default())), CancellationToken::new(), Instant::now());
    let run = tokio::spawn({
        let (queue, seen, stop) = (queue.clone(), Arc::clone(&seen), stop.clone());
        let dice = Arc::new(Mutex::new(rng.fork()));
        async move {
            let pass = move |key: ObjectKey, work: Numbers| {
                let (seen, dice) = (Arc::clone(&seen), Arc::clone(&dice));
                async move { one_pass(&key, work, &seen, &dice, epoch).await }
            };
            queue.run(pass, |_| Next::Wake { after: Duration::from_secs(1), work: Numbers::default() }, stop).await;
        }
    });

    let mut promised = BTreeSet::new();
    for n in 0..calls {
        let key = ObjectKey::new("ns", format!("k{}", rng.usize(..keys)));
        let group = Arc::from(format!("g{}", rng.usize(..groups)));
        match rng.u32(..10) {
            // A wake may be replaced, so its number is no promise; that wakes are kept is shown elsewhere.
            0 => queue.add_at(key, group, number(n), Instant::now() + Duration::from_millis(rng.u64(..5_000))),
            other => {
                let urgency = if other < 5 { Urgency::Now } else { Urgency::Routine };
                queue.add(key, group, number(n), urgency);
                promised.insert(n);
            }
        }
        if rng.u32(..3) == 0 {
            sleep(Duration::from_millis(rng.u64(..700))).await;
        }
    }
    // The longest pass takes 4 s and is followed by retries of at most 3 s; the rest is a matter of turns.
    sleep(Duration::from_hours(1)).await;
    let snapshot = queue.snapshot();
    stop.cancel();
    run.await.unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, promised, snapshot)
}

async fn one_pass(
    key: &ObjectKey,
    work: Numbers,
    seen: &Mutex<Seen>,
    dice: &Mutex<fastrand::Rng>,
    epoch: Instant,
) -> Next<Numbers> {
    {
        let mut seen = seen.lock().unwrap();
        let running = seen.running.entry(key.clone()).or_default();
        *running += 1;
        let overlap = *running > 1;
        seen.overlaps += usize::from(overlap);
        let total = seen.running.values().sum();
        seen.most_running = seen.most_running.max(total);
        for n in work.0.into_iter().flatten() {
            if !seen.handed_out.insert(n) {
                seen.twice.push(n);
            }
        }
        seen.order.push((epoch.elapsed(), key.clone()));
    }
    let (millis, retry, next, panics) = {
        let mut dice = dice.lock().unwrap();
        let millis = if dice.u32(..5) == 0 { dice.u64(1_000..4_000) } else { dice.u64(..300) };
        (millis, dice.u64(..3_000), dice.u32(..10), dice.u32(..40) == 0)
    };
    sleep(Duration::from_millis(millis)).await;
    *seen.lock().unwrap().running.entry(key.clone()).or_default() -= 1;
    assert!(!panics, "as the schedule wants it");
    match next {
        0..2 => Next::Wake { after: Duration::from_millis(retry), work: Numbers(Some(BTreeSet::new())) },
        2..4 => Next::Keep,
        _ => Next::Done,
    }
}

fn schedules() -> impl Iterator<Item = Schedule> {
    (0..300).map(|seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        Schedule {
            seed,
            permits: rng.usize(1..9),
            keys: rng.usize(1..40),
            groups: rng.usize(1..6),
            calls: rng.u32(1..400),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn whatever_the_schedule_no_key_runs_twice_at_once_and_nothing_is_lost() {
    for schedule in schedules() {
        let seed = schedule.seed;
        let (saw, promised, rest) = play(&schedule).await;
        assert_eq!(saw.overlaps, 0, "seed {seed}: two passes of one key at once");
        assert!(saw.twice.is_empty(), "seed {seed}: handed out twice: {:?}", saw.twice);
        let lost: Vec<_> = promised.difference(&saw.handed_out).collect();
        assert!(lost.is_empty(), "seed {seed}: lost {lost:?}");
        assert!(saw.most_running <= 16 * schedule.permits, "seed {seed}: {} at once", saw.most_running);
        assert_eq!((rest.depth, rest.ready, rest.running.len()), (0, 0, 0), "seed {seed}: not at rest");
    }
}

#[tokio::test(start_paused = true)]
async fn one_seed_gives_one_order() {
    for schedule in schedules().step_by(30) {
        let (first, ..) = play(&schedule).await;
        let (second, ..) = play(&schedule).await;
        assert!(first.order.len() > 1 || schedule.calls < 5);
        assert_eq!(first.order, second.order, "seed {}", schedule.seed);
    }
}
