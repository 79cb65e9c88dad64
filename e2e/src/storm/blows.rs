//! Deals the blows of a plan: waits for each one's moment, strikes, and counts what it did.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::field::Field;
use super::fleet::Fleet;
use super::plan::{Blow, Moment, Plan, Planned};
use crate::cluster::Cluster;

/// How long a blow waits for work to be done that does not get done. An API server that was away is asked again after at
/// most 30 s.
const PATIENCE: Duration = Duration::from_secs(40);

/// Between two looks at what the watch has seen: short against the rotation of a dozen workloads.
const LOOK: Duration = Duration::from_millis(5);

/// How long two leaders overlap before the former one is let go: long enough for the new one to be in the middle of it.
const OVERLAP: Duration = Duration::from_millis(300);

/// What was dealt in a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dealt {
    /// Operators killed.
    pub kills: usize,
    /// Of those, how many while some workloads were restarted and others were not.
    pub in_the_middle: usize,
    /// Leaders stopped until another led, and let go.
    pub freezes: usize,
    /// Outages of the API server.
    pub outages: usize,
    /// The longest time from a kill until another leads, where there is an election.
    pub take_over: Option<Duration>,
}

/// Who strikes whom.
pub struct Striking<'s, 'o> {
    /// Where the API server is.
    pub cluster: &'s Cluster,
    /// What is being rotated.
    pub field: &'s Field<'o>,
    /// Who works on it.
    pub fleet: &'s mut Fleet<'o>,
    /// Whether there is an election to be waited for.
    pub elected: bool,
    /// Hears how far it is.
    pub tell: &'s dyn Fn(&str),
}

impl Striking<'_, '_> {
    /// Deals all blows of `plan`.
    pub async fn deal(mut self, plan: &Plan) -> Dealt {
        let mut dealt = Dealt::default();
        for (number, planned) in plan.0.iter().enumerate() {
            let of = plan.0.len();
            self.wait(planned, &format!("blow {} of {of}", number + 1)).await;
            match planned.blow {
                Blow::Kill => self.kill(planned, &mut dealt).await,
                Blow::Freeze => self.freeze(&mut dealt).await,
                Blow::Outage { down, kill } => self.outage(down, kill, &mut dealt).await,
            }
        }
        dealt
    }

    async fn wait(&mut self, planned: &Planned, what: &str) {
        // Whoever is struck works: the blow before may have left nobody who does.
        self.fleet.leader().await;
        match planned.moment {
            Moment::Beginning(after) => tokio::time::sleep(after).await,
            Moment::Permille(permille) => {
                let (started, permille) = (Instant::now(), usize::try_from(permille).unwrap());
                loop {
                    let (restarted, count) = (self.field.restarted(), self.field.count());
                    (self.tell)(&format!("{what}: {restarted} of {count} restarted"));
                    if restarted * 1_000 >= permille * count || started.elapsed() > PATIENCE {
                        break;
                    }
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
        tokio::time::sleep(planned.jitter).await;
    }

    async fn kill(&mut self, planned: &Planned, dealt: &mut Dealt) {
        let leader = self.fleet.leader().await;
        let restarted = self.field.restarted();
        self.fleet.kill(leader).await;
        let killed = Instant::now();
        dealt.kills += 1;
        dealt.in_the_middle += usize::from(restarted > 0 && self.field.restarted() < self.field.count());
        tokio::time::sleep(planned.pause).await;
        self.fleet.start(leader).await;
        if self.elected {
            self.fleet.leader().await;
            dealt.take_over = dealt.take_over.max(Some(killed.elapsed()));
        }
    }

    async fn freeze(&mut self, dealt: &mut Dealt) {
        let leader = self.fleet.leader().await;
        self.fleet.operator(leader).process().signal(Signal::STOP);
        self.fleet.leader_after(leader).await;
        tokio::time::sleep(OVERLAP).await;
        self.fleet.operator(leader).process().signal(Signal::CONT);
        dealt.freezes += 1;
    }

    async fn outage(&mut self, down: Duration, kill: Option<usize>, dealt: &mut Dealt) {
        self.cluster.plane.stop_apiserver().await;
        tokio::time::sleep(down / 2).await;
        if let Some(slot) = kill {
            self.fleet.kill(slot).await;
            self.fleet.start(slot).await;
        }
        tokio::time::sleep(down / 2).await;
        self.cluster.plane.start_apiserver().await.unwrap();
        dealt.outages += 1;
    }
}
