//! What is put right without anybody noticing, and what is left alone whatever happens: edits by hand, the connection's
//! own token Secret, and content byte by byte.

use ferrvault_api::{FerrVaultSecret, marks};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::{self, TOKEN, restart};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::{Scene, same_data};
use ferrvault_e2e::world::World;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::register::{by_default, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    scenarios![by_default:
        whatever_is_edited_by_hand_on_the_target_is_put_back_and_nothing_restarts,
        what_others_put_on_the_target_stays,
        the_connections_own_token_secret_is_kept_without_an_owner,
        the_connections_own_token_secret_never_loses_its_token,
        of_a_part_or_of_nothing_no_target_is_made,
        transforms_are_exact_to_the_byte,
        without_a_schedule_only_changes_and_failures_cause_passes,
        a_name_listed_twice_is_asked_for_once_and_said,
    ]
}

async fn whatever_is_edited_by_hand_on_the_target_is_put_back_and_nothing_restarts(scene: &Scene) {
    scene.connect().await;
    scene.workload("Deployment", "web").await;
    let (a, b) = (fresh("a"), fresh("b"));
    scene.set(&[("A", &a), ("B", &b)]).await;
    scene.resource("shop", json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    let resource = scene.synced("shop").await;
    let wanted: [(&str, &[u8]); 2] = [("A", a.as_bytes()), ("B", b.as_bytes())];
    let version = scene.target("shop", &resource, &wanted).await;
    let other_version = json!({"metadata": {"annotations": {marks::CONTENT_HASH: null}}});
    for (what, edit) in [
        ("a value", json!({"stringData": {"A": "edited"}})),
        ("a key more", json!({"stringData": {"C": "added"}})),
        ("a key less", json!({"data": {"B": null}})),
        ("no data", json!({"data": null})),
        ("no owner", json!({"metadata": {"ownerReferences": null}})),
        ("no mark of whose it is", json!({"metadata": {"annotations": {marks::MANAGED_BY: null}}})),
        ("no version", other_version),
    ] {
        scene.edit::<Secret>("shop", edit).await;
        let restored = scene.target("shop", &resource, &wanted).await;
        assert_eq!(restored, version, "{what}");
    }
    scene.passes("shop", 2).await;
    assert_eq!(scene.restarts("Deployment", "web").await.0, 0);
    // Without its version and with other data nobody can tell what the pods run on: that counts as a change, once.
    let unknown = json!({"metadata": {"annotations": {marks::CONTENT_HASH: null}}, "stringData": {"B": "edited"}});
    scene.edit::<Secret>("shop", unknown).await;
    let version = scene.target("shop", &resource, &wanted).await;
    scene.restarted("Deployment", "web", 1, &resource, &version).await;
    // Edited to what upstream turns to right after: still a change, and the pods learn of it.
    let next = fresh("next");
    scene.edit::<Secret>("shop", json!({"stringData": {"A": next}})).await;
    scene.set(&[("A", &next)]).await;
    scene
        .until_it("shop", "has another version", |secret: &Secret| {
            same_data(secret, &[("A", next.as_bytes()), ("B", b.as_bytes())])?;
            let found = secret.metadata.annotations.as_ref().and_then(|all| all.get(marks::CONTENT_HASH)).cloned();
            found.filter(|found| *found != version).ok_or_else(|| "the same version".to_owned())
        })
        .await;
    let changed = scene.target("shop", &resource, &[("A", next.as_bytes()), ("B", b.as_bytes())]).await;
    scene.restarted("Deployment", "web", 2, &resource, &changed).await;
}

async fn what_others_put_on_the_target_stays(scene: &Scene) {
    scene.connect().await;
    let (first, second) = (fresh("first"), fresh("second"));
    scene.set(&[("K", &first)]).await;
    scene.resource("shop", json!({})).await;
    let resource = scene.synced("shop").await;
    scene.target("shop", &resource, &[("K", first.as_bytes())]).await;
    let theirs = json!({"metadata": {"labels": {"team": "b"}, "annotations": {"team.example/note": "kept"}}});
    scene.edit::<Secret>("shop", theirs).await;
    scene.set(&[("K", &second)]).await;
    scene.target("shop", &resource, &[("K", second.as_bytes())]).await;
    let secret = scene.get::<Secret>("shop").await;
    assert_eq!(secret.metadata.labels.unwrap()["team"], "b");
    assert_eq!(secret.metadata.annotations.unwrap()["team.example/note"], "kept");
}

async fn the_connections_own_token_secret_is_kept_without_an_owner(scene: &Scene) {
    let first = scene.connect().await;
    scene.set(&[("token", &first.token)]).await;
    // An owner reference from an earlier time, as a release without this guard left it.
    let created = scene.resource("tokens", json!({"target": {"name": "elsewhere"}})).await;
    let owner = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret", "name": "tokens",
                       "uid": created.metadata.uid, "controller": true, "blockOwnerDeletion": true});
    scene.edit::<Secret>(TOKEN, json!({"metadata": {"ownerReferences": [owner]}})).await;
    scene.edit::<FerrVaultSecret>("tokens", json!({"spec": {"target": {"name": TOKEN}}})).await;
    scene.synced("tokens").await;
    let unowned = |secret: &Secret| {
        let marked = secret.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(marks::CONTENT_HASH));
        if secret.metadata.owner_references.is_none() && marked {
            Ok(())
        } else {
            Err("not as it should be".to_owned())
        }
    };
    scene.until_it(TOKEN, "is kept without an owner", unowned).await;

    // A new token through FerrVault itself: it is written, and the next call is made with it.
    let second = scene.cluster.dev.token(&scene.vault()).await;
    scene.set(&[("token", &second.token)]).await;
    scene
        .until_it(TOKEN, "holds the new token", |secret: &Secret| {
            same_data(secret, &[("token", second.token.as_bytes())])
        })
        .await;
    scene.cluster.dev.revoke(&first).await;
    let now = scene.passes("tokens", 2).await;
    let ready = objects::condition(objects::conditions(&now), "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Synced"), "{}", ready.message);
    assert!(scene.get::<Secret>(TOKEN).await.metadata.owner_references.is_none());
}

async fn the_connections_own_token_secret_never_loses_its_token(scene: &Scene) {
    let token = scene.connect().await;
    scene.set(&[("SOMETHING_ELSE", &fresh("value"))]).await;
    scene.resource("tokens", json!({"target": {"name": TOKEN}})).await;
    let refused = scene.until_condition("tokens", "Ready", "False", "TokenKeyMissing").await;
    let told = &objects::condition(objects::conditions(&refused), "Ready").unwrap().message;
    assert!(
        told.contains(r#"the answer has no key "token""#) && told.contains("choose another spec.target.name"),
        "{told}"
    );
    let secret = scene.get::<Secret>(TOKEN).await;
    same_data(&secret, &[("token", token.token.as_bytes())]).unwrap();
    // An empty one is none.
    scene.set(&[("token", "")]).await;
    scene.passes("tokens", 2).await;
    let secret = scene.get::<Secret>(TOKEN).await;
    same_data(&secret, &[("token", token.token.as_bytes())]).unwrap();
    scene.set(&[("token", &token.token)]).await;
    scene.synced("tokens").await;
}

async fn of_a_part_or_of_nothing_no_target_is_made(scene: &Scene) {
    scene.connect().await;
    scene.resource("all", json!({})).await;
    let told = |resource: &FerrVaultSecret| {
        objects::condition(objects::conditions(resource), "Ready").unwrap().message.clone()
    };
    let empty = scene.until_condition("all", "Ready", "False", "EmptyAnswer").await;
    assert!(told(&empty).contains(r#"Secret "all" is not made"#), "{}", told(&empty));
    scene.set(&[("A", &fresh("a"))]).await;
    scene.synced("all").await;
    scene.resource("two", json!({"selector": {"names": ["B", "A"]}})).await;
    let partial = scene.until_condition("two", "Ready", "False", "MissingKeys").await;
    assert!(
        told(&partial).contains("does not have: B") && told(&partial).contains("is not made"),
        "{}",
        told(&partial)
    );
    scene.passes("two", 2).await;
    assert!(scene.find::<Secret>("two").await.is_none());
    scene.set(&[("B", &fresh("b"))]).await;
    scene.synced("two").await;
    let made = scene.get::<Secret>("two").await.data.unwrap();
    assert_eq!(made.keys().collect::<Vec<_>>(), ["A", "B"]);
}

async fn transforms_are_exact_to_the_byte(scene: &Scene) {
    scene.connect().await;
    let object = r#"{"host":"db.example","port":12345678901234567890123,"ratio":0.10,"tls":{"on":true,"ca":null},"hosts":["a", "b"]}"#;
    let text = "  leading, trailing and \u{1F512}\r\n\t";
    scene
        .set(&[
            ("RAW", text),
            ("EMPTY", ""),
            // Standard and URL-safe, neither of them text.
            ("CERT", "AAH//g=="),
            ("CERT_URL", "-_8="),
            ("DB", object),
        ])
        .await;
    let transforms = json!([
        {"type": "base64Decode", "keys": ["CERT", "CERT_URL"]},
        {"type": "jsonExpand", "key": "DB"},
        {"type": "jsonExpand", "key": "NOT_THERE"},
        {"type": "rename", "from": "RAW", "to": "TEXT"},
        {"type": "rename", "from": "NOT_THERE", "to": "EITHER"},
        {"type": "prefix", "value": "APP_"},
        {"type": "suffix", "value": ".v1"},
    ]);
    scene.resource("shop", json!({"transforms": transforms, "target": {"type": "example.com/bundle"}})).await;
    let resource = scene.synced("shop").await;
    let wanted: [(&str, &[u8]); 10] = [
        ("APP_TEXT.v1", text.as_bytes()),
        ("APP_EMPTY.v1", b""),
        ("APP_CERT.v1", b"\x00\x01\xff\xfe"),
        ("APP_CERT_URL.v1", b"\xfb\xff"),
        ("APP_DB_HOST.v1", b"db.example"),
        ("APP_DB_PORT.v1", b"12345678901234567890123"),
        ("APP_DB_RATIO.v1", b"0.10"),
        ("APP_DB_TLS_ON.v1", b"true"),
        ("APP_DB_TLS_CA.v1", b""),
        ("APP_DB_HOSTS.v1", br#"["a","b"]"#),
    ];
    scene.target("shop", &resource, &wanted).await;
    assert_eq!(scene.get::<Secret>("shop").await.type_.as_deref(), Some("example.com/bundle"));
    let version = resource.status.unwrap().content_hash;
    let now = scene.passes("shop", 2).await;
    assert_eq!(now.status.unwrap().content_hash, version, "the same answer is the same content");
}

async fn without_a_schedule_only_changes_and_failures_cause_passes(scene: &Scene) {
    scene.connect().await;
    let (first, second) = (fresh("first"), fresh("second"));
    scene.set(&[("K", &first)]).await;
    scene.cluster.dev.spoil(&scene.name, json!({"kind": "respond", "status": 503})).await;
    scene.resource("never", json!({"refreshInterval": "0s"})).await;
    scene.until_condition("never", "Ready", "False", "Unreachable").await;
    // Failed once is not failed for ever.
    scene.cluster.dev.heal(&scene.name).await;
    scene.synced("never").await;
    let resource = scene.get::<FerrVaultSecret>("never").await;
    scene.target("never", &resource, &[("K", first.as_bytes())]).await;

    // Another one beside it sees the new value, several times over; this one does not look.
    scene.set(&[("K", &second)]).await;
    scene.resource("often", json!({})).await;
    scene.synced("often").await;
    scene.passes("often", 3).await;
    same_data(&scene.get::<Secret>("never").await, &[("K", first.as_bytes())]).unwrap();
    scene.edit::<FerrVaultSecret>("never", json!({"spec": {"selector": {"names": ["K"]}}})).await;
    scene.target("never", &resource, &[("K", second.as_bytes())]).await;
}

async fn a_name_listed_twice_is_asked_for_once_and_said(scene: &Scene) {
    scene.connect().await;
    let value = fresh("value");
    scene.set(&[("A", &value), ("B", "not asked for")]).await;
    scene.resource("shop", json!({"selector": {"names": ["A", "A"]}})).await;
    let resource = scene.synced("shop").await;
    let told = &objects::condition(objects::conditions(&resource), "Ready").unwrap().message;
    assert!(told.contains("spec.selector.names lists A more than once"), "{told}");
    scene.target("shop", &resource, &[("A", value.as_bytes())]).await;
    let asked = scene.cluster.dev.asked(0).await;
    let reveal =
        asked.iter().find(|it| it.vault.as_ref() == Some(&scene.name) && it.route.ends_with("/reveal")).unwrap();
    assert_eq!(reveal.names.as_deref(), Some(&["A".to_owned()][..]), "{reveal:?}");
    assert_eq!(json!(resource.status.unwrap().synced_keys), Value::from(vec!["A"]));
}
