//! Events: what is sent, how much at once, and that nobody waits for it.

use std::sync::Mutex;

use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::cluster::mock::{Reply, api};
use crate::entropy::Entropy;
use crate::leader::{Candidate, Elector, LeaseTimes};

fn clock() -> Clock {
    Clock::simulated("2031-05-04T03:02:01Z".parse().unwrap())
}

fn happening(note: &str) -> Happening {
    Happening {
        regarding: ObjectReference {
            api_version: Some("ferrvault.com/v1alpha1".to_owned()),
            kind: Some("FerrVaultSecret".to_owned()),
            namespace: Some("shop".to_owned()),
            name: Some("db".to_owned()),
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectReference::default()
        },
        severity: Severity::Warning,
        reason: "AuthFailed".to_owned(),
        action: "Sync",
        note: note.to_owned(),
    }
}

fn created() -> Reply {
    Reply::Json(201, json!({"metadata": {}, "eventTime": null}))
}

#[tokio::test(start_paused = true)]
async fn an_event_says_what_happened_to_whom() {
    let (client, requests) = api(|_| created());
    let events = EventPublisher::new(client, Leadership::always(), clock(), "operator-0");
    events.publish(happening("the token\nwas refused"));
    sleep(Duration::from_millis(1)).await;
    let seen = requests.all();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].method, http::Method::POST);
    assert_eq!(seen[0].path, "/apis/events.k8s.io/v1/namespaces/shop/events");
    let body = &seen[0].body;
    assert!(body["metadata"]["name"].as_str().unwrap().starts_with("db."));
    assert_eq!(body["type"], "Warning");
    assert_eq!(body["reason"], "AuthFailed");
    assert_eq!(body["action"], "Sync");
    assert_eq!(body["note"], "the token was refused");
    assert_eq!(body["reportingController"], "ferrvault.com/operator");
    assert_eq!(body["reportingInstance"], "operator-0");
    assert_eq!(body["eventTime"], "2031-05-04T03:02:01.000000Z");
    assert_eq!(body["regarding"]["uid"], "u");
    assert!(body["regarding"].get("resourceVersion").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_too_long_is_cut_to_what_the_server_takes() {
    let (client, requests) = api(|_| created());
    let events = EventPublisher::new(client, Leadership::always(), clock(), &"i".repeat(300));
    let mut long = happening(&"ä".repeat(2000));
    long.reason = "R".repeat(300);
    long.regarding.name = Some(format!("{}-.x", "n".repeat(218)));
    events.publish(long);
    sleep(Duration::from_millis(1)).await;
    let body = &requests.all()[0].body;
    let bytes = |value: &serde_json::Value| value.as_str().unwrap().len();
    assert!((1000..=1024).contains(&bytes(&body["note"])));
    assert!(bytes(&body["reportingInstance"]) <= 128);
    assert!(bytes(&body["reason"]) <= 128);
    let name = body["metadata"]["name"].as_str().unwrap();
    assert!(name.len() <= 253);
    assert!(name.starts_with(&format!("{}.", "n".repeat(218))), "{name}");
}

#[tokio::test(start_paused = true)]
async fn events_of_one_instant_have_names_of_their_own() {
    let (client, requests) = api(|_| created());
    let events = EventPublisher::new(client, Leadership::always(), clock(), "operator-0");
    events.publish(happening("one"));
    events.clone().publish(happening("two"));
    sleep(Duration::from_millis(1)).await;
    let seen = requests.all();
    assert_ne!(seen[0].body["metadata"]["name"], seen[1].body["metadata"]["name"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_asked_by_few_at_once_and_given_up_on() {
    let (client, requests) = api(|_| Reply::Never);
    let events = EventPublisher::new(client, Leadership::always(), clock(), "operator-0");
    for _ in 0..IN_FLIGHT + WAITING + 5 {
        events.publish(happening("x"));
    }
    assert_eq!(events.lost(), 5);
    sleep(DEADLINE.mul_f64(0.99)).await;
    assert_eq!(requests.count(), IN_FLIGHT);
    sleep(DEADLINE.mul_f64(0.02)).await;
    assert_eq!(requests.count(), 2 * IN_FLIGHT);
    assert_eq!(events.lost(), 5 + IN_FLIGHT as u64);
    sleep(DEADLINE * 100).await;
    assert_eq!(events.lost(), (IN_FLIGHT + WAITING + 5) as u64);
    events.publish(happening("there is room again"));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(requests.count(), IN_FLIGHT + WAITING + 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_counted_and_no_more() {
    let refuse = Arc::new(Mutex::new(true));
    let refusing = Arc::clone(&refuse);
    let (client, _) =
        api(move |_| if *refusing.lock().unwrap() { Reply::refusal(403, "Forbidden") } else { created() });
    let events = EventPublisher::new(client, Leadership::always(), clock(), "operator-0");
    events.publish(happening("x"));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(events.lost(), 1);
    *refuse.lock().unwrap() = false;
    events.publish(happening("x"));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(events.lost(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_tells_nothing() {
    let (client, requests) = api(|_| created());
    let candidate = Candidate {
        namespace: "ops".to_owned(),
        lease: "fv".to_owned(),
        pod: "second".to_owned(),
        times: LeaseTimes::default(),
    };
    let (_elector, standby) = Elector::new(client.clone(), candidate, clock(), &Entropy::seeded(1));
    let events = EventPublisher::new(client, standby, clock(), "second");
    events.publish(happening("no answer within the deadline"));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(requests.count(), 0);
    assert_eq!(events.lost(), 0, "nothing is missed: it was not this replica's to tell");
}
