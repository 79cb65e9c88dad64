//! What is not ours stays as it is, and what is stuck holds nobody else up.

use ferrvault_testkit::build;

use super::{EVERY, ONE, Scenario, Wake, api, db_and_api, nudge, synced};
use crate::act::{Act, Kind, NS};
use crate::check::End;

pub(super) fn all() -> Vec<Scenario> {
    let theirs = || Act::Put(build::secret(NS, "db").key("USER", "somebody"));
    let refused = |name, about, acts: &[Act]| {
        Scenario::new(name, about)
            .before([Act::Upstream("db", 'A'), api()])
            .before(acts.to_vec())
            .before([Act::Start(ONE), Act::Wait(2)])
            .at(0, Act::Put(db_and_api()))
            .counts_for(2)
            .ends([End::Refused("db", "TargetConflict")])
            .wakes_by(Wake::Nothing)
            .restarts("api", 0)
    };
    let slow = build::fvs(NS, "slow").through("conn").vault("slow").every(EVERY);
    vec![
        refused("foreign-target", "the target is somebody's own Secret", &[theirs()]),
        refused(
            "foreign-owner",
            "the target belongs to another object",
            &[theirs(), Act::Give(Kind::Secret, "db", Kind::Deployment, "api")],
        ),
        Scenario {
            stuck: vec!["slow"],
            ..Scenario::new("stuck-neighbour", "FerrVault never answers about another vault of the same connection")
                .before([api(), Act::Upstream("slow", 'A'), Act::Stall("slow")])
                .before(synced(db_and_api()))
                .before([Act::Put(slow), Act::Wait(2)])
                .at(0, Act::Upstream("db", 'B'))
                .at(0, nudge(1))
                .counts_for(2)
                .restarts("api", 1)
                .prompt("api", 0)
        },
    ]
}
