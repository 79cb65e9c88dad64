//! Who waits for a pass, and since when.

use super::*;

/// Work that is waited for since a time, or by nobody.
#[derive(Debug, Default)]
struct Wanted(Option<Instant>);

impl Work for Wanted {
    fn merge(&mut self, newer: Self) {
        self.0 = self.0.into_iter().chain(newer.0).min();
    }

    fn awaited_since(&self) -> Option<Instant> {
        self.0
    }
}

/// The state of a queue with one permit, without a loop.
fn state() -> (State<Wanted>, Instant) {
    (State::new(Limits::new(NonZeroUsize::MIN)), Instant::now())
}

fn names(state: &State<Wanted>, now: Instant, origin: Instant) -> Vec<(String, u64)> {
    let awaited = state.awaited(now).into_iter();
    awaited.map(|(key, since)| (key.name.to_string(), since.duration_since(origin).as_secs())).collect()
}

fn of(name: &str, since: u64) -> Vec<(String, u64)> {
    vec![(name.to_owned(), since)]
}

#[test]
fn work_is_waited_for_until_its_pass_has_ended() {
    let (mut state, origin) = state();
    let at = |seconds| origin + secs(seconds);
    state.add(key("a"), "g".into(), Wanted(Some(at(0))), Urgency::Now, at(0));
    state.add(key("scheduled"), "g".into(), Wanted(None), Urgency::Routine, at(0));
    assert_eq!(names(&state, at(1), origin), of("a", 0));
    state.start(at(2)).unwrap();
    assert_eq!(names(&state, at(3), origin), of("a", 0), "it runs, and has not ended");
    state.finish(&key("a"), Next::Done, at(4));
    assert_eq!(names(&state, at(5), origin), []);
}

#[test]
fn what_comes_during_a_pass_is_waited_for_after_it() {
    let (mut state, origin) = state();
    let at = |seconds| origin + secs(seconds);
    state.add(key("a"), "g".into(), Wanted(Some(at(0))), Urgency::Now, at(0));
    state.start(at(1)).unwrap();
    state.add(key("a"), "g".into(), Wanted(Some(at(2))), Urgency::Now, at(2));
    assert_eq!(names(&state, at(3), origin), of("a", 0));
    state.finish(&key("a"), Next::Done, at(4));
    assert_eq!(names(&state, at(5), origin), of("a", 2));
}

#[test]
fn a_wake_is_waited_for_from_the_time_it_names_even_if_no_loop_runs() {
    let (mut state, origin) = state();
    let at = |seconds| origin + secs(seconds);
    state.set_wake(key("retry"), "g".into(), Wanted(Some(at(10))), at(10));
    state.set_wake(key("scheduled"), "g".into(), Wanted(None), at(10));
    state.set_wake(key("unrecorded"), "g".into(), Wanted(Some(at(0))), at(20));
    assert_eq!(names(&state, at(9), origin), of("unrecorded", 0));
    assert_eq!(names(&state, at(11), origin), [of("retry", 10), of("unrecorded", 0)].concat());
    assert_eq!(state.snapshot(at(9)).oldest_waiting, None);
    assert_eq!(state.snapshot(at(13)).oldest_waiting, Some(secs(3)), "nobody has made it ready");
}

#[test]
fn nobody_waits_for_what_was_forgotten() {
    let (mut state, origin) = state();
    let at = |seconds| origin + secs(seconds);
    state.add(key("a"), "g".into(), Wanted(Some(at(0))), Urgency::Now, at(0));
    state.start(at(1)).unwrap();
    state.forget(&key("a"));
    assert_eq!(names(&state, at(2), origin), []);
}
