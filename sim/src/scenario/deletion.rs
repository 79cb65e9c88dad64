//! Things are deleted or edited by hand: the Secret, its marks, the resource, the connection, the namespace, the key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ferrvault_api::marks;
use serde_json::{Map, Value, json};

use super::{ONE, Scenario, Wake, api, db_and_api, nudge, synced, worker};
use crate::act::{self, Act, Kind};
use crate::check::End;

/// The data of a Secret with the content of this letter.
fn data(letter: char) -> Value {
    let encoded = act::content(letter).0.into_iter().map(|(key, value)| (key, STANDARD.encode(value.expose()).into()));
    Value::Object(encoded.collect::<Map<_, _>>())
}

fn annotation(text: Option<&str>) -> Act {
    Act::Change(Kind::Secret, "db", json!({ "metadata": { "annotations": { marks::CONTENT_HASH: text } } }))
}

pub(super) fn all() -> Vec<Scenario> {
    let whole = |name, about| Scenario::new(name, about).before([api()]).before(synced(db_and_api()));
    let half = |name, about| {
        Scenario::new(name, about)
            .before([api()])
            .before(synced(db_and_api().restarts("Deployment", "worker")))
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
    };
    vec![
        half("deletion-mid-rollout", "the resource is deleted while a restart is owed")
            .at(4, Act::Delete(Kind::Resource, "db"))
            .at(6, worker())
            .counts_for(8)
            .ends([End::Gone("db")])
            .wakes_by(Wake::Nothing)
            .restarts("api", 1)
            .restarts("worker", 0),
        whole("recreation", "the resource is deleted and made anew")
            .at(0, Act::Delete(Kind::Resource, "db"))
            .at(2, Act::Put(db_and_api()))
            .counts_for(4)
            .restarts("api", 0),
        whole("recreation-at-once", "the resource is made anew while its former target is still there")
            .at(0, Act::Delete(Kind::Resource, "db"))
            .at(0, Act::Put(db_and_api()))
            .counts_for(4)
            .restarts("api", 0),
        whole("secret-deleted", "somebody deletes the Secret")
            .at(0, Act::Delete(Kind::Secret, "db"))
            .counts_for(2)
            .restarts("api", 0),
        Scenario::new("secret-deleted-unscheduled", "somebody deletes the Secret, and no schedule brings a look")
            .before([api()])
            .before(synced(db_and_api().every("0s")))
            .at(0, Act::Delete(Kind::Secret, "db"))
            .counts_for(2)
            .wakes_by(Wake::Edit)
            .restarts("api", 0),
        half("secret-deleted-in-debt", "somebody deletes the Secret while a restart is owed")
            .at(4, Act::Delete(Kind::Secret, "db"))
            .at(9, worker())
            .counts_for(24)
            .restarts("api", 1)
            .restarts("worker", 1),
        whole("secret-deleted-and-changed", "somebody deletes the Secret in the moment in which content changes")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, Act::Delete(Kind::Secret, "db"))
            .counts_for(2)
            .restarts("api", 1),
        half("secret-deleted-and-back", "the Secret is deleted and content goes back while a restart is owed")
            .at(4, Act::Upstream("db", 'A'))
            .at(4, Act::Delete(Kind::Secret, "db"))
            .at(9, worker())
            .counts_for(24)
            .restarts("api", 2)
            .restarts("worker", 1),
        whole("secret-edited", "somebody edits the Secret")
            .at(0, Act::Change(Kind::Secret, "db", json!({ "data": { "PASSWORD": "Y2FuYXJ5LWVkaXRlZA==" } })))
            .counts_for(2)
            .restarts("api", 0),
        whole("secret-edited-ahead", "somebody writes into the Secret what FerrVault then turns to")
            .at(0, Act::Change(Kind::Secret, "db", json!({ "data": data('B') })))
            .at(0, Act::Upstream("db", 'B'))
            .counts_for(2)
            .restarts("api", 1),
        whole("version-stripped", "somebody strips the version off the Secret")
            .at(0, annotation(None))
            .counts_for(2)
            .restarts("api", 0),
        whole("version-edited", "somebody writes nonsense where the version was")
            .at(0, annotation(Some("nonsense")))
            .counts_for(2)
            .restarts("api", 0),
        half("version-stripped-in-debt", "somebody strips the version off the Secret while a restart is owed")
            .at(4, annotation(None))
            .at(9, worker())
            .counts_for(24)
            .restarts("api", 1)
            .restarts("worker", 1),
        whole("owner-stripped", "somebody removes the owner of the Secret")
            .at(0, Act::Change(Kind::Secret, "db", json!({ "metadata": { "ownerReferences": null } })))
            .counts_for(2)
            .restarts("api", 0),
        whole("namespace-deleted", "the namespace is deleted during a rotation")
            .at(0, Act::Upstream("db", 'B'))
            .at(0, nudge(1))
            .at(0, Act::Delete(Kind::Namespace, "default"))
            .counts_for(4)
            .ends([End::Gone("db")])
            .wakes_by(Wake::Nothing),
        whole("connection-deleted", "the connection is deleted under its resource, and then the resource")
            .at(0, Act::Delete(Kind::Connection, "conn"))
            .at(2, Act::Delete(Kind::Resource, "db"))
            .counts_for(4)
            .ends([End::Gone("db")])
            .wakes_by(Wake::Nothing)
            .restarts("api", 0),
        whole("key-lost", "the operator key is lost, and the operator starts anew")
            .before([Act::Stop(ONE), Act::LoseKey])
            .at(0, Act::Start(ONE))
            .counts_for(4)
            .restarts("api", 0),
        whole(
            "key-lost-and-changed",
            "the operator key is lost, and content has changed when the operator starts anew",
        )
        .before([Act::Stop(ONE), Act::LoseKey, Act::Upstream("db", 'B')])
        .at(0, Act::Start(ONE))
        .counts_for(4)
        .restarts("api", 1),
        whole(
            "key-unreadable",
            "what is in the place of the operator key is none; it is put back while content changes",
        )
        .before([Act::Stop(ONE), Act::SpoilKey])
        .at(0, Act::Start(ONE))
        .at(3, Act::Upstream("db", 'B'))
        .at(3, Act::MendKey)
        .counts_for(8)
        .restarts("api", 1),
        whole("key-unreadable-and-made-anew", "the operator key is spoilt, and in the end deleted")
            .before([Act::Stop(ONE), Act::SpoilKey])
            .at(0, Act::Start(ONE))
            .at(3, Act::LoseKey)
            .counts_for(8)
            .restarts("api", 0),
    ]
}
