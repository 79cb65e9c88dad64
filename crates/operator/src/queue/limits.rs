//! How many passes may run, and what one group may take of that.
//!
//! A permit bounds the work that two cores and an API server do side by side. A pass that waits for something slow does
//! no work, so after [`OVERTIME`] it gives its permit back and goes on outside the count. What bounds it then is memory:
//! the limits on all passes that run, and on those of one group. These are rules on numbers; no clock, no keys.

use std::num::NonZeroUsize;
use std::time::Duration;

/// How long a pass holds its permit at most.
///
/// A pass takes 10 to 100 ms of answers when everybody is well (five round trips to the API server at a few ms, one to
/// FerrVault at some tens of ms); one second is ten times that. So whoever exceeds it waits for something that is not well,
/// and a second is what others may wait for that at the very most.
pub const OVERTIME: Duration = Duration::from_secs(1);

/// All passes that run, as a multiple of the permits. A pass that waits holds some tens of KB (buffers of two connections,
/// one answer): 16 x 32 permits x 50 KB = 26 MB, which fits a pod of 128 MB.
const RUNNING_PER_PERMIT: usize = 16;

/// One permit in so many stays out of the reach of any single group, so that a stranger finds one free at once.
const RESERVE_ONE_IN: usize = 8;

/// How many passes run side by side.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    concurrency: NonZeroUsize,
}

/// What a group, or all of them together, has running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Passes that hold a permit.
    pub(super) permits: usize,
    /// Passes that run, with or without one.
    pub(super) running: usize,
}

impl Limits {
    /// Limits that follow from `concurrency` permits.
    pub fn new(concurrency: NonZeroUsize) -> Self {
        Self { concurrency }
    }

    /// The number of permits.
    pub fn permits(self) -> usize {
        self.concurrency.get()
    }

    /// The most passes that run at once, long ones included.
    pub fn running(self) -> usize {
        self.permits().saturating_mul(RUNNING_PER_PERMIT)
    }

    /// The most permits that one group holds. A single permit cannot be shared; of two to eight, one is left.
    fn permits_of_one_group(self) -> usize {
        let reserve = self.permits().div_ceil(RESERVE_ONE_IN);
        self.permits().saturating_sub(reserve).max(1)
    }

    /// Whether any group at all may start a pass while `all` is running.
    pub(super) fn allow_any(self, all: Load) -> bool {
        all.permits < self.permits() && all.running < self.running()
    }

    /// Whether a group that has `own` running may start one more while `all` is running in total.
    ///
    /// Half of what may run is kept for groups that have nothing running: a vault that does not answer and serves
    /// hundreds of groups fills the first half, and everybody else still starts at once.
    pub(super) fn allow_group(self, own: Load, all: Load) -> bool {
        let crowded = all.running >= self.running() / 2;
        own.running == 0 || (!crowded && own.running < self.permits() && own.permits < self.permits_of_one_group())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(permits: usize) -> Limits {
        Limits::new(NonZeroUsize::new(permits).unwrap())
    }

    #[test]
    fn a_group_never_gets_the_last_permit_unless_there_is_only_one() {
        for (permits, of_one_group) in [(1, 1), (2, 1), (7, 6), (8, 7), (9, 7), (32, 28), (64, 56)] {
            assert_eq!(limits(permits).permits_of_one_group(), of_one_group, "{permits} permits");
        }
    }

    #[test]
    fn a_group_with_nothing_running_starts_while_there_is_room_at_all() {
        let limits = limits(4);
        let none = Load::default();
        for (case, all, allowed) in [
            ("idle", Load { permits: 0, running: 0 }, true),
            ("all permits taken", Load { permits: 4, running: 4 }, false),
            ("a permit free, crowded", Load { permits: 3, running: 40 }, true),
            ("full", Load { permits: 0, running: 64 }, false),
        ] {
            assert_eq!(limits.allow_any(all) && limits.allow_group(none, all), allowed, "{case}");
        }
    }

    #[test]
    fn a_group_that_runs_already_is_held_back() {
        let limits = limits(4);
        for (case, own, all, allowed) in [
            ("below its share", Load { permits: 2, running: 2 }, Load { permits: 2, running: 2 }, true),
            ("its share of permits", Load { permits: 3, running: 3 }, Load { permits: 3, running: 3 }, false),
            ("its share of long passes", Load { permits: 0, running: 4 }, Load { permits: 0, running: 4 }, false),
            ("long passes below it", Load { permits: 0, running: 3 }, Load { permits: 0, running: 31 }, true),
            ("crowded by others", Load { permits: 0, running: 1 }, Load { permits: 0, running: 32 }, false),
        ] {
            assert_eq!(limits.allow_group(own, all), allowed, "{case}");
        }
    }
}
