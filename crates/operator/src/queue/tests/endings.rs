//! Panics, the end of the loop, and what the snapshot tells.

use super::*;

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
    bench.until(0.9).await;
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
