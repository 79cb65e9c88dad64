//! How long ago the last pass over each resource ended, by a clock that does not jump.
//!
//! `lastAttemptedAt` is wall time, and so is what it has to be compared with. A wall clock that is set forward by an hour
//! would make everything stale at once, and one that is set back would hide an hour in which nobody looked. So the wall
//! clock is asked once, when a resource is first met; from then on it is counted since when the field has not moved.

use std::collections::BTreeMap;
use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::key::ObjectKey;

/// The ages. About 100 bytes per resource.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    known: BTreeMap<ObjectKey, Known>,
    now: Option<Instant>,
}

#[derive(Debug)]
struct Known {
    /// `lastAttemptedAt`, or the creation of a resource without it.
    moment: Option<Timestamp>,
    /// How often it is expected to move; zero where it is not.
    interval: Duration,
    /// Since when both have been the same.
    since: Instant,
    /// How old `moment` was then.
    before: Duration,
    /// The look that met it last.
    met: Instant,
}

impl Attempts {
    /// A look begins.
    pub(super) fn look(&mut self, now: Instant) {
        self.now = Some(now);
    }

    /// How long ago the last pass over `resource` ended, as far as passes were expected. `interval` zero: none is.
    pub(super) fn age(
        &mut self,
        key: &ObjectKey,
        resource: &FerrVaultSecret,
        interval: Duration,
        wall: Timestamp,
    ) -> Duration {
        let Some(now) = self.now else { return Duration::ZERO };
        let moment = moment_of(resource);
        let Some(known) = self.known.get_mut(key) else {
            let before = moment.map_or(Duration::ZERO, |moment| {
                // A moment to come is another machine's clock: nothing is late by it.
                Duration::try_from(wall.duration_since(moment)).unwrap_or_default()
            });
            let before = if interval.is_zero() { Duration::ZERO } else { before };
            self.known.insert(key.clone(), Known { moment, interval, since: now, before, met: now });
            return before;
        };
        known.met = now;
        // A new interval counts from when it was set, as does the end of a suspension: what was not expected is not late.
        if known.moment != moment || known.interval != interval || interval.is_zero() {
            *known = Known { moment, interval, since: now, before: Duration::ZERO, met: now };
        }
        known.before.saturating_add(now.saturating_duration_since(known.since))
    }

    /// A look ends: what it has not met is gone.
    pub(super) fn forget_unseen(&mut self) {
        let now = self.now;
        self.known.retain(|_, known| Some(known.met) == now);
    }

    /// Somebody else looks from now on.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }
}

fn moment_of(resource: &FerrVaultSecret) -> Option<Timestamp> {
    let attempted = resource.status.as_ref().and_then(|status| status.last_attempted_at.as_ref());
    attempted.or(resource.metadata.creation_timestamp.as_ref()).map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOUR: i64 = 3_600;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A resource created at 0 s, with a pass that ended at `attempted`.
    fn resource(attempted: Option<i64>) -> FerrVaultSecret {
        let mut resource: FerrVaultSecret = serde_json::from_value(json!({
            "apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret",
            "metadata": {"namespace": "shop", "name": "db", "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"connectionRef": {"name": "main"}, "vault": "v"}, "status": {},
        }))
        .unwrap();
        if let Some(status) = &mut resource.status {
            status.last_attempted_at = attempted
                .map(|at| k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::from_second(at).unwrap()));
        }
        resource
    }

    /// Ages as they are told along a story of: monotonic seconds, what the wall shows then, last attempt, interval.
    fn story(looks: &[(u64, i64, Option<i64>, u64)]) -> Vec<u64> {
        let (mut attempts, origin, key) = (Attempts::default(), Instant::now(), ObjectKey::new("shop", "db"));
        let mut look = |&(at, wall, attempted, interval): &(u64, i64, Option<i64>, u64)| {
            attempts.look(origin + secs(at));
            let wall = Timestamp::from_second(wall).unwrap();
            let age = attempts.age(&key, &resource(attempted), secs(interval), wall);
            attempts.forget_unseen();
            age.as_secs()
        };
        looks.iter().map(&mut look).collect()
    }

    #[test]
    fn the_first_look_takes_the_wall_clock_and_later_ones_count_on() {
        assert_eq!(story(&[(0, 500, Some(400), 60), (5, 505, Some(400), 60), (10, 510, Some(508), 60)]), [100, 105, 0]);
    }

    #[test]
    fn a_resource_without_any_pass_counts_from_its_creation() {
        assert_eq!(story(&[(0, 70, None, 60), (5, 75, None, 60)]), [70, 75]);
    }

    #[test]
    fn a_clock_that_jumps_changes_nothing() {
        for jump in [HOUR, -HOUR] {
            let wall = |seconds: i64| 100 * HOUR + seconds + jump;
            let before = 100 * HOUR;
            assert_eq!(
                story(&[
                    (0, before, Some(before), 60),
                    (5, wall(5), Some(before), 60),
                    (60, wall(60), Some(before), 60),
                    // The next pass ends under the new time.
                    (65, wall(65), Some(wall(62)), 60),
                    (125, wall(125), Some(wall(62)), 60),
                ]),
                [0, 5, 60, 0, 60],
                "by {jump} s"
            );
        }
    }

    #[test]
    fn the_future_is_not_late() {
        assert_eq!(story(&[(0, 100, Some(900), 60), (50, 150, Some(900), 60)]), [0, 50]);
    }

    #[test]
    fn what_was_not_expected_is_not_late_when_it_is_expected_again() {
        assert_eq!(
            story(&[
                (0, 9_000, Some(0), 0),
                (500, 9_500, Some(0), 0),
                (505, 9_505, Some(0), 60),
                (510, 9_510, Some(0), 60)
            ]),
            [0, 0, 0, 5]
        );
    }

    #[test]
    fn another_interval_counts_from_when_it_was_set() {
        assert_eq!(
            story(&[(0, 9_000, Some(0), 86_400), (5, 9_005, Some(0), 60), (65, 9_065, Some(0), 60)]),
            [9_000, 0, 60]
        );
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let (mut attempts, now, key) = (Attempts::default(), Instant::now(), ObjectKey::new("shop", "db"));
        attempts.look(now);
        attempts.age(&key, &resource(None), secs(60), Timestamp::UNIX_EPOCH);
        attempts.look(now + secs(5));
        attempts.forget_unseen();
        assert!(attempts.known.is_empty());
    }
}
