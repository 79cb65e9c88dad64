//! Who goes first, and who is never kept waiting by whom.

use super::*;

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
async fn asking_again_for_a_key_that_waits_does_not_cost_its_group_the_turn() {
    let bench = Bench::new(1, taking(1));
    bench.add("first", "g", "x");
    bench.until(0.5).await;
    bench.add("a", "a", "x");
    bench.add("b", "b", "x");
    bench.add("a", "a", "again");
    bench.until(10.0).await;
    assert_eq!(bench.story(), ["0 first x", "1 a x+again", "2 b x"]);
}
