//! What becomes of work and wakes.

use super::*;

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
