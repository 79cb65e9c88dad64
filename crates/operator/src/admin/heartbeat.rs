//! Whether the main runtime still runs tasks: one of them beats every second, and anybody may listen from outside.
//!
//! Measured with the machine's monotonic clock and never with tokio's, which a runtime that stands still, or one whose
//! time is paused, could not be trusted with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ferrvault_core::duration::GoDuration;

/// Often enough for any threshold that makes sense (minutes), rarely enough to cost nothing.
const BEAT: Duration = Duration::from_secs(1);

/// The pulse of the main runtime. Clones share it.
#[derive(Clone, Debug)]
pub struct Heartbeat(Arc<Pulse>);

#[derive(Debug)]
struct Pulse {
    threshold: Duration,
    origin: Instant,
    /// Milliseconds from `origin` to the last beat.
    last: AtomicU64,
}

impl Heartbeat {
    /// A pulse that has just beaten, and may be silent for `threshold`.
    pub fn new(threshold: Duration) -> Self {
        Self(Arc::new(Pulse { threshold, origin: Instant::now(), last: AtomicU64::new(0) }))
    }

    /// Beats on the runtime that runs this, for ever.
    pub async fn run(self) {
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            self.beat();
        }
    }

    fn beat(&self) {
        self.0.last.store(self.since_origin(), Ordering::Relaxed);
    }

    /// How long ago the last beat was.
    pub fn silence(&self) -> Duration {
        Duration::from_millis(self.since_origin().saturating_sub(self.0.last.load(Ordering::Relaxed)))
    }

    /// Whether the runtime lives, or one line that says why not.
    pub fn verdict(&self) -> Result<(), String> {
        let (silence, threshold) = (self.silence(), self.0.threshold);
        if silence <= threshold {
            return Ok(());
        }
        let seconds = Duration::from_secs(silence.as_secs());
        Err(format!(
            "the main runtime has stood still for {}, longer than --stall-threshold={}",
            GoDuration::from(seconds),
            GoDuration::from(threshold)
        ))
    }

    fn since_origin(&self) -> u64 {
        // 64 bits of milliseconds are half a billion years.
        u64::try_from(self.0.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pulse that began `ago`, and has not beaten since.
    fn silent_for(ago: Duration, threshold: Duration) -> Heartbeat {
        let origin = Instant::now().checked_sub(ago).unwrap();
        Heartbeat(Arc::new(Pulse { threshold, origin, last: AtomicU64::new(0) }))
    }

    #[test]
    fn silence_up_to_the_threshold_is_life() {
        assert_eq!(silent_for(Duration::from_secs(50), Duration::from_mins(1)).verdict(), Ok(()));
    }

    #[test]
    fn longer_silence_is_told_in_one_line_with_both_times() {
        let verdict = silent_for(Duration::from_secs(61), Duration::from_mins(1)).verdict();
        assert_eq!(
            verdict.unwrap_err(),
            "the main runtime has stood still for 1m1s, longer than --stall-threshold=1m0s"
        );
    }

    #[test]
    fn a_beat_ends_the_silence() {
        let heartbeat = silent_for(Duration::from_secs(61), Duration::from_mins(1));
        heartbeat.beat();
        assert_eq!(heartbeat.verdict(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_beats_without_being_asked() {
        let heartbeat = silent_for(Duration::from_secs(61), Duration::from_mins(1));
        let task = tokio::spawn(heartbeat.clone().run());
        tokio::time::sleep(BEAT).await;
        assert_eq!(heartbeat.verdict(), Ok(()));
        task.abort();
    }
}
