//! How long the machine has slept: what `CLOCK_BOOTTIME` counts and `CLOCK_MONOTONIC` leaves out.
//!
//! Two clocks cannot be read at once, and whatever happens between the two looks is taken for sleep. That errs towards a
//! right which ends too early, and must not happen for nothing: so the closest of several looks counts, and a difference
//! that is no sleep of a machine is none.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Looks at the clocks. A thread that is interrupted between two readings is very rarely so four times in a row.
const LOOKS: usize = 4;

/// Less than this is no sleep. No machine falls asleep and wakes within a tenth of a second, and the readings of one look
/// are less than a microsecond apart.
const SHORTEST: Duration = Duration::from_millis(100);

/// A source of the time slept.
#[derive(Debug, Default)]
pub(super) struct Sleeps {
    /// Sleep that a test adds to the machine's own.
    #[cfg(test)]
    added: std::sync::Mutex<Duration>,
}

impl Sleeps {
    /// How long the machine has slept since it was started. Only differences mean anything.
    pub(super) fn so_far(&self) -> Duration {
        let look = |_| {
            let before = now(ClockId::Monotonic);
            let counting_sleep = now(ClockId::Boottime);
            (now(ClockId::Monotonic).saturating_sub(before), counting_sleep.saturating_sub(before))
        };
        let (_, slept) = (0..LOOKS).map(look).min().unwrap_or_default();
        slept + self.added()
    }

    /// How long the machine has slept since [`Sleeps::so_far`] was `then`.
    pub(super) fn since(&self, then: Duration) -> Duration {
        let slept = self.so_far().saturating_sub(then);
        if slept < SHORTEST { Duration::ZERO } else { slept }
    }

    #[cfg(test)]
    pub(super) fn add(&self, slept: Duration) {
        *self.added.lock().unwrap() += slept;
    }

    #[cfg(test)]
    fn added(&self) -> Duration {
        *self.added.lock().unwrap()
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the same call as in tests")]
    const fn added(&self) -> Duration {
        Duration::ZERO
    }
}

/// Neither clock is ever negative.
fn now(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    Duration::new(u64::try_from(tv_sec).unwrap_or(0), u32::try_from(tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_what_was_added_and_nothing_while_awake() {
        let sleeps = Sleeps::default();
        let then = sleeps.so_far();
        assert_eq!(sleeps.since(then), Duration::ZERO);
        sleeps.add(Duration::from_secs(7));
        let slept = sleeps.since(then);
        assert!((6.9..7.1).contains(&slept.as_secs_f64()), "{slept:?}");
    }
}
