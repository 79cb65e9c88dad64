//! Whether a restart of the process would cure something: the judgement behind `/healthz`, as a function of numbers.
//!
//! Red means that the kubelet ends the process, so nothing is red that lasts through a restart: a FerrVault or an API
//! server that is away, a right that is missing, a replica that stands by, a cluster without resources.

use std::time::Duration;

use ferrvault_core::duration::GoDuration;

use crate::cluster::watch::SILENCE_LIMIT;

/// Who heard from the API server within this time is in touch with it. A watch in good order hears something within
/// [`SILENCE_LIMIT`], and requests are made as often; twice that leaves room for one that comes late.
const IN_TOUCH: Duration = SILENCE_LIMIT.saturating_mul(2);

/// What is known of the process at one moment.
#[derive(Clone, Debug, Default)]
pub struct Vitals {
    /// A part that is meant to last and has ended.
    pub ended: Option<String>,
    /// For how long passes have been started here; `None` on a standby, and before the first lists are complete.
    pub working: Option<Duration>,
    /// The queues.
    pub queues: Vec<QueueVitals>,
    /// The watches.
    pub watches: Vec<WatchVitals>,
    /// How long ago the API server last answered a request that is no watch; `None` where nobody asks.
    pub requests_silent: Option<Duration>,
    /// How long ago the watchdog last looked; `None` where there is none yet.
    pub watchdog_silent: Option<Duration>,
}

/// What is known of one queue.
#[derive(Clone, Debug, Default)]
pub struct QueueVitals {
    /// The controller that it feeds.
    pub controller: &'static str,
    /// The pass that runs longest: over what, and how long.
    pub longest: Option<(String, Duration)>,
    /// How long the oldest work has been due without being begun.
    pub oldest_waiting: Option<Duration>,
    /// How long ago a pass last ended.
    pub last_finished: Option<Duration>,
}

/// What is known of one watch.
#[derive(Clone, Debug)]
pub struct WatchVitals {
    /// What is watched.
    pub name: String,
    /// How long the API server has said nothing to it, not even no.
    pub silent: Duration,
}

impl Vitals {
    /// Whether the process lives, or one line that says why not.
    pub fn verdict(&self, threshold: Duration) -> Result<(), String> {
        let wrong = self
            .ended()
            .or_else(|| self.pass_hangs(threshold))
            .or_else(|| self.queue_stands_still(threshold))
            .or_else(|| self.watch_is_dead(threshold))
            .or_else(|| self.watchdog_stands_still(threshold));
        wrong.map_or(Ok(()), Err)
    }

    fn ended(&self) -> Option<String> {
        self.ended.as_ref().map(|what| format!("{what}, which it should not do before the end of the process"))
    }

    /// Also on a standby: a pass that hangs from the last term is what keeps the next one from beginning.
    fn pass_hangs(&self, threshold: Duration) -> Option<String> {
        let hanging = self.queues.iter().filter_map(|queue| Some((queue.controller, queue.longest.as_ref()?)));
        let (controller, (key, age)) =
            hanging.filter(|(_, (_, age))| *age > threshold).max_by_key(|(_, (_, age))| *age)?;
        Some(format!("the {controller} pass over {key} has been running for {}, {}", spelled(*age), limit(threshold)))
    }

    fn queue_stands_still(&self, threshold: Duration) -> Option<String> {
        let working = self.working?;
        self.queues.iter().find_map(|queue| {
            let waiting = queue.oldest_waiting?.min(working);
            let finished = queue.last_finished.unwrap_or(working).min(working);
            (waiting > threshold && finished > threshold).then(|| {
                format!(
                    "{} work has been due for {} and no pass has ended for {}, {}",
                    queue.controller,
                    spelled(waiting),
                    spelled(finished),
                    limit(threshold)
                )
            })
        })
    }

    /// Dead alone: when nobody else hears from the API server either, it is the server that is away.
    fn watch_is_dead(&self, threshold: Duration) -> Option<String> {
        let dead = self.watches.iter().max_by_key(|watch| watch.silent).filter(|watch| watch.silent > threshold)?;
        let others = self.watches.iter().map(|watch| watch.silent).chain(self.requests_silent);
        others.min().filter(|silent| *silent <= IN_TOUCH)?;
        Some(format!(
            "the watch of {} has heard nothing for {} while the API server answers others, {}",
            dead.name,
            spelled(dead.silent),
            limit(threshold)
        ))
    }

    fn watchdog_stands_still(&self, threshold: Duration) -> Option<String> {
        let silent = self.watchdog_silent.filter(|silent| *silent > threshold)?;
        Some(format!("the watchdog has not looked for {}, {}", spelled(silent), limit(threshold)))
    }
}

/// In whole seconds: nobody needs more.
fn spelled(span: Duration) -> GoDuration {
    GoDuration::from(Duration::from_secs(span.as_secs()))
}

fn limit(threshold: Duration) -> String {
    format!("longer than --stall-threshold={}", GoDuration::from(threshold))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const THRESHOLD: Duration = Duration::from_mins(15);

    fn minutes(minutes: u32) -> Duration {
        MINUTE * minutes
    }

    /// A replica that has led for a day, with a queue like this.
    fn leading(longest: Option<u32>, oldest_waiting: Option<u32>, last_finished: Option<u32>) -> Vitals {
        let queue = QueueVitals {
            controller: "ferrvaultsecret",
            longest: longest.map(|age| ("shop/db".to_owned(), minutes(age))),
            oldest_waiting: oldest_waiting.map(minutes),
            last_finished: last_finished.map(minutes),
        };
        Vitals { working: Some(minutes(1_440)), queues: vec![queue], ..Vitals::default() }
    }

    fn watching(silent: &[u32], requests_silent: Option<u32>) -> Vitals {
        let watches = ["ferrvaultsecrets", "ferrvaultconnections", "secrets"].iter().zip(silent);
        let watches = watches.map(|(name, silent)| WatchVitals { name: (*name).to_owned(), silent: minutes(*silent) });
        Vitals { watches: watches.collect(), requests_silent: requests_silent.map(minutes), ..Vitals::default() }
    }

    #[test]
    fn what_a_restart_does_not_cure_is_green() {
        for (case, vitals) in [
            ("nothing is known yet", Vitals::default()),
            ("no resources", leading(None, None, None)),
            ("idle for an hour", leading(None, None, Some(60))),
            ("a pass at the very threshold", leading(Some(15), None, Some(60))),
            ("FerrVault slow: a long line, and passes end", leading(Some(2), Some(60), Some(1))),
            ("FerrVault down: passes end in failure", leading(None, Some(1), Some(0))),
            ("work that has just fallen due after an idle hour", leading(None, Some(1), Some(60))),
            ("a standby, in whose queue nothing is begun", Vitals { working: None, ..leading(None, Some(600), None) }),
            ("a term that has just begun", Vitals { working: Some(MINUTE), ..leading(None, Some(600), Some(600)) }),
            ("every watch has just heard", watching(&[0, 0, 0], Some(0))),
            ("the API server is away", watching(&[60, 60, 60], Some(60))),
            ("the API server is away, one watch heard it longer", watching(&[60, 60, 16], Some(16))),
            ("a watch is silent for the threshold and no longer", watching(&[15, 0, 0], Some(0))),
        ] {
            assert_eq!(vitals.verdict(THRESHOLD), Ok(()), "{case}");
        }
    }

    #[test]
    fn what_a_restart_cures_is_red_and_says_why_in_one_line() {
        for (case, vitals, why) in [
            (
                "a pass that hangs",
                leading(Some(16), None, Some(0)),
                "the ferrvaultsecret pass over shop/db has been running for 16m0s, longer than --stall-threshold=15m0s",
            ),
            (
                "a pass that hangs from the last term",
                Vitals { working: None, ..leading(Some(16), None, None) },
                "the ferrvaultsecret pass over shop/db has been running for 16m0s, longer than --stall-threshold=15m0s",
            ),
            (
                "work is due and nothing ends",
                leading(None, Some(16), Some(17)),
                "ferrvaultsecret work has been due for 16m0s and no pass has ended for 17m0s, longer than \
                 --stall-threshold=15m0s",
            ),
            (
                "work is due and nothing ever ended in this term",
                Vitals { working: Some(minutes(20)), ..leading(None, Some(600), None) },
                "ferrvaultsecret work has been due for 20m0s and no pass has ended for 20m0s, longer than \
                 --stall-threshold=15m0s",
            ),
            (
                "one watch is dead",
                watching(&[0, 16, 1], None),
                "the watch of ferrvaultconnections has heard nothing for 16m0s while the API server answers others, \
                 longer than --stall-threshold=15m0s",
            ),
            (
                "every watch is dead, and requests are answered",
                watching(&[16, 16, 17], Some(0)),
                "the watch of secrets has heard nothing for 17m0s while the API server answers others, longer than \
                 --stall-threshold=15m0s",
            ),
            (
                "a task has ended",
                Vitals { ended: Some("the watch of secrets has panicked".to_owned()), ..Vitals::default() },
                "the watch of secrets has panicked, which it should not do before the end of the process",
            ),
            (
                "the watchdog itself",
                Vitals { watchdog_silent: Some(minutes(16)), ..Vitals::default() },
                "the watchdog has not looked for 16m0s, longer than --stall-threshold=15m0s",
            ),
        ] {
            assert_eq!(vitals.verdict(THRESHOLD), Err(why.to_owned()), "{case}");
        }
    }
}
