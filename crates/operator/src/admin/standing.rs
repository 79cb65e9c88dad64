//! How the lasting parts of the process stand, told to the metrics: queues, leadership, watches, events.
//!
//! Only reads, at the moment of a scrape; a part that has stopped is told of as it was left, with an age that grows.

use std::time::Duration;

use tokio::time::Instant;

use super::Metrics;
use super::families;
use crate::cluster::answers::Answers;
use crate::cluster::events::EventPublisher;
use crate::cluster::store::{Keep, Kept};
use crate::cluster::watch::{WatchHealth, WatchState};
use crate::leader::Leadership;
use crate::pulse::Pulse;
use crate::queue::{Queue, Snapshot, Work};
use crate::term::Term;

impl Metrics {
    /// From now on, tells how `queue` stands. Work is late from when it is due, and not before the `term` in which passes
    /// are started: what waits on a standby is not late.
    pub fn tell_queue<W: Work>(&self, queue: &Queue<W>, term: &Term) {
        let of = queue.controller();
        let tell = |family, ask: fn(&Snapshot, Instant) -> f64| {
            let queue = queue.clone();
            self.tell(family, of, move || ask(&queue.snapshot(), Instant::now()));
        };
        tell(families::LONGEST_PASS, |queue, now| queue.longest_running(now).unwrap_or_default().as_secs_f64());
        tell(families::RUNNING, |queue, _| count(queue.running.len()));
        tell(families::DEPTH, |queue, _| count(queue.depth));
        tell(families::SCHEDULED, |queue, _| count(queue.scheduled));

        let tell_age = |family, age: fn(&Snapshot, Instant) -> Duration| {
            let (queue, term) = (queue.clone(), term.clone());
            self.tell(family, of, move || {
                let Some(term) = term.since() else { return 0.0 };
                let now = Instant::now();
                age(&queue.snapshot(), now).min(now.saturating_duration_since(term)).as_secs_f64()
            });
        };
        tell_age(families::OLDEST_DUE, |queue, _| queue.oldest_waiting.unwrap_or_default());
        tell_age(families::STALLED, stalled);
    }

    /// From now on, tells whether this replica leads.
    pub fn tell_leadership(&self, leadership: &Leadership) {
        let (now, ever) = (leadership.clone(), leadership.clone());
        self.tell(families::LEADER, "", move || f64::from(now.is_leader_now()));
        self.tell(families::LEADER_LOSSES, "", move || counted(ever.state().losses));
    }

    /// From now on, tells how a watch is doing.
    pub fn tell_watch(&self, health: &WatchHealth) {
        let name = health.snapshot().name;
        let tell = |family, ask: fn(&WatchState) -> f64| {
            let health = health.clone();
            self.tell(family, &name, move || ask(&health.snapshot()));
        };
        tell(families::WATCH_SILENCE, |watch| watch.silence(Instant::now()).as_secs_f64());
        tell(families::WATCH_FAILURES, |watch| counted(watch.failures_in_all));
        tell(families::WATCH_LOSSES, |watch| counted(watch.losses));
        tell(families::WATCH_LISTS, |watch| counted(watch.lists));
    }

    /// From now on, tells how long ago the API server answered.
    pub fn tell_answers(&self, answers: &Answers) {
        let answers = answers.clone();
        self.tell(families::APISERVER_SILENCE, "", move || answers.silence().as_secs_f64());
    }

    /// From now on, tells how many objects in this store cannot be read.
    pub fn tell_unreadable<K: Keep>(&self, kept: &Kept<K>) {
        let kept = kept.clone();
        self.tell(families::UNREADABLE, &K::kind(&()), move || count(kept.unreadable().len()));
    }

    /// From now on, tells when the watchdog last looked.
    pub fn tell_watchdog(&self, pulse: &Pulse) {
        let pulse = pulse.clone();
        self.tell(families::WATCHDOG_SILENCE, "", move || pulse.silence().as_secs_f64());
    }

    /// From now on, tells how many events were lost.
    pub fn tell_events(&self, events: &EventPublisher) {
        let events = events.clone();
        self.tell(families::EVENTS_LOST, "", move || counted(events.lost()));
    }
}

/// How long work has been due while nothing moved. A long line that moves is a lot of work, or a slow FerrVault; a
/// restart cures neither.
fn stalled(queue: &Snapshot, now: Instant) -> Duration {
    let Some(due) = queue.oldest_waiting else { return Duration::ZERO };
    let moved = queue.last_started.into_iter().chain(queue.last_finished).max();
    moved.map_or(due, |moved| due.min(now.saturating_duration_since(moved)))
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53 objects")]
fn count(number: usize) -> f64 {
    number as f64
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53, which is 285 years of a million a second")]
fn counted(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::admin::Format;
    use crate::admin::metrics::SECRET_CONTROLLER;
    use crate::clock::Clock;
    use crate::cluster::mock::{Reply, api};
    use crate::entropy::Entropy;
    use crate::key::ObjectKey;
    use crate::leader::{Candidate, Elector, LeaseTimes};
    use crate::queue::{Limits, Urgency};
    use crate::secret::Due;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_queue_stands_still_only_while_work_is_due_and_nothing_begins_or_ends() {
        let begun = Instant::now();
        let at = |minutes: u32| Some(begun + MINUTE * minutes);
        let now = begun + MINUTE * 60;
        for (case, oldest_waiting, last_started, last_finished, expected) in [
            ("idle for an hour", None, at(0), at(0), 0),
            ("no pass ever, work since 7 minutes", Some(MINUTE * 7), None, None, 7),
            ("work came after the last move", Some(MINUTE * 7), at(10), at(10), 7),
            ("work waits, and nothing began or ended since", Some(MINUTE * 50), at(40), at(41), 19),
            ("a long line that moves: passes end", Some(MINUTE * 50), at(40), at(60), 0),
            ("a long line that moves: passes begin", Some(MINUTE * 50), at(60), at(30), 0),
        ] {
            let queue = Snapshot { oldest_waiting, last_started, last_finished, ..Snapshot::default() };
            assert_eq!(stalled(&queue, now), MINUTE * expected, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_waits_is_late_since_passes_are_started_and_not_on_a_standby() {
        let metrics = Metrics::default();
        let queue: Queue<Due> = Queue::new(SECRET_CONTROLLER, Limits::new(NonZeroUsize::MIN));
        let term = Term::default();
        metrics.tell_queue(&queue, &term);
        queue.add(ObjectKey::new("shop", "db"), "shop/main".into(), Due::sync(), Urgency::Now);
        let says = |line: &str| {
            let page = metrics.page(Format::Text).unwrap();
            assert!(page.lines().any(|found| found == line), "{line}\n--- is not in\n{page}");
        };
        let ages = |age: &str| {
            says(&format!("ferrvault_queue_stalled_seconds{{controller=\"ferrvaultsecret\"}} {age}"));
            says(&format!("ferrvault_queue_oldest_due_seconds{{controller=\"ferrvaultsecret\"}} {age}"));
        };
        tokio::time::advance(MINUTE * 7).await;
        says("workqueue_depth{controller=\"ferrvaultsecret\"} 1.0");
        ages("0.0");
        term.begin();
        tokio::time::advance(MINUTE * 2).await;
        ages("120.0");
        term.end();
        ages("0.0");
    }

    #[tokio::test]
    async fn leadership_is_told_as_it_is() {
        let (client, _) = api(|_| Reply::Never);
        let candidate = Candidate {
            namespace: "ops".to_owned(),
            lease: "fv".to_owned(),
            pod: "second".to_owned(),
            times: LeaseTimes::default(),
        };
        let (_elector, standby) = Elector::new(client, candidate, Clock::system(), &Entropy::seeded(1));
        for (leadership, line) in
            [(Leadership::always(), "ferrvault_operator_leader 1.0"), (standby, "ferrvault_operator_leader 0.0")]
        {
            let metrics = Metrics::default();
            metrics.tell_leadership(&leadership);
            let page = metrics.page(Format::Text).unwrap();
            assert!(page.lines().any(|found| found == line), "{line}\n--- is not in\n{page}");
        }
    }
}
