//! Every kind of fault, seen from the other end of a TCP connection.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use ferrvault_devserver::faults::{Action, CallPattern, RetryAfter, Rule};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{PATIENCE, World};

fn once(action: Action) -> Rule {
    Rule { calls: CallPattern::default(), action, skip: 0, times: Some(1) }
}

/// Sends a reveal and hands the connection over before anything of the answer is read.
async fn ask(world: &World, token: &str) -> TcpStream {
    let address = world.server.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = r#"{"vault":"app"}"#;
    let request = format!(
        "POST /v1/operator/secrets/reveal HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Everything that comes, and how it ends.
async fn read_all(mut stream: TcpStream) -> (String, Option<ErrorKind>) {
    let mut read = Vec::new();
    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut read)).await.unwrap();
    (String::from_utf8(read).unwrap(), end.err().map(|error| error.kind()))
}

/// Waits until the server has a request under this fault.
async fn arrived(world: &World, fault: &str) {
    let start = Instant::now();
    while !world.server.ledger().requests(0).iter().any(|request| request.fault.as_deref() == Some(fault)) {
        assert!(start.elapsed() < PATIENCE, "no request met the fault {fault}");
        tokio::task::yield_now().await;
    }
}

/// The body and the length that the head promised for it.
fn taken_apart(answer: &str) -> (String, usize) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    (body.to_owned(), length.parse().unwrap())
}

#[tokio::test]
async fn a_reset_cuts_the_connection_before_the_answer_begins() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    for action in [Action::Reset, Action::ResetAfter] {
        world.server.faults().add(once(action));
        let ended = read_all(ask(&world, &token).await).await;
        assert_eq!(ended, (String::new(), Some(ErrorKind::ConnectionReset)));
    }
    assert_eq!(world.server.ledger().requests(0).pop().unwrap().status, None);
}

#[tokio::test]
async fn a_reset_may_come_before_or_after_the_call_is_done() {
    let world = World::start().await;
    let (vault_id, _) = world.app().await;
    let path = format!("/dev/v1/vaults/{vault_id}/secrets");
    for (action, expected) in [(Action::Reset, 1), (Action::ResetAfter, 2)] {
        world.server.faults().add(once(action));
        let body = json!({ "values": { "A": "new" } });
        let request = world.request(Method::PUT, &path).bearer_auth(world.admin_token()).json(&body);
        assert!(request.send().await.is_err());
        let list = format!("/v1/operator/secrets/list?vault={vault_id}");
        let answer = world.call(Method::GET, &list, &world.admin_token(), None).await;
        assert_eq!(answer.body[0]["version"], expected);
    }
}

#[tokio::test]
async fn a_reset_in_the_body_comes_after_its_first_half() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    let whole = read_all(ask(&world, &token).await).await.0;
    let (whole, length) = taken_apart(&whole);
    assert_eq!(whole.len(), length);
    world.server.faults().add(once(Action::ResetBody));
    let (answer, end) = read_all(ask(&world, &token).await).await;
    let (half, promised) = taken_apart(&answer);
    assert_eq!((half.len(), promised, end), (length.div_ceil(2), length, Some(ErrorKind::ConnectionReset)));
    assert!(whole.starts_with(&half[..10]));
}

#[tokio::test]
async fn a_stalled_call_gets_no_byte_and_holds_up_nobody() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    world.server.faults().add(once(Action::Stall));
    let stalled = ask(&world, &token).await;
    arrived(&world, "stall").await;
    let others = read_all(ask(&world, &token).await).await;
    assert!(others.0.starts_with("HTTP/1.1 200 OK"));
    tokio::time::timeout(PATIENCE, world.server.stop()).await.unwrap();
    assert_eq!(read_all(stalled).await.0, "", "not even when the server stops");
}

#[tokio::test]
async fn a_stall_in_the_body_leaves_the_first_half() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    world.server.faults().add(once(Action::StallBody));
    let mut stalled = ask(&world, &token).await;
    let mut first = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, stalled.read(&mut first)).await.unwrap().unwrap();
    assert!(first[..read].starts_with(b"HTTP/1.1 200 OK"));
    world.server.stop().await;
    let rest = read_all(stalled).await.0;
    let answer = format!("{}{rest}", String::from_utf8_lossy(&first[..read]));
    let (half, promised) = taken_apart(&answer);
    assert_eq!(half.len(), promised.div_ceil(2));
}

#[tokio::test]
async fn a_delayed_call_is_answered_as_usual() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    world.server.faults().add(once(Action::Delay { ms: 200 }));
    let start = Instant::now();
    let answer = read_all(ask(&world, &token).await).await.0;
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(taken_apart(&answer).0.contains("\"one\""));
}

#[tokio::test]
async fn invented_answers_come_as_they_are_asked_for() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    let respond = |status, body: Option<&str>, retry_after| Action::Respond {
        status,
        body: body.map(str::to_owned),
        retry_after,
    };
    let date = "Fri, 15 Jan 2027 08:00:30 GMT";
    let cases = [
        (respond(429, None, Some(RetryAfter::Seconds(7))), "HTTP/1.1 429 ", "retry-after: 7\r\n", "fault rule"),
        (respond(429, None, Some(RetryAfter::Text(date.to_owned()))), "HTTP/1.1 429 ", date, "{\"error\":"),
        (respond(503, Some("plain"), None), "HTTP/1.1 503 ", "content-length: 5", "plain"),
        (respond(401, None, None), "HTTP/1.1 401 ", "application/json", "{\"error\":"),
        (Action::Nonsense, "HTTP/1.1 200 ", "application/json", "not { JSON"),
        (Action::Empty, "HTTP/1.1 200 ", "content-length: 0", ""),
    ];
    for (action, status, head, body) in cases {
        world.server.faults().add(once(action.clone()));
        let answer = read_all(ask(&world, &token).await).await.0;
        assert!(answer.starts_with(status) && answer.contains(head) && answer.contains(body), "{action:?}: {answer}");
    }
    world.server.faults().add(once(respond(503, None, None)));
    let cloud = world.call(Method::GET, "/api/v1/anything", &token, None).await;
    cloud.refused(503, "message");
}

#[tokio::test]
async fn a_big_body_is_well_formed_in_both_modes_and_a_truncated_one_is_not() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    world.server.faults().add(Rule { times: Some(2), ..once(Action::BigBody { bytes: 5 * 1024 * 1024 }) });
    let plain = world.call(Method::POST, "/v1/operator/secrets/reveal", &token, Some(json!({ "vault": "app" }))).await;
    assert_eq!(plain.body["hits"][0]["value"].as_str().unwrap().len(), 5 * 1024 * 1024);
    let cloud = world.call(Method::GET, "/api/v1/anything", &token, None).await;
    assert_eq!(cloud.body["secrets"]["FILLER"].as_str().unwrap().len(), 5 * 1024 * 1024);

    world.server.faults().add(once(Action::Truncated));
    let (answer, end) = read_all(ask(&world, &token).await).await;
    let (body, promised) = taken_apart(&answer);
    assert_eq!((body.len(), end), (promised, None), "the length is the one of what comes");
    assert!(body.starts_with("{\"hits\"") && serde_json::from_str::<Value>(&body).is_err());
}

#[tokio::test]
async fn rules_and_counters_are_kept_over_the_admin_side() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    let rules = json!([
        { "match": { "method": "GET", "vault": "app" }, "action": { "kind": "respond", "status": 500 }, "times": 1 },
        { "match": { "path_prefix": "/v1/operator/me" }, "action": { "kind": "empty" } },
    ]);
    let added = world.admin(Method::POST, "/rules", Some(rules)).await;
    assert_eq!((added.status.as_u16(), added.body), (201, json!({ "ids": [1, 2] })));
    assert_eq!(world.admin(Method::DELETE, "/counters", None).await.status, 204);

    let me = || world.call(Method::GET, "/v1/operator/me", &token, None);
    assert_eq!(me().await.status, 500, "the vault is the one of the token");
    assert_eq!(me().await.body, Value::Null);
    let reveal = Some(json!({ "vault": "app", "names": ["A", "Z"] }));
    let revealed = world.call(Method::POST, "/v1/operator/secrets/reveal", &token, reveal).await;
    assert_eq!(revealed.status, 200);

    let counters = world.admin(Method::GET, "/counters", None).await.body;
    assert_eq!(
        counters,
        json!({ "total": 3, "calls": [
            { "method": "GET", "route": "/v1/operator/me", "vault": "app", "count": 2 },
            { "method": "POST", "route": "/v1/operator/secrets/reveal", "vault": "app", "count": 1 },
        ] })
    );
    let requests = world.admin(Method::GET, "/requests", None).await.body;
    let last = requests.as_array().unwrap().last().unwrap();
    assert_eq!((&last["names"], &last["status"], &last["fault"]), (&json!(["A", "Z"]), &json!(200), &Value::Null));
    let seq = last["seq"].as_u64().unwrap();
    assert_eq!(world.admin(Method::GET, &format!("/requests?after={seq}"), None).await.body, json!([]));
    let states = world.admin(Method::GET, "/rules", None).await.body;
    assert_eq!((&states[0]["applied"], &states[1]["applied"]), (&json!(1), &json!(1)));

    assert_eq!(world.admin(Method::DELETE, "/rules/2", None).await.status, 204);
    world.admin(Method::DELETE, "/rules/2", None).await.refused(404, "error");
    assert_eq!(me().await.status, 200);
    assert_eq!(world.admin(Method::DELETE, "/rules", None).await.status, 204);
    assert_eq!(world.admin(Method::GET, "/rules", None).await.body, json!([]));
    let mistaken = world.admin(Method::POST, "/rules", Some(json!([{ "action": { "kind": "stall" } }, {}]))).await;
    mistaken.refused(400, "error");
    assert_eq!(world.admin(Method::GET, "/rules", None).await.body, json!([]), "one mistake, none added");
    world.admin(Method::GET, "/nothing", None).await.refused(404, "error");
}
