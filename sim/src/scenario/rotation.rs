//! Content changes: once, twice, back again, with one workload or many, with workloads that are not there yet, and under
//! everything that people and tools do meanwhile.

use ferrvault_testkit::build;
use serde_json::json;

use super::{Scenario, Wake, api, db, db_and_api, nudge, synced, worker};
use crate::act::{Act, Kind, NS, SEALED};
use crate::check::End;

pub(super) fn all() -> Vec<Scenario> {
    let api_and_worker = || db_and_api().restarts("Deployment", "worker");
    // `api` is there, `worker` is not.
    let half = |name, about| Scenario::new(name, about).before([api()]).before(synced(api_and_worker()));
    let whole = |name, about| Scenario::new(name, about).before([api()]).before(synced(db_and_api()));
    vec![
        whole("rotation", "content changes; one workload")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .counts_for(2)
            .restarts("api", 1),
        whole("rotation-by-schedule", "content changes and nobody says so")
            .at(0, Act::Upstream("db", 'B'))
            .restarts("api", 1),
        Scenario::new("rotation-of-three-kinds", "three kinds of workload, chosen keys, a transform")
            .before([api(), Act::Put(build::stateful_set(NS, "store")), Act::Put(build::daemon_set(NS, "agent"))])
            .before(synced(
                db_and_api()
                    .restarts("StatefulSet", "store")
                    .restarts("DaemonSet", "agent")
                    .names(&["PASSWORD", "USER"])
                    .transform(json!({ "type": "prefix", "value": "DB_" })),
            ))
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .counts_for(2)
            .restarts("api", 1)
            .restarts("store", 1)
            .restarts("agent", 1),
        whole("unchanged", "a look that finds nothing new").at(0, nudge(1)).counts_for(2).restarts("api", 0),
        half("missing-workload", "one workload appears forty seconds later")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(40, worker())
            .counts_for(62)
            .restarts("api", 1)
            .restarts("worker", 1)
            .prompt("worker", 40),
        half("a-b-a", "content goes back while a restart is owed")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(4, Act::Upstream("db", 'A'))
            .at(4, nudge(2))
            .at(9, worker())
            .counts_for(24)
            .restarts("api", 2)
            .restarts("worker", 1),
        whole("a-b-a-at-once", "content goes back within a second")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(1, Act::Upstream("db", 'A'))
            .at(1, nudge(2))
            .counts_for(4)
            .restarts("api", 2),
        half("a-b-c", "content goes on while a restart is owed")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(4, Act::Upstream("db", 'C'))
            .at(4, nudge(2))
            .at(9, worker())
            .counts_for(24)
            .restarts("api", 2)
            .restarts("worker", 1),
        half("list-edited", "during a debt one workload leaves the list and another joins it")
            .before([Act::Put(build::deployment(NS, "other"))])
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(
                4,
                Act::Change(
                    Kind::Resource,
                    "db",
                    json!({ "spec": { "rolloutRestart": [
                        { "kind": "Deployment", "name": "api" }, { "kind": "Deployment", "name": "other" },
                    ] } }),
                ),
            )
            .at(6, worker())
            .counts_for(8)
            .restarts("api", 1)
            .restarts("other", 1)
            .restarts("worker", 0),
        Scenario::new("listed-twice", "the same workload stands in the list twice")
            .before([api()])
            .before(synced(db_and_api().restarts("Deployment", "api")))
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .counts_for(2)
            .restarts("api", 1),
        two_on_one(Scenario::new("two-on-one", "two resources restart one workload; both change"), db_and_api())
            .at(0, Act::Upstream("db", 'B'))
            .at(0, Act::Upstream("more", 'B'))
            .at(0, nudge(1))
            .at(0, Act::Change(Kind::Resource, "more", json!({ "spec": { "refreshInterval": "31s" } })))
            .counts_for(2)
            .restarts("api", 2),
        two_on_one(
            Scenario::new("two-on-one-in-debt", "the second changes while the first still owes another workload"),
            db_and_api().restarts("Deployment", "worker"),
        )
        .at(0, Act::Upstream("db", 'B'))
        .at(0, nudge(1))
        .at(4, Act::Upstream("more", 'B'))
        .at(4, Act::Change(Kind::Resource, "more", json!({ "spec": { "refreshInterval": "31s" } })))
        .at(9, worker())
        .counts_for(24)
        .restarts("api", 2)
        .restarts("worker", 1),
        whole("target-renamed", "the target gets another name")
            .at(0, Act::Change(Kind::Resource, "db", json!({ "spec": { "target": { "name": "db-new" } } })))
            .counts_for(2)
            .restarts("api", 0),
        half("target-renamed-in-debt", "the target gets another name while a restart is owed")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(4, Act::Change(Kind::Resource, "db", json!({ "spec": { "target": { "name": "db-new" } } })))
            .at(9, worker())
            .counts_for(24)
            .restarts("api", 1)
            .restarts("worker", 1),
        half("workload-recreated", "a restarted workload is made anew while another is owed")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(4, Act::Delete(Kind::Deployment, "api"))
            .at(5, api())
            .at(9, worker())
            .counts_for(24)
            .restarts("api", 1)
            .restarts("worker", 1),
        Scenario::new("paused", "a Deployment on pause takes its mark as well")
            .before([Act::Put(build::deployment(NS, "api").set(&["spec", "paused"], true))])
            .before(synced(db_and_api()))
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .counts_for(2)
            .restarts("api", 1),
        Scenario::new("template-refused", "an admission policy refuses one of two templates, and lets go later")
            .before([Act::Put(build::deployment(NS, "api").labelled(SEALED, "true")), worker()])
            .before(synced(api_and_worker()))
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(6, Act::Change(Kind::Deployment, "api", json!({ "metadata": { "labels": { SEALED: null } } })))
            .counts_for(20)
            .restarts("api", 1)
            .restarts("worker", 1),
        whole("mark-stripped", "a tool strips the mark, long after it was recorded")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(3, Act::Strip(Kind::Deployment, "api"))
            .at(4, nudge(2))
            .counts_for(6)
            .restarts("api", 1),
        half("mark-stripped-in-debt", "a tool strips the mark while another restart is owed")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(4, Act::Strip(Kind::Deployment, "api"))
            .at(9, worker())
            .counts_for(24)
            .restarts("api", 1)
            .restarts("worker", 1),
        whole("mark-stripped-at-once", "a tool strips the mark before it can be recorded")
            .before([Act::StripOnSight(Kind::Deployment, "api", 1)])
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .counts_for(2)
            .restarts("api", 1),
        Scenario::new("no-schedule", "the interval is 0s, so only an edit brings a look")
            .before([api()])
            .before(synced(db().every("0s").restarts("Deployment", "api")))
            .at(0, Act::Upstream("db", 'B'))
            .at(1, Act::Change(Kind::Resource, "db", json!({ "spec": { "refreshInterval": "0h" } })))
            .counts_for(3)
            .wakes_by(Wake::Edit)
            .restarts("api", 1),
        Scenario::new(
            "no-schedule-in-debt",
            "the interval is 0s, and a restart is owed to a workload that appears later",
        )
        .before([api()])
        .before(synced(db_and_api().every("0s").restarts("Deployment", "worker")))
        .at(0, Act::Upstream("db", 'B'))
        .at(0, Act::Change(Kind::Resource, "db", json!({ "spec": { "refreshInterval": "0h" } })))
        .at(9, worker())
        .counts_for(24)
        .wakes_by(Wake::Edit)
        .restarts("api", 1)
        .restarts("worker", 1),
        Scenario::new("key-missing", "a wanted key is gone from the vault and comes back with new content")
            .before([api()])
            .before(synced(db_and_api().names(&["USER", "PASSWORD"])))
            .at(0, Act::Unset("db", "PASSWORD"))
            .at(0, nudge(1))
            .at(3, Act::Upstream("db", 'B'))
            .at(3, nudge(2))
            .counts_for(5)
            .restarts("api", 1),
        whole("key-dropped", "the vault loses one of its keys for good")
            .at(0, Act::Unset("db", "USER"))
            .at(0, nudge(1))
            .counts_for(2)
            .restarts("api", 1),
        whole("vault-emptied", "a vault loses every key and is filled again")
            .at(0, Act::Unset("db", "PASSWORD"))
            .at(0, Act::Unset("db", "USER"))
            .at(0, nudge(1))
            .at(3, Act::Upstream("db", 'B'))
            .at(3, nudge(2))
            .counts_for(5)
            .restarts("api", 1),
        whole("suspended", "a resource is suspended while content changes, and goes on later")
            .at(0, Act::Change(Kind::Resource, "db", json!({ "spec": { "suspend": true } })))
            .at(1, Act::Upstream("db", 'B'))
            .at(3, Act::Change(Kind::Resource, "db", json!({ "spec": { "suspend": false } })))
            .counts_for(5)
            .restarts("api", 1),
        half("suspended-in-debt", "a resource is suspended while a restart is owed, and goes on later")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(4, Act::Change(Kind::Resource, "db", json!({ "spec": { "suspend": true } })))
            .at(6, worker())
            .at(12, Act::Change(Kind::Resource, "db", json!({ "spec": { "suspend": false } })))
            .counts_for(14)
            .restarts("api", 1)
            .restarts("worker", 1),
        whole("token-rotated", "the token is changed, and then content")
            .at(0, Act::Token(2))
            .at(2, Act::Upstream("db", 'B'))
            .at(2, nudge(1))
            .counts_for(4)
            .restarts("api", 1),
    ]
}

/// Two resources that restart `api`, both synced.
fn two_on_one(scenario: Scenario, first: build::Built) -> Scenario {
    let second = build::fvs(NS, "more").through("conn").vault("more").every(super::EVERY).restarts("Deployment", "api");
    let scenario = scenario
        .before([api(), Act::Upstream("more", 'A')])
        .before(synced(first))
        .before([Act::Put(second), Act::Wait(2)])
        .ends([End::Current("db"), End::Current("more")]);
    Scenario { vaults: vec!["db", "more"], ..scenario }
}
