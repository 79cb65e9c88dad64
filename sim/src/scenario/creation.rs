//! How a resource begins: made new, laid over a Secret that is there, found again by an operator that starts.

use ferrvault_api::marks;
use ferrvault_testkit::build;

use super::{ONE, Scenario, api, db_and_api, synced};
use crate::act::{self, Act, NS};

pub(super) fn all() -> Vec<Scenario> {
    let adopted = |letter| {
        let mut secret = build::secret(NS, "db").annotated(marks::MANAGED_BY, marks::MANAGER);
        for (key, value) in act::content(letter).0 {
            secret = secret.key(&key, value.expose());
        }
        Act::Put(secret)
    };
    vec![
        Scenario::new("creation", "a resource is made; its workload runs already")
            .before([Act::Upstream("db", 'A'), api(), Act::Start(ONE), Act::Wait(2)])
            .at(0, Act::Put(db_and_api()))
            .counts_for(2)
            .restarts("api", 0),
        Scenario::new("adoption", "a resource is laid over a Secret that was handed over with the right content")
            .before([Act::Upstream("db", 'A'), api(), adopted('A'), Act::Start(ONE), Act::Wait(2)])
            .at(0, Act::Put(db_and_api()))
            .counts_for(2)
            .restarts("api", 0),
        Scenario::new("adoption-of-other-content", "the Secret that was handed over has other content")
            .before([Act::Upstream("db", 'B'), api(), adopted('A'), Act::Start(ONE), Act::Wait(2)])
            .at(0, Act::Put(db_and_api()))
            .counts_for(2)
            .restarts("api", 1),
        Scenario::new("warm-start", "an operator starts where everything is in order")
            .before([api()])
            .before(synced(db_and_api()))
            .before([Act::Stop(ONE)])
            .at(0, Act::Start(ONE))
            .counts_for(4)
            .restarts("api", 0),
        Scenario::new("start-after-a-change", "content changed while no operator ran")
            .before([api()])
            .before(synced(db_and_api()))
            .before([Act::Stop(ONE), Act::Upstream("db", 'B')])
            .at(0, Act::Start(ONE))
            .counts_for(4)
            .restarts("api", 1),
    ]
}
