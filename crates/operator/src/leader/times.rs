//! The times of the election, with what each of them is for.

use std::time::Duration;

/// The times of the election. Between [`LeaseTimes::renew_deadline`] and [`LeaseTimes::duration`] nobody leads; that span
/// is what clocks that do not run equally fast may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long a standby respects a holder that shows no renewal. Whole seconds, because the Lease speaks in them.
    pub duration: Duration,
    /// How long a holder acts on one renewal.
    pub renew_deadline: Duration,
    /// How often a holder renews.
    pub retry_period: Duration,
}

impl LeaseTimes {
    /// The shortest period of renewals: what a candidate waits after it lost a write to another. Below it a holder would do
    /// little but write.
    pub const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

    /// The least that lies between one of the times and the next longer one. A Lease counts in seconds, a clock moves in
    /// steps and a process is not woken to the moment: below a second that alone could let two lead, or leave a renewal no
    /// time to succeed in.
    const SHORTEST_GAP: Duration = Duration::from_secs(1);

    /// Clocks that run unequally drift apart with time: a tenth is far beyond what one does that is not broken.
    const GAP_SHARE: u32 = 10;

    /// The shortest that the time above `shorter` may be.
    pub(crate) fn with_gap(shorter: Duration) -> Duration {
        shorter.saturating_add((shorter / Self::GAP_SHARE).max(Self::SHORTEST_GAP))
    }

    /// The longest that a holder is respected: so long nobody works after it was killed.
    pub const LONGEST: Duration = Duration::from_hours(1);
}

impl Default for LeaseTimes {
    /// 60 s / 5 s = 12 writes a minute. A renewal that is due after 5 s has 5 s to succeed in, and 5 s lie between the
    /// end of a holder's right and the first moment that another takes it.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(5),
        }
    }
}
