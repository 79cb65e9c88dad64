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
async fn routine_keys_that_wait_for_their_own_group_make_nobody_impatient() {
    // A share of one group is 3 of 4 permits and, once those are given back, a quarter of 64 passes: 16 at most.
    let bench = Bench::new(4, |key: ObjectKey, _| async move {
        sleep(if key.name.starts_with("stuck") { secs(86_400) } else { Duration::from_millis(500) }).await;
        Next::Keep
    });
    let stuck: Vec<String> = (0..40).map(|n| format!("stuck-{n}")).collect();
    for name in &stuck {
        bench.routine(name, "stuck", "x");
    }
    bench.until(100.0).await;
    assert_eq!(bench.queue.snapshot().running.len(), 16);
    bench.story();
    // They have waited for long, and for nobody but themselves. A routine key that comes now is as young as it is.
    (0..8).for_each(|n| bench.add(&format!("urgent-{n}"), &format!("g{n}"), "x"));
    bench.routine("young", "h", "x");
    bench.until(110.0).await;
    let story = bench.story();
    assert_eq!(story.len(), 9, "{story:?}");
    assert!(story.last().unwrap().ends_with("young x"), "{story:?}");
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
    // Once the slow ones have given their permits back, the group still runs no more than a quarter of what may run.
    bench.until(29.0).await;
    assert_eq!(bench.queue.snapshot().running.len(), 128);
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
async fn thirty_that_wait_for_one_thing_do_not_keep_the_others_of_their_group_waiting() {
    let bench = Bench::new(8, |key: ObjectKey, _| async move {
        if key.name.starts_with("stuck") {
            sleep(secs(20)).await;
        }
        Next::Keep
    });
    let crowd = |work| (0..30).for_each(|n| bench.add(&format!("stuck-{n}"), "g", work));
    // A wake far ahead keeps the entries, as every resource has one.
    (0..30).for_each(|n| bench.wake(&format!("stuck-{n}"), "late", 9_000));
    crowd("x");
    bench.add("neighbour", "g", "x");
    // Nobody knows yet who will wait: seven permits a second for thirty, and then it is the neighbour's turn.
    bench.until(4.5).await;
    assert_eq!(bench.story().last().unwrap(), "4 neighbour x");
    // From then on they wait for each other.
    for round in 1..20_u32 {
        let at = f64::from(round) * 30.0;
        bench.until(at).await;
        bench.story();
        crowd("again");
        bench.add("neighbour", "g", "again");
        bench.until(at + 2.0).await;
        let story = bench.story();
        let neighbour = story.iter().find(|pass| pass.contains("neighbour")).expect("it had its pass");
        let begun: f64 = neighbour.split(' ').next().unwrap().parse().unwrap();
        assert!(begun - at <= 2.0, "round {round}: {neighbour}");
        assert!(bench.queue.snapshot().running.len() <= 16, "those that run and those that ran before");
    }
    // And none of them is forgotten.
    bench.until(700.0).await;
    assert_eq!((bench.queue.snapshot().ready, bench.queue.snapshot().running.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_quick_again_is_held_back_no_longer() {
    let stuck = Arc::new(AtomicUsize::new(1));
    let bench = Bench::new(1, {
        let stuck = Arc::clone(&stuck);
        move |_, _| {
            let seconds = if stuck.load(Ordering::SeqCst) == 1 { 100 } else { 0 };
            async move {
                sleep(secs(seconds)).await;
                Next::Wake { after: secs(10_000), work: asked("late") }
            }
        }
    });
    let all = |work| ["a", "b", "c", "d"].into_iter().for_each(|name| bench.add(name, "g", work));
    all("first");
    bench.until(150.0).await;
    assert_eq!(bench.story(), ["0 a first", "1 b first", "2 c first", "3 d first"]);
    all("second");
    bench.until(299.0).await;
    assert_eq!(bench.story(), ["150 a second", "250 b second"], "slow: one at a time for one permit");
    stuck.store(0, Ordering::SeqCst);
    bench.until(400.0).await;
    assert_eq!(bench.story(), ["350 c second", "350 d second"]);
    stuck.store(1, Ordering::SeqCst);
    bench.add("c", "g", "third");
    bench.add("d", "g", "third");
    bench.until(402.0).await;
    assert_eq!(bench.story(), ["400 c third", "401 d third"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_very_many_connections_does_not_delay_another_namespace() {
    let bench = Bench::new(32, |key: ObjectKey, _| async move {
        if key.name.starts_with("stuck") {
            sleep(secs(86_400)).await;
        }
        Next::Keep
    });
    for n in 0..1_000 {
        bench.add_in("crowd", &format!("stuck-{n}"), &format!("crowd/{n}"));
    }
    bench.until(0.1).await;
    assert_eq!(bench.story().len(), 30, "the share of one namespace");
    bench.add_in("other", "stranger", "other/conn");
    settle().await;
    assert_eq!(bench.story(), ["0.1 stranger x"]);
    bench.until(600.0).await;
    assert_eq!(bench.queue.snapshot().running.len(), 384, "three quarters of 512");
    assert_eq!(bench.queue.snapshot().oldest_ready, None, "they wait for nobody but themselves");
    bench.story();
    bench.add_in("other", "stranger", "other/conn");
    settle().await;
    assert_eq!(bench.story(), ["600 stranger x"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_run_than_the_limit_even_when_every_group_is_stuck() {
    let bench = Bench::new(2, taking(86_400));
    for n in 0..100 {
        bench.add_in(&format!("n{n}"), "k", "conn");
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
        bench.add_in(&format!("n{}", n % 3), &format!("k{n}"), "g");
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
