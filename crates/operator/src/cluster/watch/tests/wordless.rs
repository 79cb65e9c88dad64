//! Watches that open and come to an end without a word: behind something that passes none on, or where nothing changes.

use super::*;

/// What a watch is answered that opens and ends without a word.
#[derive(Clone, Copy, Debug)]
enum Wordless {
    /// Ended before it was asked to.
    EndedEarly,
    /// Ended at once.
    EndedAtOnce,
    /// Its connection breaks.
    Broken,
    /// Told that something is wrong, and ended.
    Error,
    /// In turn: ended at once, and refused before it opens.
    EndedAndRefused,
}

/// An API server that lists, now with `b`, and whose watches end like this and tell nothing as long as `wordless` holds.
fn lists_and_ends(how: Wordless, wordless: &Arc<Mutex<bool>>) -> impl FnMut(&Seen) -> Reply + Send + 'static {
    let (wordless, mut lists, mut watches) = (Arc::clone(wordless), 0, 0);
    move |seen| {
        if !seen.is_watch() {
            lists += 1;
            return if lists == 1 { list(10, &[]) } else { list(20, &[resource("b", 11)]) };
        }
        watches += 1;
        if matches!(how, Wordless::EndedAndRefused) && watches % 2 == 0 {
            return Reply::refusal(503, "Unavailable");
        }
        let (lines, reply) = Reply::lines();
        if *wordless.lock().unwrap() {
            match how {
                Wordless::EndedAtOnce | Wordless::EndedAndRefused => {}
                Wordless::Error => {
                    let status = json!({"kind": "Status", "code": 500, "reason": "InternalError", "message": "no"});
                    lines.unbounded_send(event("ERROR", &status)).unwrap();
                }
                Wordless::Broken => lines.unbounded_send(Line::Broken).unwrap(),
                Wordless::EndedEarly => ends_after(lines, GOOD_TIME + Duration::from_secs(5)),
            }
        } else {
            lines.unbounded_send(bookmark(25)).unwrap();
            ends_after_a_period(lines);
        }
        reply
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_opens_and_ends_without_a_word_is_known_to_be_mute_and_made_good_by_lists() {
    use Wordless::{Broken, EndedAndRefused, EndedAtOnce, EndedEarly, Error};
    for how in [EndedEarly, EndedAtOnce, Broken, Error, EndedAndRefused] {
        let wordless = Arc::new(Mutex::new(true));
        let running = watching(lists_and_ends(how, &wordless));
        sleep(3 * MINUTE).await;
        let made_good = running.notes.take().contains(&"+b".to_owned());
        assert!(made_good, "{how:?}: a list makes good what is not told");
        sleep(13 * MINUTE).await;
        let (state, now) = (running.state(), Instant::now());
        assert!(state.mute && state.is_made_good(now), "{how:?}: {:?}", state.silence(now));
        assert!(state.failures >= 10, "{how:?}: openings do not make good {} failures", state.failures);
        assert!(state.last_error.is_some(), "{how:?}: what is wrong is told");
        // Whoever ends it is there, and a restart cures nothing.
        assert!(state.without_answer(now) <= 2 * MINUTE, "{how:?}: {:?}", state.without_answer(now));
        assert!(running.lists() <= 40, "{how:?}: {} lists in a quarter of an hour", running.lists());

        *wordless.lock().unwrap() = false;
        // What is left of the last round, the longest backoff, and one refusal more.
        sleep(3 * MINUTE).await;
        let (state, now) = (running.state(), Instant::now());
        assert!(state.silence(now) <= 2 * MINUTE && state.without_answer(now) <= MINUTE, "{how:?}: a word ends it");
        assert!(state.failures <= 1, "{how:?}: {} failures", state.failures);
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_changes_a_watch_has_nothing_to_say_and_is_in_order() {
    let late = Arc::new(Mutex::new(false));
    let running = watching({
        let late = Arc::clone(&late);
        move |seen| {
            if !seen.is_watch() {
                return if *late.lock().unwrap() { list(20, &[resource("b", 11)]) } else { list(10, &[]) };
            }
            let (lines, reply) = Reply::lines();
            ends_after_a_period(lines);
            reply
        }
    });
    sleep(MINUTE * 14).await;
    let (state, now) = (running.state(), Instant::now());
    assert_eq!((state.failures_in_all, state.mute, running.lists()), (0, false, 1));
    assert!(state.silence(now) < MINUTE && state.without_answer(now) < MINUTE);
    // And yet, should it be that what happened is not told, a list tells it before long.
    *late.lock().unwrap() = true;
    sleep(MINUTE * 2).await;
    assert!(running.notes.take().contains(&"+b".to_owned()));
    assert_eq!(running.state().failures_in_all, 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_comes_to_its_end_makes_nothing_good() {
    let mut lists = 0;
    let running = watching(move |seen| {
        if seen.is_watch() {
            // Ended at once.
            return Reply::lines().1;
        }
        lists += 1;
        if lists == 1 {
            list(10, &[])
        } else if seen.parameter("continue").is_some() {
            Reply::refusal(503, "Unavailable")
        } else {
            page(20, "more", &[resource("b", 11)])
        }
    });
    sleep(MINUTE * 10).await;
    let (state, now) = (running.state(), Instant::now());
    assert!(state.mute && !state.is_made_good(now) && state.silence(now) >= MINUTE * 8, "{state:?}");
}
