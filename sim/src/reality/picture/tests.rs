use serde_json::json;

use super::*;

fn secret(uid: &str, version: &str, value: &str) -> Value {
    json!({
        "kind": "Secret",
        "metadata": {
            "name": "db", "uid": uid, "resourceVersion": uid, "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "ferrvault.com/content-hash": version },
        },
        "data": { "PASSWORD": value },
    })
}

fn workload(uid: &str, version: &str) -> Value {
    let mark = format!("ferrvault.com/content-hash.{uid}");
    json!({
        "kind": "Deployment",
        "metadata": { "name": "api", "annotations": { "deployment.kubernetes.io/revision": "2" } },
        "spec": { "replicas": 1, "template": { "metadata": { "annotations": {
            mark: version, "ferrvault.com/restarted-at": "2026-01-01T00:00:00Z",
        } } } },
    })
}

fn resource(uid: &str, version: &str, message: &str) -> Value {
    json!({
        "kind": "FerrVaultSecret",
        "metadata": { "name": "db", "uid": uid, "generation": 2 },
        "status": {
            "contentHash": version, "lastRolloutHash": version, "lastAttemptedAt": "2026-01-01T00:00:00Z",
            "conditions": [{ "message": message }],
        },
    })
}

fn seen(objects: Vec<Value>, namespace: &str) -> Seen {
    let stands_for = stands_for(namespace, &format!("{namespace}-system"), "http://127.0.0.1:4000");
    Seen { objects, stands_for, ..Seen::default() }
}

#[test]
fn what_differs_by_nature_makes_no_difference() {
    let first = |names: &mut Names| {
        names.picture(&seen(
            vec![
                secret("uid-s1", "v1.aa", "QQ=="),
                workload("uid-r1", "v1.aa"),
                resource("uid-r1", "v1.aa", "since 2026-01-01T00:00:00Z, in default"),
            ],
            "default",
        ))
    };
    let second = |names: &mut Names| {
        let mut secret = secret("uid-s2", "v1.bb", "QQ==");
        secret["metadata"]["creationTimestamp"] = json!("2027-07-07T00:00:00Z");
        let resource = resource("uid-r2", "v1.bb", "since 2027-07-07T00:00:00Z, in play");
        names.picture(&seen(vec![resource, secret, workload("uid-r2", "v1.bb")], "play"))
    };
    let (here, there) = (first(&mut Names::default()), second(&mut Names::default()));
    assert_eq!(here.differences(&there), []);
    assert_eq!(here.objects(), 3);
}

#[test]
fn everything_else_does_and_no_value_is_shown() {
    let picture = |objects: Vec<Value>| Names::default().picture(&seen(objects, "default"));
    let before = [secret("uid-s", "v1.aa", "QQ=="), workload("uid-r", "v1.aa"), resource("uid-r", "v1.aa", "well")];
    let changed = |index: usize, object: Value| {
        let mut after = before.to_vec();
        after[index] = object;
        picture(before.to_vec()).differences(&picture(after))
    };
    for (index, object, place) in [
        (0, secret("uid-s", "v1.aa", "Qg=="), "Secret db/data/PASSWORD"),
        (
            1,
            workload("uid-r", "v1.bb"),
            "Deployment api/template/ferrvault.com/content-hash.<uid of FerrVaultSecret db 1>",
        ),
        (2, resource("uid-r", "v1.aa", "not well"), "FerrVaultSecret db/status/conditions/0/message"),
        (
            2,
            json!({ "kind": "FerrVaultSecret", "metadata": { "name": "db", "uid": "uid-r" } }),
            "FerrVaultSecret db/metadata/generation",
        ),
    ] {
        let differences = changed(index, object);
        assert!(differences.iter().any(|difference| difference.place == place), "{place}: {differences:?}");
        assert!(differences.iter().all(|difference| !difference.to_string().contains("Qg==")), "{differences:?}");
    }
}

#[test]
fn a_version_that_comes_back_is_told_from_a_new_one() {
    let mut here = Names::default();
    let mut there = Names::default();
    let look =
        |names: &mut Names, version: &str| names.picture(&seen(vec![secret("uid-s", version, "QQ==")], "default"));
    assert_eq!(look(&mut here, "v1.aa").differences(&look(&mut there, "v1.xx")), []);
    assert_eq!(look(&mut here, "v1.bb").differences(&look(&mut there, "v1.yy")), []);
    // A new one here, the first one there.
    assert_eq!(look(&mut here, "v1.cc").differences(&look(&mut there, "v1.xx")).len(), 1);
}

#[test]
fn restarts_count_and_others_events_do_not() {
    let event = |controller: &str| json!({ "kind": "Event", "metadata": { "name": "e" }, "reportingController": controller, "reason": "Synced" });
    let picture = |events: Vec<Value>, restarts: usize, is_contested| {
        let restarts = [("api".to_owned(), restarts)].into();
        Names::default().picture(&Seen { objects: events, restarts, is_contested, ..Seen::default() })
    };
    let ours = || vec![event("ferrvault.com/operator")];
    assert_eq!(picture(vec![], 1, false).differences(&picture(vec![event("kubelet")], 1, false)), []);
    assert_eq!(picture(vec![], 1, false).differences(&picture(vec![], 2, false)).len(), 1);
    assert_eq!(picture(vec![], 1, false).differences(&picture(ours(), 1, false)).len(), 1);
    assert_eq!(picture(vec![], 1, true).differences(&picture(ours(), 1, true)), []);
}
