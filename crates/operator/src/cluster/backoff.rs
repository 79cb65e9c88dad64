//! How long to wait before the next try: doubling, capped, spread.
//!
//! For tries of the process itself (watches, the operator key). What a pass waits after a failure is a decision and
//! lives in the core.

use std::time::Duration;

use crate::entropy::Entropy;

/// First wait. As the client library's watchers do.
const FIRST: Duration = Duration::from_millis(800);

/// Longest wait before spreading: after an outage everything is back within 30 s x 1.25 = 37.5 s.
const CAP: Duration = Duration::from_secs(30);

/// Waits that double from 0.8 s up to 30 s, each spread by a quarter to either side.
#[derive(Debug)]
pub struct Backoff {
    failures: u32,
    entropy: Entropy,
}

impl Backoff {
    /// One that has seen no failure yet.
    pub fn new(entropy: Entropy) -> Self {
        Self { failures: 0, entropy }
    }

    /// Notes a failure and says how long to wait.
    pub fn next_wait(&mut self) -> Duration {
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        doubled.min(CAP).mul_f64(0.75 + self.entropy.jitter() / 2.0)
    }

    /// Forgets the failures.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_cap_and_stays_there() {
        let mut backoff = Backoff::new(Entropy::seeded(1));
        let expected = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0];
        for middle in expected {
            let wait = backoff.next_wait().as_secs_f64();
            assert!((0.75 * middle..=1.25 * middle).contains(&wait), "{wait} around {middle}");
        }
        for _ in 0..100 {
            backoff.next_wait();
        }
        assert!(backoff.next_wait() <= CAP.mul_f64(1.25));
        backoff.reset();
        assert!(backoff.next_wait() <= FIRST.mul_f64(1.25));
    }

    #[test]
    fn two_that_fail_together_do_not_return_together() {
        let (mut one, mut other) = (Backoff::new(Entropy::seeded(1)), Backoff::new(Entropy::seeded(2)));
        assert_ne!(one.next_wait(), other.next_wait());
    }
}
