//! What time it is, for everything that writes or compares points in time.
//!
//! The only place that reads the system's wall clock, so that a simulation under tokio's paused time sees one consistent
//! time: its wall clock moves exactly as its timers do. Spans are measured with `tokio::time::Instant`, never with this.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of wall time. Clones share it.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// `epoch` plus what tokio's clock has moved on since `started`.
    Simulated {
        epoch: Timestamp,
        started: Instant,
    },
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that shows `epoch` now and then moves as tokio's does, paused or not.
    pub fn simulated(epoch: Timestamp) -> Self {
        Self(Source::Simulated { epoch, started: Instant::now() })
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => crate::hooks::wall(Timestamp::now()),
            // A simulation that outlives the calendar stands still at its end instead of failing.
            Source::Simulated { epoch, started } => SignedDuration::try_from(started.elapsed())
                .ok()
                .and_then(|elapsed| epoch.checked_add(elapsed).ok())
                .unwrap_or(Timestamp::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_time_moves_exactly_as_tokio_does() {
        let epoch: Timestamp = "2031-05-04T03:02:01Z".parse().unwrap();
        let clock = Clock::simulated(epoch);
        let clone = clock.clone();
        assert_eq!(clock.now(), epoch);
        tokio::time::advance(Duration::from_millis(90_500)).await;
        assert_eq!(clone.now(), "2031-05-04T03:03:31.5Z".parse().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn simulated_time_stops_at_the_end_of_the_calendar() {
        let clock = Clock::simulated(Timestamp::MAX);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(clock.now(), Timestamp::MAX);
    }

    #[test]
    fn system_time_does_not_run_backwards_within_a_test() {
        let clock = Clock::system();
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
