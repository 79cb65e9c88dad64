//! Which blows a round gets and when, drawn from the seed. Pure.
//!
//! Moments are mostly told by the work that is done and not by the clock, so that they spread over a rotation on a fast
//! machine and on a slow one alike; the rest falls into the first seconds of an operator that just began to work.

use std::time::Duration;

use super::Options;

/// The first seconds of an operator: lists, the first reads of every resource, the first writes.
const BEGINNING: u64 = 2_500;

/// Between the moment that was waited for and the blow: longer than a call, so that a blow falls between any two.
const JITTER: u64 = 150;

/// Between a kill and the next start, at most: what a kubelet takes when it is quick.
const PAUSE: u64 = 800;

/// Of ten blows, how many wait for work to be done.
const BY_PROGRESS: u8 = 6;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// The operator that works gets SIGKILL, and another is started in its place.
    Kill,
    /// The leader gets SIGSTOP, and SIGCONT when another has led for a moment.
    Freeze,
    /// The API server is gone for this long; an operator may be killed meanwhile, and another starts into the outage.
    Outage {
        /// How long.
        down: Duration,
        /// Which one is killed, if any.
        kill: Option<usize>,
    },
}

/// When it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// When this many of a thousand workloads were restarted in this round.
    Permille(u32),
    /// This long after an operator began to work.
    Beginning(Duration),
}

/// One blow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What.
    pub blow: Blow,
    /// When.
    pub moment: Moment,
    /// How long after that moment.
    pub jitter: Duration,
    /// How long nobody stands in for who was killed.
    pub pause: Duration,
}

/// The blows of one round, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan(pub Vec<Planned>);

impl Plan {
    /// Draws those of round `number`, which counts from 1. The same options give the same plan.
    pub fn draw(options: &Options, number: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(options.seed ^ (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let share = |all: usize| all * number / options.rounds - all * (number - 1) / options.rounds;
        let mut blows = vec![Blow::Kill; share(options.kills)];
        blows.extend(vec![Blow::Freeze; share(options.freezes)]);
        blows.extend((0..share(options.outages)).map(|_| Blow::Outage {
            down: Duration::from_millis(random.u64(500..5_000)),
            kill: random.bool().then(|| random.usize(0..options.replicas)),
        }));
        random.shuffle(&mut blows);
        let mut permille: Vec<u32> = blows.iter().map(|_| random.u32(0..=1_000)).collect();
        permille.sort_unstable();
        let planned = |(blow, permille): (Blow, u32)| Planned {
            blow,
            moment: if random.u8(0..10) < BY_PROGRESS {
                Moment::Permille(permille)
            } else {
                Moment::Beginning(Duration::from_millis(random.u64(0..BEGINNING)))
            },
            jitter: Duration::from_millis(random.u64(0..JITTER)),
            pause: Duration::from_millis(random.u64(0..PAUSE)),
        };
        Self(blows.into_iter().zip(permille).map(planned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(seed: u64) -> Options {
        Options {
            resources: 10,
            rounds: 3,
            kills: 20,
            outages: 2,
            freezes: 1,
            replicas: 2,
            wire: false,
            seed,
            values: serde_json::Value::Null,
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_one_another() {
        assert_eq!(Plan::draw(&options(7), 1), Plan::draw(&options(7), 1));
        assert_ne!(Plan::draw(&options(7), 1), Plan::draw(&options(8), 1));
        assert_ne!(Plan::draw(&options(7), 1), Plan::draw(&options(7), 2));
    }

    #[test]
    fn all_blows_are_dealt_over_the_rounds_and_progress_never_goes_back() {
        let plans: Vec<Planned> = (1..=3).flat_map(|round| Plan::draw(&options(5), round).0).collect();
        let count = |wanted: fn(&Blow) -> bool| plans.iter().filter(|planned| wanted(&planned.blow)).count();
        assert_eq!(count(|blow| *blow == Blow::Kill), 20);
        assert_eq!(count(|blow| *blow == Blow::Freeze), 1);
        assert_eq!(count(|blow| matches!(blow, Blow::Outage { .. })), 2);
        for round in 1..=3 {
            let reached = Plan::draw(&options(5), round).0.into_iter().filter_map(|planned| match planned.moment {
                Moment::Permille(permille) => Some(permille),
                Moment::Beginning(_) => None,
            });
            assert!(reached.is_sorted());
        }
    }
}
