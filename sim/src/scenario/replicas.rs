//! Two operators at once: overlapping as a lease would never let them, and with a lease.
//!
//! In the first kind both lead whatever happens, so that nothing but the protocol stands between them; what comes late is
//! the calls of either, by the plan. In the second kind they stand for election.

use super::{ONE, Scenario, TWO, api, db_and_api, nudge, worker};
use crate::act::{Act, Kind};

pub(super) fn all() -> Vec<Scenario> {
    let both = || db_and_api().restarts("Deployment", "worker");
    let overlap = |name, about| {
        Scenario::new(name, about)
            .before([Act::Upstream("db", 'A'), api(), worker(), Act::Start(ONE), Act::Put(both()), Act::Wait(2)])
            .at(0, Act::Upstream("db", 'B'))
            .at(0, Act::Start(TWO))
            .at(0, nudge(1))
    };
    let elected = |name, about| {
        Scenario::new(name, about)
            .before([Act::Upstream("db", 'A'), api(), worker(), Act::Stand(ONE), Act::Put(both()), Act::Wait(3)])
            .before([Act::Stand(TWO), Act::Wait(3)])
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .restarts("api", 1)
            .restarts("worker", 1)
    };
    vec![
        overlap("two-leaders", "both rotate").counts_for(4).restarts("api", 1).restarts("worker", 1),
        overlap("two-leaders-a-b-a", "both rotate, there and back")
            .at(2, Act::Upstream("db", 'A'))
            .at(2, nudge(2))
            .counts_for(4)
            .restarts("api", 2)
            .restarts("worker", 2),
        overlap("two-leaders-a-b-c", "both rotate, twice")
            .at(2, Act::Upstream("db", 'C'))
            .at(2, nudge(2))
            .counts_for(4)
            .restarts("api", 2)
            .restarts("worker", 2),
        overlap("two-leaders-secret-deleted", "both rotate, and somebody deletes the Secret")
            .at(2, Act::Delete(Kind::Secret, "db"))
            .counts_for(4)
            .restarts("api", 1)
            .restarts("worker", 1),
        Scenario::new("two-leaders-in-debt", "both retry a debt while content goes on")
            .before([Act::Upstream("db", 'A'), api(), Act::Start(ONE), Act::Put(both()), Act::Wait(2)])
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(1, Act::Start(TWO))
            .at(4, Act::Upstream("db", 'C'))
            .at(4, nudge(2))
            .at(6, worker())
            .counts_for(16)
            .restarts("api", 2)
            .restarts("worker", 1),
        Scenario::new("two-leaders-upgrade", "both start on what the Go operator left, and content has changed")
            .before([Act::Upstream("db", 'A'), api(), worker(), Act::Put(both())])
            .before([Act::GoTarget("db", 'A'), Act::GoStatus("db", None), Act::Upstream("db", 'B')])
            .at(0, Act::Start(ONE))
            .at(0, Act::Start(TWO))
            .counts_for(4)
            .restarts("api", 1)
            .restarts("worker", 1),
        Scenario::new("two-leaders-first-key", "two make the operator key at once, and then content changes")
            .before([Act::Upstream("db", 'A'), api(), worker()])
            .at(0, Act::Start(ONE))
            .at(0, Act::Start(TWO))
            .at(0, Act::Put(both()))
            .at(2, Act::Upstream("db", 'B'))
            .at(2, nudge(1))
            .counts_for(4)
            .restarts("api", 1)
            .restarts("worker", 1),
        Scenario::new("two-leaders-two-keys", "the operator key is lost, so that the second to start has another one")
            .before([Act::Upstream("db", 'A'), api(), worker(), Act::Start(ONE), Act::Put(both()), Act::Wait(2)])
            .before([Act::LoseKey])
            .at(0, Act::Start(TWO))
            .at(1, Act::Upstream("db", 'B'))
            .at(1, nudge(1))
            .counts_for(4)
            .restarts("api", 1)
            .restarts("worker", 1),
        Scenario::new("key-lost-and-handover", "the operator key is lost, and who takes over has another one")
            .before([Act::Upstream("db", 'A'), api(), worker(), Act::Stand(ONE), Act::Put(both()), Act::Wait(3)])
            .before([Act::LoseKey, Act::Stand(TWO), Act::Wait(3)])
            .at(0, Act::Stop(ONE))
            .at(2, Act::Upstream("db", 'B'))
            .at(2, nudge(1))
            .counts_for(4)
            .restarts("api", 1)
            .restarts("worker", 1),
        elected("lease", "one leads and rotates, the other stands by").counts_for(7),
        elected("handover-by-stop", "the leader is asked to stop during a rotation")
            .at(0, Act::Stop(ONE))
            .counts_for(4),
        elected("handover-by-kill", "the leader is killed during a rotation").at(0, Act::Kill(ONE)).counts_for(20),
    ]
}
