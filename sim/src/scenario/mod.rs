//! The scenarios, as data: what is there before, what happens and when, how it ends, and how often each workload is
//! restarted when nothing goes wrong.

mod creation;
mod deletion;
mod foreign;
mod replicas;
mod rotation;
mod upgrade;

use ferrvault_testkit::build::{self, Built};

use crate::act::{Act, Kind, NS};
use crate::check::End;

/// What wakes a resource that has come to rest (I7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Its schedule.
    Schedule,
    /// Nothing but a watch: an edit of the resource.
    Edit,
    /// It is not kept, so nothing has to.
    Nothing,
}

/// A story, and how it has to end whatever goes wrong in it.
#[derive(Clone)]
pub struct Scenario {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is about, in one line.
    pub about: &'static str,
    /// What happened before; nothing goes wrong in it.
    pub before: Vec<Act>,
    /// What happens, with the seconds since the beginning.
    pub script: Vec<(u64, Act)>,
    /// Calls count until so many seconds after the beginning.
    pub counts_for: u64,
    /// How each resource ends.
    pub ends: Vec<End>,
    /// How often workloads are restarted when nothing goes wrong.
    pub restarts: Vec<(&'static str, usize)>,
    /// What wakes its resources at the end.
    pub wake: Wake,
    /// The vaults whose content changes at the end, to see whether anybody is awake.
    pub vaults: Vec<&'static str>,
    /// Resources that never come to rest, and must hold nobody else up (I9).
    pub stuck: Vec<&'static str>,
    /// Workloads that are restarted within 30 s of this second, when nothing goes wrong.
    pub prompt: Vec<(&'static str, u64)>,
}

/// The process of most scenarios.
pub(crate) const ONE: &str = "operator";
/// The other one.
pub(crate) const TWO: &str = "operator-2";

/// How often resources look: often, so that little time has to pass.
pub(crate) const EVERY: &str = "30s";

impl Scenario {
    fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            before: Vec::new(),
            script: Vec::new(),
            // One look (30 s and a tenth) after what happens at the beginning, and what follows from it.
            counts_for: 36,
            ends: vec![End::Current("db")],
            restarts: Vec::new(),
            wake: Wake::Schedule,
            vaults: vec!["db"],
            stuck: Vec::new(),
            prompt: Vec::new(),
        }
    }

    fn before(mut self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.before.extend(acts);
        self
    }

    fn at(mut self, seconds: u64, act: Act) -> Self {
        self.script.push((seconds, act));
        self
    }

    fn counts_for(mut self, seconds: u64) -> Self {
        self.counts_for = seconds;
        self
    }

    fn ends(mut self, ends: impl IntoIterator<Item = End>) -> Self {
        self.ends = ends.into_iter().collect();
        self
    }

    fn restarts(mut self, workload: &'static str, times: usize) -> Self {
        self.restarts.push((workload, times));
        self
    }

    fn prompt(mut self, workload: &'static str, from: u64) -> Self {
        self.prompt.push((workload, from));
        self
    }

    fn wakes_by(mut self, wake: Wake) -> Self {
        self.wake = wake;
        self
    }
}

/// The resource that nearly every scenario is about.
fn db() -> Built {
    build::fvs(NS, "db").through("conn").vault("db").every(EVERY)
}

/// `db` with one workload.
fn db_and_api() -> Built {
    db().restarts("Deployment", "api")
}

fn api() -> Act {
    Act::Put(build::deployment(NS, "api"))
}

fn worker() -> Act {
    Act::Put(build::deployment(NS, "worker"))
}

/// A resource that is synced with content A, and an operator at rest.
fn synced(resource: Built) -> Vec<Act> {
    vec![Act::Upstream("db", 'A'), Act::Start(ONE), Act::Put(resource), Act::Wait(2)]
}

/// An edit of the resource that changes nothing, so that it is looked at now.
fn nudge(turn: u64) -> Act {
    Act::Change(Kind::Resource, "db", serde_json::json!({ "spec": { "refreshInterval": format!("{}s", 30 + turn) } }))
}

/// Every scenario there is.
pub fn all() -> Vec<Scenario> {
    [creation::all(), upgrade::all(), rotation::all(), deletion::all(), foreign::all(), replicas::all()].concat()
}
