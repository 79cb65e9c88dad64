//! What the Go operator leaves behind, in every state that its marks can be in. An operator starts on it.

use super::{ONE, Scenario, api, db_and_api, worker};
use crate::act::{Act, Kind};

/// Both workloads, the resource, and its target with this content under the Go operator's hash.
fn left(target: char, recorded: Option<char>) -> Vec<Act> {
    vec![
        api(),
        worker(),
        Act::Put(db_and_api().restarts("Deployment", "worker")),
        Act::GoTarget("db", target),
        Act::GoStatus("db", recorded),
    ]
}

fn marked(workload: &'static str, letter: char) -> Act {
    Act::GoMark(Kind::Deployment, workload, "db", letter)
}

pub(super) fn all() -> Vec<Scenario> {
    let upgrade = |name, about, upstream: char| {
        Scenario::new(name, about).before([Act::Upstream("db", 'A'), Act::Upstream("db", upstream)]).counts_for(4)
    };
    let starts = |scenario: Scenario| scenario.at(0, Act::Start(ONE));
    vec![
        starts(upgrade("upgrade-unrecorded", "no lastRolloutHash, nothing changed", 'A').before(left('A', None)))
            .restarts("api", 0)
            .restarts("worker", 0),
        starts(
            upgrade("upgrade-settled", "lastRolloutHash is the target's, and the marks are", 'A')
                .before(left('A', Some('A')))
                .before([marked("api", 'A'), marked("worker", 'A')]),
        )
        .restarts("api", 0)
        .restarts("worker", 0),
        starts(
            upgrade("upgrade-owed", "the target was changed and nothing restarted", 'B')
                .before(left('B', Some('A')))
                .before([marked("api", 'A'), marked("worker", 'A')]),
        )
        .restarts("api", 1)
        .restarts("worker", 1),
        starts(
            upgrade("upgrade-half-paid", "the target was changed and one of two workloads restarted", 'B')
                .before(left('B', Some('A')))
                .before([marked("api", 'B'), marked("worker", 'A')]),
        )
        .restarts("api", 0)
        .restarts("worker", 1),
        starts(
            upgrade("upgrade-marks-on-some", "all was recorded, and one of two workloads carries no mark", 'A')
                .before(left('A', Some('A')))
                .before([marked("api", 'A')]),
        )
        .restarts("api", 0)
        .restarts("worker", 0),
        starts(
            upgrade(
                "upgrade-owed-marks-on-some",
                "one of two workloads was restarted, the other never had a mark",
                'B',
            )
            .before(left('B', Some('A')))
            .before([marked("api", 'B')]),
        )
        .restarts("api", 0)
        .restarts("worker", 1),
        starts(
            upgrade("upgrade-secret-missing", "the target is gone; the marks tell what it was", 'A')
                .before(left('A', Some('A')))
                .before([marked("api", 'A'), Act::Delete(Kind::Secret, "db")]),
        )
        .restarts("api", 0)
        .restarts("worker", 0),
        starts(
            upgrade("upgrade-secret-missing-unrecorded", "the target is gone and nothing is on record", 'A')
                .before(left('A', None))
                .before([Act::Delete(Kind::Secret, "db")]),
        )
        .restarts("api", 0)
        .restarts("worker", 0),
        starts(
            upgrade("upgrade-and-change", "nothing is on record, and content changed meanwhile", 'B')
                .before(left('A', None))
                .before([marked("api", 'A')]),
        )
        .restarts("api", 1)
        .restarts("worker", 1),
        starts(
            upgrade("upgrade-settled-and-change", "all was recorded, and content changed meanwhile", 'B')
                .before(left('A', Some('A')))
                .before([marked("api", 'A'), marked("worker", 'A')]),
        )
        .restarts("api", 1)
        .restarts("worker", 1),
    ]
}
