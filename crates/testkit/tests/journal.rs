//! What a test can know about what happened: requests, writes, invariants, access; and that it is the same every time.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrvault_api::FerrVaultSecret;
use ferrvault_testkit::{ApiServer, Fault, Plan, Verb, build};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::json;

fn secrets(api: &ApiServer, who: &str) -> Api<Secret> {
    Api::namespaced(api.client_as(who), "default")
}

#[tokio::test(start_paused = true)]
async fn every_request_is_numbered_and_told_in_plain_words() {
    let api = ApiServer::default();
    api.apply(&build::fvs("default", "r"));
    api.set_plan(Plan::new().at(3, Fault::Refuse(503)));
    let secrets = secrets(&api, "operator-a");
    secrets.create(&PostParams::default(), &build::secret("default", "db").typed()).await.unwrap();
    let patch = Patch::Merge(json!({ "data": { "k": "YQ==" } }));
    secrets.patch("db", &PatchParams::default(), &patch).await.unwrap();
    secrets.get("db").await.unwrap_err();
    let resources = Api::<FerrVaultSecret>::all(api.client_as("operator-b"));
    resources.list(&ListParams::default()).await.unwrap();
    let resources = Api::<FerrVaultSecret>::namespaced(api.client_as("operator-b"), "default");
    resources.patch_status("r", &PatchParams::default(), &Patch::Merge(json!({ "status": {} }))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    secrets.delete("db", &DeleteParams::default()).await.unwrap();
    let story = [
        "     0.000s #1 CREATE secrets default/db by operator-a -> 201",
        "     0.000s #2 PATCH secrets default/db by operator-a -> 200",
        "     0.000s #3 GET secrets default/db by operator-a [refused with 503] -> 503",
        "     0.000s #4 LIST ferrvaultsecrets by operator-b -> 200",
        "     0.000s #5 PATCH ferrvaultsecrets/status default/r by operator-b -> 200",
        "     1.500s #6 DELETE secrets default/db by operator-a -> 200",
    ];
    assert_eq!(api.story().lines().collect::<Vec<_>>(), story);
    assert_eq!(api.requests_after(4, "operator-b"), ["PATCH ferrvaultsecrets/status default/r"]);
    assert_eq!(api.journal()[1].call.body, json!({ "data": { "k": "YQ==" } }));
}

#[tokio::test(start_paused = true)]
async fn nothing_printed_holds_what_was_sent() {
    let api = ApiServer::default();
    let records = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&records);
    api.on_write(move |write| write!(log.lock().unwrap(), "{write:?}").unwrap());
    let secret = build::secret("default", "db").set(&["stringData", "k"], "canary");
    secrets(&api, "a").create(&PostParams::default(), &secret.typed()).await.unwrap();
    let printed = format!("{}{:?}{:?}{}", api.story(), api.journal(), api, records.lock().unwrap());
    assert!(printed.contains("default/db"));
    assert!(!printed.contains("canary") && !printed.contains("Y2FuYXJ5"), "{printed}");
}

#[tokio::test(start_paused = true)]
async fn writes_are_told_with_both_sides_and_their_author() {
    let api = ApiServer::default();
    let writes = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&writes);
    let server = api.clone();
    api.on_write(move |write| {
        // A hook may look at the server.
        assert!(server.revision() > 0);
        let value =
            |object: &Option<Arc<serde_json::Value>>| object.as_ref().map(|object| object["data"]["k"].to_string());
        log.lock().unwrap().push((
            write.call,
            write.who.clone(),
            write.manager.clone(),
            value(&write.old),
            value(&write.new),
        ));
    });
    let secrets = secrets(&api, "a");
    let params = PostParams { field_manager: Some("m".to_owned()), ..PostParams::default() };
    secrets.create(&params, &build::secret("default", "db").key("k", "a").typed()).await.unwrap();
    // Nothing changes, so nothing is written.
    secrets.patch("db", &PatchParams::default(), &Patch::Merge(json!({ "data": { "k": "YQ==" } }))).await.unwrap();
    api.delete::<Secret>("default", "db");
    let quoted = Some("\"YQ==\"".to_owned());
    assert_eq!(
        *writes.lock().unwrap(),
        [
            (1, "a".to_owned(), "m".to_owned(), None, quoted.clone()),
            (0, "somebody".to_owned(), "somebody".to_owned(), quoted, None),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_broken_invariant_is_kept_even_if_the_writer_never_hears_of_it() {
    let api = ApiServer::default();
    api.invariant("never empty", |write| match &write.new {
        Some(new) if write.resource == "secrets" && new.get("data").is_none() => Err("no data".to_owned()),
        _ => Ok(()),
    });
    api.apply(&build::secret("default", "full").key("k", "v"));
    assert!(api.violations().is_empty());
    secrets(&api, "a").create(&PostParams::default(), &build::secret("default", "empty").typed()).await.unwrap();
    assert_eq!(api.violations(), ["never empty: secrets default/empty created by a in call #1: no data"]);
}

#[tokio::test(start_paused = true)]
async fn roles_say_what_an_identity_may_do_and_reviews_agree() {
    let api = ApiServer::default();
    let role = json!({ "rules": [
        { "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["key"], "verbs": ["get"] },
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] },
        { "apiGroups": ["ferrvault.com"], "resources": ["ferrvaultsecrets/status"], "verbs": ["*"] },
    ] });
    api.grant("a", "default", &role);
    api.apply(&build::secret("default", "key"));
    api.apply(&build::secret("default", "other"));
    api.apply(&build::fvs("default", "r"));
    let secrets = secrets(&api, "a");
    assert!(secrets.get("key").await.is_ok());
    let refused = secrets.get("other").await.unwrap_err().to_string();
    let sentence = "User \"a\" cannot get resource \"secrets\" in API group \"\" in the namespace \"default\"";
    assert!(refused.contains(sentence), "{refused}");
    assert!(secrets.create(&PostParams::default(), &build::secret("default", "new").typed()).await.is_ok());
    assert!(secrets.list(&ListParams::default()).await.is_err());
    let elsewhere = Api::<Secret>::namespaced(api.client_as("a"), "ferrvault-system");
    assert!(elsewhere.create(&PostParams::default(), &build::secret("ferrvault-system", "new").typed()).await.is_err());
    let resources = Api::<FerrVaultSecret>::namespaced(api.client_as("a"), "default");
    let patch = Patch::Merge(json!({ "status": { "contentHash": "h" } }));
    assert!(resources.patch("r", &PatchParams::default(), &patch).await.is_err());
    assert!(resources.patch_status("r", &PatchParams::default(), &patch).await.is_ok());

    let reviews = Api::<SelfSubjectAccessReview>::all(api.client_as("a"));
    for (verb, name, expected) in
        [("get", "key", true), ("get", "other", false), ("create", "", true), ("delete", "key", false)]
    {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: Some(verb.to_owned()),
                    resource: Some("secrets".to_owned()),
                    namespace: Some("default".to_owned()),
                    name: Some(name.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
        assert_eq!(answer.status.unwrap().allowed, expected, "{verb} {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_verb_can_be_taken_away_for_a_while() {
    let api = ApiServer::default();
    let secrets = secrets(&api, "a");
    api.deny("a", "list", "secrets");
    assert!(secrets.list(&ListParams::default()).await.is_err());
    assert!(self::secrets(&api, "b").list(&ListParams::default()).await.is_ok());
    api.allow_again("a", "list", "secrets");
    assert!(secrets.list(&ListParams::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn rest_is_when_nothing_but_watches_has_come_for_a_while() {
    let api = ApiServer::default();
    let secrets = secrets(&api, "a");
    let busy = tokio::spawn(async move {
        for _ in 0..10 {
            secrets.get_opt("db").await.unwrap();
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    });
    assert!(!api.rest(Duration::from_secs(5), Duration::from_secs(10)).await);
    assert!(api.rest(Duration::from_secs(5), Duration::from_mins(1)).await);
    assert_eq!(api.last_call(), 10);
    assert_eq!(api.now().as_second() - ferrvault_testkit::EPOCH_SECONDS, 18 + 5);
    busy.await.unwrap();
}

/// Two clients, a watcher and faults, all at once.
async fn busy_run() -> (String, String) {
    let api = ApiServer::default();
    api.set_plan(Plan::new().at(4, Fault::Slow(Duration::from_secs(3))).at(7, Fault::Refuse(500)));
    let mut tasks = tokio::task::JoinSet::new();
    for who in ["a", "b", "c"] {
        let secrets = secrets(&api, who);
        tasks.spawn(async move {
            for number in 0..5 {
                let secret = build::secret("default", &format!("{who}{number}")).key("k", "v");
                let _ = secrets.create(&PostParams::default(), &secret.typed()).await;
                let patch = Patch::Merge(json!({ "metadata": { "annotations": { who: number.to_string() } } }));
                let _ = secrets.patch("a0", &PatchParams::default(), &patch).await;
                tokio::time::sleep(Duration::from_millis(700)).await;
            }
        });
    }
    let watching = tokio::spawn({
        let secrets = secrets(&api, "w");
        async move {
            let mut seen = String::new();
            let mut stream = std::pin::pin!(watcher(secrets, watcher::Config::default()));
            while let Some(Ok(event)) = futures::StreamExt::next(&mut stream).await {
                if let watcher::Event::Apply(object) = event {
                    write!(seen, "{}@{} ", object.name_any(), object.resource_version().unwrap()).unwrap();
                    if object.name_any() == "c4" {
                        break;
                    }
                }
            }
            seen
        }
    });
    tasks.join_all().await;
    let seen = watching.await.unwrap();
    let objects = serde_json::to_string(&api.list::<Secret>("")).unwrap();
    assert!(api.journal().iter().any(|record| record.call.verb == Verb::Watch));
    (api.story() + &seen, objects)
}

#[tokio::test(start_paused = true)]
async fn two_runs_are_the_same_run() {
    let first = busy_run().await;
    let second = busy_run().await;
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
}
