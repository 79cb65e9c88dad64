//! The server's clock: a fixed epoch plus what tokio's clock has moved since the server was made.
//!
//! Under paused time it moves only when a test or an idle runtime advances it, so every timestamp in every object of a
//! run is the same in the next run. It must never read the wall clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// 2026-01-01T00:00:00Z, the moment at which every simulated cluster is born.
pub const EPOCH_SECONDS: i64 = 1_767_225_600;

/// Virtual time since the server was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Virtual time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.started.elapsed()
    }

    /// The current time of the cluster.
    pub(crate) fn now(self) -> Timestamp {
        let epoch = Timestamp::from_second(EPOCH_SECONDS).unwrap_or(Timestamp::UNIX_EPOCH);
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX);
        epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// The current time as `metadata.creationTimestamp` spells it: whole seconds, UTC.
    pub(crate) fn stamp(self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}
