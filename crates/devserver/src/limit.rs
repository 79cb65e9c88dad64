//! The rate limit per service-account token: at most so many admitted calls in any sixty seconds.
//!
//! A sliding window, because it never admits more than the limit in any minute, wherever the minute starts. Refused calls
//! do not count: a client that obeys `Retry-After` is admitted when it comes back.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// The span that the limit counts over.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);

/// Counts calls per token.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// `None` admits everything.
    per_minute: Option<NonZeroU32>,
    admitted: Mutex<HashMap<String, VecDeque<Timestamp>>>,
}

impl RateLimiter {
    /// Admits `per_minute` calls in any minute; 0 turns the limit off.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute: NonZeroU32::new(per_minute), admitted: Mutex::default() }
    }

    /// Admits a call of this token, or tells after how many seconds one will be admitted.
    pub(crate) fn admit(&self, token_id: &str, now: Timestamp) -> Result<(), u64> {
        let Some(limit) = self.per_minute else { return Ok(()) };
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        let times = admitted.entry(token_id.to_owned()).or_default();
        // A time ahead of now means that the clock was set back; such a call is not held against the token for hours.
        times.retain(|&time| time <= now && now.duration_since(time) < WINDOW);
        if let Some(&oldest) = times.front()
            && times.len() >= limit.get() as usize
        {
            let left = WINDOW - now.duration_since(oldest);
            // Rounded up, so that whoever waits exactly as told is not told again.
            let seconds = left.as_secs() + i64::from(left.subsec_nanos() > 0);
            return Err(u64::try_from(seconds).unwrap_or(1).max(1));
        }
        times.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::RateLimiter;

    fn at(millis: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_millis(millis)
    }

    #[test]
    fn the_call_after_the_limit_waits_until_the_oldest_is_a_minute_old() {
        let limiter = RateLimiter::new(3);
        for millis in [0, 10_000, 20_000] {
            assert_eq!(limiter.admit("t", at(millis)), Ok(()));
        }
        assert_eq!(limiter.admit("t", at(20_500)), Err(40), "39.5 s are left, told as 40");
        assert_eq!(limiter.admit("t", at(59_999)), Err(1));
        assert_eq!(limiter.admit("t", at(60_000)), Ok(()), "refused calls did not count");
        assert_eq!(limiter.admit("t", at(60_000)), Err(10));
    }

    #[test]
    fn tokens_do_not_share_a_limit_and_zero_is_none() {
        let limiter = RateLimiter::new(1);
        assert_eq!(limiter.admit("a", at(0)), Ok(()));
        assert_eq!(limiter.admit("b", at(0)), Ok(()));
        assert_eq!(limiter.admit("a", at(0)), Err(60));
        let unlimited = RateLimiter::new(0);
        assert!((0..1_000).all(|_| unlimited.admit("a", at(0)).is_ok()));
    }

    #[test]
    fn a_clock_set_back_does_not_lock_a_token_out() {
        let limiter = RateLimiter::new(1);
        assert_eq!(limiter.admit("a", at(3_600_000)), Ok(()));
        assert_eq!(limiter.admit("a", at(0)), Ok(()));
    }
}
