//! The operator key against a small store of one Secret.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::cluster::mock::{Reply, Requests, api};

fn place() -> ObjectKey {
    ObjectKey::new("ops", "ferrvault-operator-key")
}

fn stored_with(bytes: &[u8]) -> Value {
    secret(&json!({"key": STANDARD.encode(bytes)}))
}

fn secret(data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
        "metadata": {"namespace": "ops", "name": "ferrvault-operator-key", "uid": "u", "resourceVersion": "1"},
    })
}

/// A namespace that may hold the Secret: a second create is refused.
fn namespace(content: Option<Value>) -> (Client, Requests, Arc<Mutex<Option<Value>>>) {
    let stored = Arc::new(Mutex::new(content));
    let behind = Arc::clone(&stored);
    let (client, requests) = api(move |seen| {
        let mut stored = behind.lock().unwrap();
        match (&seen.method, &*stored) {
            (&Method::GET, Some(secret)) => Reply::Json(200, secret.clone()),
            (&Method::GET, None) => Reply::refusal(404, "NotFound"),
            (&Method::POST, Some(_)) => Reply::refusal(409, "AlreadyExists"),
            (&Method::POST, None) => {
                *stored = Some(seen.body.clone());
                Reply::Json(201, seen.body.clone())
            }
            _ => Reply::refusal(405, "MethodNotAllowed"),
        }
    });
    (client, requests, stored)
}

fn methods(requests: &Requests) -> Vec<Method> {
    requests.all().into_iter().map(|seen| seen.method).collect()
}

#[tokio::test(start_paused = true)]
async fn an_existing_key_is_read_and_nothing_written() {
    let (client, requests, _) = namespace(Some(stored_with(&[7; 32])));
    let key = load_or_create(&client, &place(), &Entropy::seeded(1)).await.unwrap();
    assert_eq!(key.id(), OperatorKey::from_bytes(&[7; 32]).unwrap().id());
    assert_eq!(methods(&requests), [Method::GET]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_key_is_made_and_what_is_stored_counts() {
    let (client, requests, stored) = namespace(None);
    let key = load_or_create(&client, &place(), &Entropy::seeded(1)).await.unwrap();
    assert_eq!(methods(&requests), [Method::GET, Method::POST, Method::GET]);
    let stored = stored.lock().unwrap().clone().unwrap();
    let bytes = STANDARD.decode(stored["data"]["key"].as_str().unwrap()).unwrap();
    assert_eq!(OperatorKey::from_bytes(&bytes).unwrap().id(), key.id());
    assert_eq!(stored["apiVersion"], "v1");
    assert_eq!(stored["kind"], "Secret");
    assert_eq!(stored["immutable"], true);
    assert_eq!(stored["metadata"]["labels"]["app.kubernetes.io/component"], "operator-key");
    assert!(
        stored["metadata"]["annotations"]["ferrvault.com/description"].as_str().unwrap().contains("Key of FerrVault")
    );
}

#[tokio::test(start_paused = true)]
async fn two_replicas_that_make_it_at_once_agree() {
    let (client, requests, _) = namespace(None);
    let (one, other) = (Entropy::seeded(1), Entropy::seeded(2));
    let place = place();
    let keys = tokio::join!(load_or_create(&client, &place, &one), load_or_create(&client, &place, &other));
    assert_eq!(keys.0.unwrap().id(), keys.1.unwrap().id());
    let posts = methods(&requests).iter().filter(|method| **method == Method::POST).count();
    assert_eq!(posts, 2, "both must have tried, or this shows nothing");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_holds_no_key_is_left_alone_and_named() {
    let cases = [
        (secret(&json!({})), "has no key \"key\""),
        (secret(&json!({"other": "AAAA"})), "has no key \"key\""),
        (stored_with(b"hunter2-hunter2"), "an operator key has 32 bytes, this one has 15"),
        (secret(&json!({"key": "hunter2-hunter2 is no base64"})), "cannot be read"),
        (secret(&json!({"key": 5})), "cannot be read"),
    ];
    for (content, expected) in cases {
        let (client, requests, stored) = namespace(Some(content.clone()));
        let problem = load_or_create(&client, &place(), &Entropy::seeded(1)).await.unwrap_err();
        let text = problem.to_string();
        assert!(text.contains(expected) && text.contains("ops/ferrvault-operator-key"), "{text}");
        assert!(!format!("{text} {problem:?}").contains("hunter2"), "{problem:?}");
        assert_eq!(methods(&requests), [Method::GET], "nothing is written over it");
        assert_eq!(*stored.lock().unwrap(), Some(content));
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_tried_for_until_it_is_there_and_each_failure_is_told() {
    let mut replies =
        vec![Reply::Json(200, stored_with(&[7; 32])), Reply::Never, Reply::refusal(403, "Forbidden"), Reply::Broken];
    let (client, _) = api(move |_| replies.pop().unwrap());
    let mut told = Vec::new();
    let key = obtain(&client, &place(), &Entropy::seeded(1), |problem| told.push(problem.to_string())).await;
    assert_eq!(key.id(), OperatorKey::from_bytes(&[7; 32]).unwrap().id());
    let shared = "the operator key cannot be read: get Secret ops/ferrvault-operator-key: ";
    let expected = [
        "the API server cannot be reached: connection reset",
        "forbidden: refused: Forbidden",
        "no answer within the deadline",
    ];
    assert_eq!(told, expected.map(|end| format!("{shared}{end}")));
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_create_is_told_with_where_it_was_meant_to_be() {
    let (client, _) = api(|seen| {
        if seen.method == Method::GET { Reply::refusal(404, "NotFound") } else { Reply::refusal(403, "Forbidden") }
    });
    let started = tokio::time::Instant::now();
    let problem = load_or_create(&client, &place(), &Entropy::seeded(1)).await.unwrap_err();
    assert!(problem.to_string().starts_with("the operator key cannot be made: create Secret ops/"), "{problem}");
    assert!(started.elapsed() < Duration::from_secs(1));
}
