//! The queue under paused time, rule by rule. What is asserted is which passes began when, with what to do.

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

#[tokio::test(start_paused = true)]
async fn work_that_waits_is_merged_into_one_pass() {
    let bench = Bench::new(1, taking(0));
    bench.add("a", "g", "created");
    bench.routine("a", "g", "due");
    bench.add("a", "g", "edited");
    bench.until(1.0).await;
    assert_eq!(bench.story(), ["0 a created+due+edited"]);
    assert_eq!(bench.queue.snapshot().depth, 0);
}

#[tokio::test(start_paused = true)]
async fn work_that_comes_during_a_pass_gets_one_pass_after_it() {
    let bench = Bench::new(4, taking(3));
    bench.add("a", "g", "one");
    bench.until(1.0).await;
    bench.add("a", "g", "two");
    bench.add("a", "g", "three");
    bench.until(2.0).await;
    assert_eq!(bench.story(), ["0 a one"]);
    assert_eq!((bench.queue.snapshot().depth, bench.queue.snapshot().ready), (1, 0));
    bench.until(10.0).await;
    assert_eq!(bench.story(), ["3 a two+three"]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_starts_a_pass_at_its_time_and_is_used_up() {
    let bench = Bench::new(1, taking(0));
    bench.wake("a", "due", 60);
    bench.until(59.9).await;
    assert!(bench.story().is_empty());
    bench.until(600.0).await;
    assert_eq!(bench.story(), ["60 a due"]);
    assert_eq!(
        bench.queue.snapshot(),
        Snapshot {
            last_started: Some(bench.epoch + secs(60)),
            last_finished: Some(bench.epoch + secs(60)),
            ..Snapshot::default()
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_wake_replaces_the_one_before_it_earlier_or_later() {
    let bench = Bench::new(1, taking(0));
    bench.wake("a", "early", 10);
    bench.wake("a", "late", 20);
    bench.wake("b", "late", 20);
    bench.wake("b", "early", 10);
    bench.until(100.0).await;
    assert_eq!(bench.story(), ["10 b early", "20 a late"]);
}

#[tokio::test(start_paused = true)]
async fn an_urgent_pass_that_keeps_leaves_the_wake_alone() {
    let bench = Bench::new(1, taking(0));
    bench.wake("a", "due", 60);
    bench.until(30.0).await;
    bench.add("a", "g", "edited");
    bench.until(100.0).await;
    assert_eq!(bench.story(), ["30 a edited", "60 a due"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_pass_answers_replaces_the_wake() {
    let bench = Bench::new(1, |key: ObjectKey, work: Asked| async move {
        match (&*key.name, work.0.first()) {
            ("again", Some(&"edited")) => Next::Wake { after: secs(7), work: asked("retry") },
            _ => Next::Done,
        }
    });
    bench.wake("again", "due", 60);
    bench.wake("done", "due", 60);
    bench.until(30.0).await;
    bench.add("again", "g", "edited");
    bench.add("done", "g", "edited");
    bench.until(200.0).await;
    assert_eq!(bench.story(), ["30 again edited", "30 done edited", "37 again retry"]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_set_during_a_pass_is_kept_beside_its_answer() {
    let bench = Bench::new(4, |key: ObjectKey, work: Asked| async move {
        sleep(secs(2)).await;
        match (&*key.name, work.0.first()) {
            (_, Some(&"due" | &"retry")) | ("done", _) => Next::Done,
            ("soon", _) => Next::Wake { after: secs(10), work: asked("retry") },
            _ => Next::Wake { after: secs(100), work: asked("retry") },
        }
    });
    for name in ["done", "soon", "late"] {
        bench.add(name, "g", "edited");
    }
    bench.until(1.0).await;
    for name in ["done", "soon", "late"] {
        bench.wake(name, "due", 60);
    }
    bench.until(300.0).await;
    let story =
        ["0 done edited", "0 soon edited", "0 late edited", "12 soon retry+due", "60 done due", "60 late retry+due"];
    assert_eq!(bench.story(), story);
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_is_due_during_a_pass_runs_after_it() {
    let bench = Bench::new(4, taking(10));
    bench.add("a", "g", "edited");
    bench.wake("a", "due", 5);
    bench.until(100.0).await;
    assert_eq!(bench.story(), ["0 a edited", "10 a due"]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_beyond_every_calendar_is_taken() {
    let bench = Bench::new(1, |_, _| async { Next::Wake { after: Duration::MAX, work: asked("never") } });
    bench.add("a", "g", "created");
    bench.until(86_400.0).await;
    assert_eq!(bench.story(), ["0 a created"]);
    assert_eq!(bench.queue.snapshot().scheduled, 1);
}

#[tokio::test(start_paused = true)]
async fn urgent_goes_before_routine() {
    let bench = Bench::new(1, taking(1));
    bench.add("first", "g", "x");
    bench.until(0.5).await;
    bench.routine("due", "g", "x");
    bench.routine("due-and-edited", "g", "due");
    bench.add("created", "h", "x");
    bench.add("due-and-edited", "g", "edited");
    bench.until(10.0).await;
    assert_eq!(bench.story(), ["0 first x", "1 created x", "2 due-and-edited due+edited", "3 due x"]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_urgent_work_does_not_starve_routine_for_ever() {
    // One permit, one pass per half second, and two urgent keys that are always dirty.
    let bench = Bench::new(1, |_, _| async {
        sleep(Duration::from_millis(500)).await;
        Next::Keep
    });
    bench.routine("due", "g", "x");
    let mut passes = Vec::new();
    for _ in 0..80 {
        bench.add("busy-1", "g", "x");
        bench.add("busy-2", "g", "x");
        sleep(Duration::from_millis(500)).await;
        passes.extend(bench.story());
    }
    let at = passes.iter().position(|pass| pass.contains("due")).expect("the routine key had its pass");
    let begun: f64 = passes[at].split(' ').next().unwrap().parse().unwrap();
    assert!((30.0..=32.0).contains(&begun), "{begun}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_keys_of_a_slow_group_do_not_delay_a_stranger() {
    let bench = Bench::new(32, |key: ObjectKey, _| async move {
        if key.name.starts_with("slow") {
            sleep(secs(30)).await;
        }
        Next::Keep
    });
    for n in 0..1_000 {
        bench.add(&format!("slow-{n}"), "slow", "x");
    }
    bench.until(0.1).await;
    assert_eq!(bench.story().len(), 28, "the share of one group");
    bench.add("stranger", "other", "x");
    settle().await;
    assert_eq!(bench.story(), ["0.1 stranger x"]);
    // Once the slow ones have given their permits back, the group still runs no more than as many as there are permits.
    bench.until(29.0).await;
    assert_eq!(bench.queue.snapshot().running.len(), 32);
    assert!(bench.queue.snapshot().running.iter().all(|pass| pass.overtime));
    // Nobody says that the queue stands still while a group waits for itself.
    assert_eq!(bench.queue.snapshot().oldest_ready, None);
    assert_eq!(bench.queue.snapshot().oldest_waiting, Some(secs(29)));
    bench.add("stranger", "other", "again");
    settle().await;
    assert_eq!(bench.story().last().unwrap(), "29 stranger again");
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_slow_groups_do_not_delay_a_stranger_for_more_than_a_second() {
    let bench = Bench::new(4, |key: ObjectKey, _| async move {
        if key.name.starts_with("slow") {
            sleep(secs(3_600)).await;
        }
        Next::Keep
    });
    // Half of what may run is 32; twenty groups of ten keys fill it, and no more than that.
    for n in 0..200 {
        bench.add(&format!("slow-{n}"), &format!("slow-{}", n % 20), "x");
    }
    bench.until(120.5).await;
    assert_eq!(bench.queue.snapshot().running.len(), 32);
    bench.story();
    bench.add("stranger", "other", "x");
    bench.until(122.0).await;
    assert_eq!(bench.story(), ["120.5 stranger x"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_run_than_the_limit_even_when_every_group_is_stuck() {
    let bench = Bench::new(2, taking(86_400));
    for n in 0..100 {
        bench.add(&format!("k{n}"), &format!("g{n}"), "x");
    }
    bench.until(3_600.0).await;
    assert_eq!(bench.queue.snapshot().running.len(), 32, "16 x 2 permits");
    assert_eq!(bench.queue.snapshot().ready, 68);
}

#[tokio::test(start_paused = true)]
async fn quick_passes_never_exceed_the_permits() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let bench = Bench::new(4, {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        move |_, _| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(200)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Next::Keep
            }
        }
    });
    for n in 0..100 {
        bench.add(&format!("k{n}"), &format!("g{}", n % 3), "x");
    }
    bench.until(60.0).await;
    assert_eq!((bench.story().len(), most.load(Ordering::SeqCst)), (100, 4));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_moves_to_another_group_waits_there() {
    let bench = Bench::new(1, taking(1));
    bench.add("first", "g", "x");
    bench.until(0.5).await;
    for name in ["a", "b", "c"] {
        bench.add(name, "g", "x");
    }
    bench.add("c", "h", "moved");
    bench.until(10.0).await;
    assert_eq!(bench.story(), ["0 first x", "1 a x", "2 c x+moved", "3 b x"]);
}

#[tokio::test(start_paused = true)]
async fn forgotten_keys_have_neither_work_nor_wake() {
    let bench = Bench::new(1, taking(1));
    bench.add("first", "g", "x");
    bench.until(0.5).await;
    bench.add("gone", "g", "x");
    bench.wake("gone", "due", 5);
    bench.queue.forget(&key("gone"));
    bench.queue.forget(&key("never-seen"));
    bench.until(60.0).await;
    assert_eq!(bench.story(), ["0 first x"]);
    let after = bench.queue.snapshot();
    assert_eq!((after.depth, after.ready, after.scheduled), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_pass_whose_key_was_forgotten_does_not_count() {
    let bench = Bench::new(4, |_, _| async {
        sleep(secs(2)).await;
        Next::Wake { after: secs(10), work: asked("retry") }
    });
    bench.add("gone", "g", "x");
    bench.add("anew", "g", "x");
    bench.until(1.0).await;
    bench.add("gone", "g", "dirty");
    bench.queue.forget(&key("gone"));
    bench.queue.forget(&key("anew"));
    bench.add("anew", "g", "created");
    // The old pass ends at 2 without effect; the new object's own pass does not run beside it.
    bench.until(5.0).await;
    assert_eq!(bench.story(), ["0 gone x", "0 anew x", "2 anew created"]);
    bench.until(15.0).await;
    assert_eq!(bench.story(), ["14 anew retry"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_contained_and_its_key_runs_again() {
    let bench = Bench::new(1, |key: ObjectKey, work: Asked| {
        // One panics before there is a future, one inside it.
        assert!(!(&*key.name == "early" && work.0 == ["x"]), "value that must not be logged");
        async move {
            assert!(!(&*key.name == "late" && work.0 == ["x"]), "value that must not be logged");
            Next::Keep
        }
    });
    for name in ["early", "late", "well"] {
        bench.add(name, "g", "x");
    }
    bench.until(60.0).await;
    let story = ["0 early x", "0 late x", "0 well x", "5 early panicked", "5 late panicked"];
    assert_eq!(bench.story(), story);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_one_who_decides_about_panics_loses_nothing_either() {
    let queue: Queue<Asked> = Queue::new("test", Limits::new(NonZeroUsize::MIN));
    let (seen, epoch) = (Arc::new(Mutex::new(Vec::new())), Instant::now());
    let run = tokio::spawn({
        let (queue, seen) = (queue.clone(), Arc::clone(&seen));
        async move {
            let pass = move |_, work: Asked| {
                seen.lock().unwrap().push((epoch.elapsed(), work.clone()));
                async move {
                    assert!(work == Asked::default());
                    Next::Done
                }
            };
            queue.run(pass, |_| panic!("again"), CancellationToken::new()).await;
        }
    });
    queue.add(key("a"), "g".into(), asked("x"), Urgency::Now);
    sleep(secs(300)).await;
    assert_eq!(*seen.lock().unwrap(), [(secs(0), asked("x")), (secs(60), Asked::default())]);
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn stopping_starts_nothing_more_and_waits_for_what_runs() {
    let bench = Bench::new(1, taking(5));
    bench.add("a", "g", "x");
    bench.add("b", "g", "x");
    bench.until(1.0).await;
    bench.stop.cancel();
    bench.add("a", "g", "dirty");
    bench.until(4.9).await;
    assert!(!bench.run.is_finished());
    bench.until(5.1).await;
    assert!(bench.run.is_finished());
    assert_eq!(bench.story(), ["0 a x"]);
    assert_eq!(bench.queue.snapshot().depth, 2, "what was not begun is still known");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_queue_with_nothing_running_ends_at_once() {
    let bench = Bench::new(1, taking(5));
    bench.wake("a", "due", 60);
    settle().await;
    bench.stop.cancel();
    settle().await;
    assert!(bench.run.is_finished());
}

#[tokio::test(start_paused = true)]
async fn passes_are_cut_off_with_the_loop() {
    let ended = Arc::new(AtomicUsize::new(0));
    let bench = Bench::new(4, {
        let ended = Arc::clone(&ended);
        move |_, _| {
            let ended = Arc::clone(&ended);
            async move {
                sleep(secs(5)).await;
                ended.fetch_add(1, Ordering::SeqCst);
                Next::Done
            }
        }
    });
    bench.add("a", "g", "x");
    bench.until(1.0).await;
    bench.run.abort();
    advance(secs(60)).await;
    settle().await;
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    assert!(bench.queue.snapshot().running.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_says_who_runs_since_when() {
    let bench = Bench::new(2, taking(100));
    bench.add("a", "g", "x");
    bench.until(3.0).await;
    bench.add("b", "h", "x");
    bench.add("b2", "h", "x");
    bench.until(3.5).await;
    let snapshot = bench.queue.snapshot();
    let running = |name, since, overtime| Running { key: key(name), since: bench.epoch + secs(since), overtime };
    assert_eq!(snapshot.running, [running("a", 0, true), running("b", 3, false)]);
    assert_eq!(snapshot.longest_running(Instant::now()), Some(Duration::from_millis(3_500)));
    assert_eq!((snapshot.depth, snapshot.ready), (1, 1));
    assert_eq!(snapshot.oldest_waiting, Some(Duration::from_millis(500)));
    assert_eq!(snapshot.last_started, Some(bench.epoch + secs(3)));
    assert_eq!(snapshot.last_finished, None);
}

#[tokio::test(start_paused = true)]
async fn a_ready_key_that_no_loop_serves_grows_old() {
    let queue: Queue<Asked> = Queue::new("test", Limits::new(NonZeroUsize::MIN));
    queue.add(key("a"), "g".into(), asked("x"), Urgency::Routine);
    advance(secs(90)).await;
    queue.add(key("b"), "g".into(), asked("x"), Urgency::Now);
    assert_eq!(queue.snapshot().oldest_ready, Some(secs(90)));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_idle_keys_all_get_their_pass_at_their_time() {
    let bench = Bench::new(32, taking(0));
    for n in 0..10_000 {
        bench.wake(&format!("k{n}"), "due", 60 + n % 600);
    }
    assert_eq!(bench.queue.snapshot().scheduled, 10_000);
    bench.until(700.0).await;
    let story = bench.story();
    assert_eq!(story.len(), 10_000);
    for pass in story {
        let (at, rest) = pass.split_once(' ').unwrap();
        let n: u64 = rest.split_once(' ').unwrap().0.trim_start_matches('k').parse().unwrap();
        assert_eq!(at, (60 + n % 600).to_string(), "{pass}");
    }
}
