//! A storm: many resources with one workload each, their content rotated, and the operator killed, frozen or cut off from
//! its API server in the middle of it, at moments that come from a seed.
//!
//! What it did is counted by who does not know the operator: a watch on the workloads, the generation that the API server
//! keeps of each, and the Secrets as they are at rest. Nothing here believes a status; a status that says otherwise than
//! the objects is one more fault.

pub mod blows;
pub mod field;
pub mod fleet;
pub mod plan;
pub mod report;
pub mod verdict;

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::json;
use xtask::repository;

use crate::cluster::Cluster;
use crate::own::Own;
use crate::wire::Wire;
use blows::Striking;
use field::Field;
use fleet::Fleet;
use plan::Plan;
pub use report::{Report, Round};

/// How long nothing may come nearer to rest. What failed last waits for its backoff, 30 s and more when the API server was
/// away; an operator that starts again takes a quarter of a minute to its first write over a thousand resources.
const PATIENCE: Duration = Duration::from_mins(5);

/// What to let loose.
#[derive(Clone, Debug)]
pub struct Options {
    /// Resources, each with one workload.
    pub resources: usize,
    /// Rotations, there and back.
    pub rounds: usize,
    /// Kills in all, spread over the rounds.
    pub kills: usize,
    /// Outages of the API server in all.
    pub outages: usize,
    /// Leaders stopped until another leads, and let go then, in all; needs two replicas.
    pub freezes: usize,
    /// Operators at a time: one without leader election, or two with it.
    pub replicas: usize,
    /// Whether the wire between operators and API server is rough while blows are dealt.
    pub wire: bool,
    /// What every moment is drawn from.
    pub seed: u64,
    /// More values for the chart.
    pub values: serde_json::Value,
}

/// Plays a storm on `cluster`, which has the definitions, and says what came of it. `tell` hears how far it is.
pub async fn run(cluster: &Rc<Cluster>, options: &Options, tell: &dyn Fn(&str)) -> Report {
    let began = Instant::now();
    let elected = options.replicas > 1;
    let mut values = json!({"leaderElection": {"enabled": elected}});
    crate::objects::merge(&mut values, options.values.clone());
    let own = Own::new(cluster, "storm", values).await;
    let server = cluster.plane.server();
    let wire = if options.wire { Some(Wire::to(&server).await) } else { None };
    let server = wire.as_ref().map_or(server.as_str(), Wire::url);
    let mut fleet = Fleet::new(&own, &vec![server; options.replicas]).await;
    fleet.start_all().await;
    tell(&format!("making {} resources", options.resources));
    let field = Field::sow(&own, options.resources).await;
    field.until_synced(PATIENCE, tell).await;

    let mut report = Report::new(options);
    let mut restarts = 0;
    for number in 1..=options.rounds {
        let started = Instant::now();
        let plan = Plan::draw(options, number);
        if let Some(wire) = &wire {
            wire.rough(options.seed.wrapping_add(number as u64));
        }
        field.rotate().await;
        let dealt = Striking { cluster, field: &field, fleet: &mut fleet, elected, tell }.deal(&plan).await;
        if let Some(wire) = &wire {
            wire.calm();
        }
        let found = field.settle(PATIENCE, tell).await;
        let before = std::mem::replace(&mut restarts, field.restarts().await);
        let (ended, took) = (fleet.take_ended().await, started.elapsed());
        report.rounds.push(Round { number, dealt, restarts: restarts - before, found, ended, took });
        if !report.rounds[number - 1].found.is_empty() {
            // What is wrong stays wrong, and would only be counted again.
            break;
        }
    }
    if report.rounds.iter().all(|round| round.found.is_empty()) {
        // Everything is looked at once more: what would be done twice then is done now.
        tell("a pass over everything");
        field.look_again(PATIENCE, tell).await;
        report.at_rest = field.judge().await;
    }
    fleet.stop_all().await;
    report.ended_at_rest = fleet.take_ended().await;
    report.wire = wire.map(|wire| (wire.ended(), wire.to_string()));
    report.leaked = leaked(cluster, &fleet);
    report.took = began.elapsed();
    if !report.exact() {
        report.kept = Some(keep(cluster, &fleet, options.seed));
    }
    report
}

/// The first value or token that got into a log.
fn leaked(cluster: &Cluster, fleet: &Fleet<'_>) -> Option<String> {
    cluster.logs().iter().chain(fleet.logs()).find_map(|log| {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        cluster.canaries.found_in(&text).map(|which| format!("{}: {which}", log.display()))
    })
}

/// Keeps the operators' logs and the API server's audit log where the next build does not remove them.
fn keep(cluster: &Cluster, fleet: &Fleet<'_>, seed: u64) -> PathBuf {
    let folder = repository::target_dir().join("storm").join(format!("seed-{seed}"));
    std::fs::create_dir_all(&folder).unwrap();
    for log in fleet.logs().iter().map(PathBuf::as_path).chain([cluster.audit_log()]) {
        let _ = std::fs::copy(log, folder.join(log.file_name().unwrap()));
    }
    folder
}
