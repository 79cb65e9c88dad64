//! Every fault that can be put on a call: what its client learns, and what the server did.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::time::Duration;

use ferrvault_testkit::{ApiServer, Fate, Fault, Plan, build};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Error, ResourceExt as _};
use serde_json::json;
use tokio::time::{Instant, timeout};

const LONG: Duration = Duration::from_hours(1);

fn secrets(api: &ApiServer, who: &str) -> Api<Secret> {
    Api::namespaced(api.client_as(who), "default")
}

/// Annotates Secret `db`. `Err(None)` stands for no answer within an hour.
async fn annotate(secrets: &Api<Secret>, value: &str) -> Result<Secret, Option<Error>> {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { "value": value } } }));
    match timeout(LONG, secrets.patch("db", &PatchParams::default(), &patch)).await {
        Ok(answer) => answer.map_err(Some),
        Err(_) => Err(None),
    }
}

fn annotation(api: &ApiServer) -> Option<String> {
    api.get::<Secret>("default", "db").unwrap().annotations().get("value").cloned()
}

/// What a client learns, in a word.
fn word(answer: &Result<Secret, Option<Error>>) -> String {
    match answer {
        Ok(_) => "done".to_owned(),
        Err(None) => "nothing".to_owned(),
        Err(Some(Error::Api(status))) => status.code.to_string(),
        Err(Some(Error::SerdeError(_))) => "nonsense".to_owned(),
        Err(Some(_)) => "broken".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn each_fault_does_what_it_says() {
    let mut cases = vec![
        (Fault::None, "done", true),
        (Fault::RefuseFor(429, 7), "429", false),
        (Fault::Nonsense(200, "<html>".to_owned()), "nonsense", false),
        (Fault::Nonsense(502, "<html>".to_owned()), "502", false),
        (Fault::LostRequest, "nothing", false),
        (Fault::LostAnswer, "nothing", true),
        (Fault::ResetBefore, "broken", false),
        (Fault::ResetAfter, "broken", true),
        (Fault::ResetMidBody, "broken", true),
        (Fault::CutBefore, "nothing", false),
        (Fault::CutAfter, "nothing", true),
        (Fault::Late(Duration::from_secs(20)), "done", true),
        (Fault::Slow(Duration::from_secs(20)), "done", true),
    ];
    let codes = Fault::CODES.map(|code| (code, code.to_string()));
    cases.extend(codes.iter().map(|(code, word)| (Fault::Refuse(*code), word.as_str(), false)));
    for (fault, learnt, applied) in cases {
        let api = ApiServer::default();
        api.apply(&build::secret("default", "db"));
        api.set_plan(Plan::new().at(1, fault.clone()));
        let answer = annotate(&secrets(&api, "operator"), "new").await;
        assert_eq!(word(&answer), learnt, "{fault:?}: {answer:?}");
        assert_eq!(annotation(&api).is_some(), applied, "{fault:?}");
        assert_eq!(api.journal()[0].handled, applied, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_carries_the_reason_of_its_code() {
    for (code, reason) in
        [(403, "Forbidden"), (409, "Conflict"), (410, "Expired"), (422, "Invalid"), (500, "InternalError")]
    {
        let api = ApiServer::default();
        api.set_plan(Plan::new().at(1, Fault::Refuse(code)));
        let Err(Error::Api(status)) = secrets(&api, "operator").get("db").await else { panic!("{code} is an error") };
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_request_is_carried_out_though_its_client_has_given_up() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "db"));
    api.set_plan(Plan::new().at(1, Fault::Late(Duration::from_secs(30))));
    let secrets = secrets(&api, "operator");
    assert!(timeout(Duration::from_secs(10), annotate(&secrets, "first")).await.is_err());
    annotate(&secrets, "second").await.unwrap();
    assert_eq!(annotation(&api).as_deref(), Some("second"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(annotation(&api).as_deref(), Some("first"), "it overtook nobody");
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_carried_out_at_once() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "db"));
    api.set_plan(Plan::new().at(1, Fault::Slow(Duration::from_secs(30))));
    let secrets = secrets(&api, "operator");
    let before = Instant::now();
    let call = tokio::spawn(async move { annotate(&secrets, "first").await.is_ok() });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(annotation(&api).as_deref(), Some("first"));
    assert!(call.await.unwrap());
    assert_eq!(before.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_cut_ends_every_client_of_the_process_and_of_no_other() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "db"));
    let (one, two, other) = (secrets(&api, "a"), secrets(&api, "a"), secrets(&api, "b"));
    // A call that is under way when its process ends never returns either.
    api.set_plan(Plan::new().at(1, Fault::Slow(Duration::from_secs(5))).at(2, Fault::CutAfter));
    let under_way = tokio::spawn(async move { annotate(&two, "slow").await.is_ok() });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cut = tokio::spawn({
        let one = one.clone();
        async move { annotate(&one, "last").await.is_ok() }
    });
    timeout(LONG, api.ended("a")).await.unwrap();
    assert!(api.has_ended("a") && !api.has_ended("b"));
    assert_eq!(annotation(&api).as_deref(), Some("last"));
    assert!(timeout(LONG, one.get("db")).await.is_err(), "a dead process gets no answer");
    assert!(!under_way.await.unwrap() && !cut.await.unwrap(), "no answer within their hour");
    assert!(other.get("db").await.is_ok());
    // The same identity begins anew; its old clients stay dead.
    assert!(secrets(&api, "a").get("db").await.is_ok());
    assert!(timeout(LONG, one.get("db")).await.is_err());
    let (told, all): (Vec<_>, Vec<_>) = (api.requests_after(0, "a"), api.journal());
    assert_eq!(told, ["PATCH secrets default/db", "PATCH secrets default/db", "GET secrets default/db"]);
    assert_eq!(all[1].fate, Fate::Pending);
}

#[tokio::test(start_paused = true)]
async fn reads_can_be_stale() {
    let api = ApiServer::default();
    let first = api.apply(&build::secret("default", "db").annotated("value", "1"));
    api.apply(&build::secret("default", "db").annotated("value", "2"));
    let secrets = secrets(&api, "operator");
    let revision = first["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    api.set_plan(
        Plan::new()
            .at(1, Fault::Stale(1))
            .at(2, Fault::StaleAt(revision))
            .at(3, Fault::Stale(2))
            .at(4, Fault::Stale(1)),
    );
    assert_eq!(secrets.get("db").await.unwrap().annotations()["value"], "1");
    assert_eq!(secrets.get("db").await.unwrap().annotations()["value"], "1");
    assert!(secrets.get_opt("db").await.unwrap().is_none(), "before it was made");
    let list = secrets.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].annotations()["value"], "1");
    assert_eq!(list.metadata.resource_version.as_deref(), first["metadata"]["resourceVersion"].as_str());
    assert_eq!(secrets.get("db").await.unwrap().annotations()["value"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_rests_on_a_stale_read_is_refused() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "db"));
    api.apply(&build::secret("default", "db").annotated("value", "2"));
    api.set_plan(Plan::new().at(1, Fault::Stale(1)));
    let secrets = secrets(&api, "operator");
    let stale = secrets.get("db").await.unwrap();
    let error = secrets.replace("db", &PostParams::default(), &stale).await.unwrap_err();
    assert!(matches!(error, Error::Api(status) if status.is_conflict()));
}

#[tokio::test(start_paused = true)]
async fn a_hook_decides_by_what_it_sees_and_the_plan_decides_the_rest() {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "db"));
    api.set_plan(Plan::new().at(2, Fault::Refuse(500)));
    let server = api.clone();
    api.on_call(move |call| {
        // A hook may use the server, as somebody who acts just before the request arrives.
        if call.number == 3 {
            server.delete::<Secret>("default", "db");
        }
        if call.who == "b" { Fault::Refuse(403) } else { Fault::None }
    });
    let (a, b) = (secrets(&api, "a"), secrets(&api, "b"));
    let code = |answer: Result<Secret, Error>| match answer {
        Ok(_) => 200,
        Err(Error::Api(status)) => status.code,
        Err(_) => 0,
    };
    assert_eq!(code(b.get("db").await), 403);
    assert_eq!(code(a.get("db").await), 500);
    assert_eq!(code(a.get("db").await), 404);
    api.clear_faults();
    assert_eq!(code(b.get("db").await), 404);
}
