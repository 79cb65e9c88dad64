//! How many passes may run, and what one group or one namespace may take of that.
//!
//! A permit bounds the work that two cores and an API server do side by side. A pass that waits for something slow does
//! no work, so after [`OVERTIME`] it gives its permit back and goes on outside the count. What bounds it then is memory:
//! the limits on all passes that run, and the shares of groups and namespaces in them. These are rules on numbers; no
//! clock, no keys.
//!
//! ```text
//!   all that runs, full at 16 x permits
//!   0          1/2          3/4           1
//!   |-----------|------------|------------|
//!    any group,  groups with  namespaces
//!    up to its   nothing      with nothing
//!    share       running      running
//! ```
//!
//! A key whose last pass ran long is *slow*: it will most likely wait again, for the same thing. Slow keys have a part of
//! their group's share to themselves and wait for each other there, so that the quick keys of the same group find room.

use std::num::NonZeroUsize;
use std::time::Duration;

/// How long a pass holds its permit at most.
///
/// A pass takes 10 to 100 ms of answers when everybody is well (five round trips to the API server at a few ms, one to
/// FerrVault at some tens of ms); one second is ten times that. So whoever exceeds it waits for something that is not well,
/// and a second is what others may wait for that at the very most.
pub const OVERTIME: Duration = Duration::from_secs(1);

/// All passes that run, as a multiple of the permits. A pass that waits holds some tens of KB (buffers of two connections,
/// one answer; larger answers are counted on their own): 16 x 32 permits x 50 KB = 26 MB, which fits a pod of 128 MB.
const RUNNING_PER_PERMIT: usize = 16;

/// Passes that one group has running at most, as a multiple of the permits: a quarter of all, 128 of 512.
///
/// No more than the permits themselves would be too few. Thirty resources that wait for one workload, while 8 permits
/// allow 8 of them at a time, keep the quick ones behind them waiting for 4 rounds of 10 s each; with 4 x 8 they all wait
/// at once, and the next in the group begins within [`OVERTIME`].
const GROUP_PER_PERMIT: usize = 4;

/// Passes of slow keys that one group has running at most, as a multiple of the permits: three quarters of the group's
/// share stay for the quick ones.
const SLOW_PER_PERMIT: usize = 1;

/// One permit in so many stays out of the reach of any single namespace, so that another one finds it free at once.
const NAMESPACE_RESERVE_ONE_IN: usize = 16;

/// One permit in so many stays out of the reach of any single group: half of these are for the others of its namespace. Of
/// up to sixteen permits that half is none, and such others wait for [`OVERTIME`] at most.
const GROUP_RESERVE_ONE_IN: usize = 8;

/// How many passes run side by side.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    concurrency: NonZeroUsize,
}

/// What a group, a namespace, or all of them together, has running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Passes that hold a permit.
    pub(super) permits: usize,
    /// Passes that run, with or without one.
    pub(super) running: usize,
    /// Those of them whose key is slow.
    pub(super) slow: usize,
}

/// Which keys of a group may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    None,
    /// Those whose last pass did not run long.
    Quick,
    Any,
}

impl Admission {
    pub(super) fn admits(self, slow: bool) -> bool {
        match self {
            Self::None => false,
            Self::Quick => !slow,
            Self::Any => true,
        }
    }
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

    /// The most permits that one namespace holds. A single permit cannot be shared; of two to sixteen, one is left.
    fn permits_of_one_namespace(self) -> usize {
        let reserve = self.permits().div_ceil(NAMESPACE_RESERVE_ONE_IN);
        self.permits().saturating_sub(reserve).max(1)
    }

    /// The most permits that one group holds.
    fn permits_of_one_group(self) -> usize {
        let reserve = self.permits().div_ceil(GROUP_RESERVE_ONE_IN);
        self.permits().saturating_sub(reserve).max(1)
    }

    /// Whether any group at all may start a pass while `all` is running.
    pub(super) fn allow_any(self, all: Load) -> bool {
        all.permits < self.permits() && all.running < self.running()
    }

    /// Which keys of a group that has `own` running may start one more, while its namespace has `namespace` running and
    /// everybody together `all`.
    ///
    /// Half of what may run is kept for groups that have nothing running, and half of that for namespaces that have
    /// nothing running: whoever waits with all he has, in however many groups, leaves room in which everybody else still
    /// starts at once.
    pub(super) fn admission(self, own: Load, namespace: Load, all: Load) -> Admission {
        let (half, three_quarters) = (self.running() / 2, self.running() / 4 * 3);
        let namespace_may = namespace.running == 0
            || (all.running < three_quarters && namespace.permits < self.permits_of_one_namespace());
        let group_may = own.running == 0
            || (all.running < half
                && own.running < self.permits().saturating_mul(GROUP_PER_PERMIT)
                && own.permits < self.permits_of_one_group());
        if !namespace_may || !group_may {
            Admission::None
        } else if own.slow < self.permits().saturating_mul(SLOW_PER_PERMIT) {
            Admission::Any
        } else {
            Admission::Quick
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(permits: usize) -> Limits {
        Limits::new(NonZeroUsize::new(permits).unwrap())
    }

    fn load(permits: usize, running: usize, slow: usize) -> Load {
        Load { permits, running, slow }
    }

    #[test]
    fn nobody_gets_the_last_permits_unless_there_is_only_one() {
        for (permits, of_one_group, of_one_namespace) in
            [(1, 1, 1), (2, 1, 1), (7, 6, 6), (8, 7, 7), (16, 14, 15), (32, 28, 30), (64, 56, 60)]
        {
            let limits = limits(permits);
            assert_eq!(limits.permits_of_one_group(), of_one_group, "{permits} permits");
            assert_eq!(limits.permits_of_one_namespace(), of_one_namespace, "{permits} permits");
        }
    }

    #[test]
    fn a_group_is_held_back_by_what_it_its_namespace_and_everybody_has_running() {
        use Admission::{Any, None, Quick};
        let limits = limits(16);
        for (case, own, namespace, all, admitted) in [
            ("idle", load(0, 0, 0), load(0, 0, 0), load(0, 0, 0), Any),
            ("below its share", load(13, 13, 0), load(13, 13, 0), load(13, 13, 0), Any),
            ("its share of permits", load(14, 14, 0), load(14, 14, 0), load(14, 14, 0), None),
            ("a stranger in its namespace", load(0, 0, 0), load(14, 14, 0), load(14, 14, 0), Any),
            ("its namespace's share of permits", load(0, 0, 0), load(15, 15, 0), load(15, 15, 0), None),
            ("a stranger to the namespace", load(0, 0, 0), load(0, 0, 0), load(15, 15, 0), Any),
            ("long passes below its share", load(0, 63, 0), load(0, 63, 0), load(0, 63, 0), Any),
            ("its share of long passes", load(0, 64, 0), load(0, 64, 0), load(0, 64, 0), None),
            ("slow keys below their part", load(0, 15, 15), load(0, 15, 15), load(0, 15, 15), Any),
            ("their part of slow keys", load(0, 16, 16), load(0, 16, 16), load(0, 16, 16), Quick),
            ("half full, something running", load(0, 1, 0), load(0, 1, 0), load(0, 128, 0), None),
            ("half full, nothing running", load(0, 0, 0), load(0, 9, 0), load(0, 128, 0), Any),
            ("three quarters full, namespace running", load(0, 0, 0), load(0, 1, 0), load(0, 192, 0), None),
            ("three quarters full, nothing running", load(0, 0, 0), load(0, 0, 0), load(0, 192, 0), Any),
        ] {
            assert_eq!(limits.admission(own, namespace, all), admitted, "{case}");
        }
    }

    #[test]
    fn nobody_starts_without_a_permit_or_when_all_is_full() {
        let limits = limits(4);
        for (all, allowed) in
            [(load(3, 3, 0), true), (load(4, 4, 0), false), (load(0, 63, 0), true), (load(0, 64, 0), false)]
        {
            assert_eq!(limits.allow_any(all), allowed, "{all:?}");
        }
    }
}
