//! Every way a call can fail, provoked, with the number of attempts it took.

use std::time::Duration;

use ferrvault_core::content::SecretBytes;
use ferrvault_vault::{RetryPolicy, VaultError};
use tokio::net::TcpListener;

use crate::limits::compressed;
use crate::server::{Reply, Server, json, response};
use crate::{bearer, client, cloud, impatient, operator, quick};

/// The error of a reveal, and how often the server was asked.
async fn failed(replies: impl IntoIterator<Item = Reply>, retry: RetryPolicy) -> (VaultError, usize) {
    let server = Server::start(replies).await;
    let error = client(&server.url(), retry).reveal(&bearer(), &cloud(&["A"])).await.unwrap_err();
    (error, server.count())
}

#[tokio::test]
async fn each_status_has_its_error_and_only_server_errors_are_repeated() {
    type Check = fn(&VaultError) -> bool;
    let rows: [(u16, usize, Check); 16] = [
        (401, 1, |error| matches!(error, VaultError::Unauthorized { .. })),
        (403, 1, |error| matches!(error, VaultError::Forbidden { .. })),
        (404, 1, |error| matches!(error, VaultError::NotFound { .. })),
        (429, 1, |error| matches!(error, VaultError::Throttled { after: None, .. })),
        (400, 1, |error| matches!(error, VaultError::Rejected { status: 400, .. })),
        (409, 1, |error| matches!(error, VaultError::Rejected { status: 409, .. })),
        (413, 1, |error| matches!(error, VaultError::Rejected { status: 413, .. })),
        (422, 1, |error| matches!(error, VaultError::Rejected { status: 422, .. })),
        (500, 3, |error| matches!(error, VaultError::ServerError { status: 500, .. })),
        (502, 3, |error| matches!(error, VaultError::ServerError { status: 502, .. })),
        (503, 3, |error| matches!(error, VaultError::ServerError { status: 503, .. })),
        (504, 3, |error| matches!(error, VaultError::ServerError { status: 504, .. })),
        (301, 1, |error| matches!(error, VaultError::RedirectRefused { status: 301, to: None })),
        (204, 1, |error| matches!(error, VaultError::BrokenAnswer { .. })),
        (206, 1, |error| matches!(error, VaultError::BrokenAnswer { .. })),
        (799, 1, |error| matches!(error, VaultError::BrokenAnswer { .. })),
    ];
    for (status, attempts, expected) in rows {
        let body = if status == 204 { "" } else { r#"{"error":"the reason"}"# };
        let (error, count) = failed([json(status, body)], quick()).await;
        assert!(expected(&error), "{status}: {error:?}");
        assert_eq!(count, attempts, "{status}");
        if (400..600).contains(&status) {
            assert!(error.to_string().contains("the reason"), "{status}: {error}");
        }
    }
}

#[tokio::test]
async fn throttling_says_when_in_both_forms() {
    for (headers, seconds) in [
        ("retry-after: 17\r\n", 17),
        ("date: Fri, 02 Jan 2026 03:04:05 GMT\r\nretry-after: Fri, 02 Jan 2026 03:04:50 GMT\r\n", 45),
    ] {
        let (error, count) = failed([response(429, headers, "")], quick()).await;
        assert!(
            matches!(error, VaultError::Throttled { after: Some(after), .. } if after == Duration::from_secs(seconds)),
            "{error:?}"
        );
        assert_eq!(count, 1);
    }
}

#[tokio::test]
async fn a_call_recovers_within_its_attempts() {
    let good = json(200, r#"{"secrets":{"A":"1"}}"#);
    for (name, first) in [
        ("a server error", json(503, "")),
        ("a closed connection", Reply::Bytes(Vec::new())),
        ("a reset connection", Reply::Reset(Vec::new())),
        (
            "a body that ends early",
            Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"secrets\":{\"A\":\"".to_vec()),
        ),
        (
            "a body that is reset",
            Reply::Reset(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"secrets\":{\"A\":\"".to_vec()),
        ),
        (
            "chunks that end early",
            Reply::Bytes(
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n16\r\n{\"secrets\":{\"A\":\"1\"}}\n\r\n"
                    .to_vec(),
            ),
        ),
    ] {
        let server = Server::start([first.clone(), first, good.clone()]).await;
        let answer = client(&server.url(), quick()).reveal(&bearer(), &cloud(&["A"])).await;
        assert_eq!(answer.unwrap().content.0["A"].expose(), b"1", "{name}");
        assert_eq!(server.count(), 3, "{name}");
    }
}

#[tokio::test]
async fn transport_errors_are_unreachable_after_three_attempts() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec();
    for (name, reply) in [
        ("closed before the answer", Reply::Bytes(Vec::new())),
        ("reset before the answer", Reply::Reset(Vec::new())),
        ("closed within the body", Reply::Bytes(cut.clone())),
        ("reset within the body", Reply::Reset(cut)),
        ("not HTTP", Reply::Bytes(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec())),
    ] {
        let (error, count) = failed([reply], quick()).await;
        assert!(matches!(error, VaultError::Unreachable { .. }), "{name}: {error:?}");
        assert_eq!(count, 3, "{name}");
    }
}

#[tokio::test]
async fn nobody_listening_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = client(&url, quick()).health().await.unwrap_err();
    assert_eq!(error, VaultError::Unreachable { why: "connection refused".into() });
}

#[tokio::test]
async fn silence_is_a_timeout_wherever_it_begins() {
    for (name, sent) in [
        ("before the answer", ""),
        ("within the headers", "HTTP/1.1 200 OK\r\ncontent-"),
        ("within the body", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"),
        ("within the chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"),
    ] {
        let (error, _) = failed([Reply::Stall(sent.into())], impatient()).await;
        assert_eq!(error, VaultError::TimedOut { limit: Duration::from_millis(100) }, "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_trickles_without_end_is_a_timeout() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n".to_vec();
    let (error, count) = failed([Reply::Trickle(head)], impatient()).await;
    assert_eq!(error, VaultError::TimedOut { limit: Duration::from_millis(100) });
    assert_eq!(count, 3);
}

#[tokio::test]
async fn the_status_counts_even_if_its_text_never_ends() {
    // The attempt's time is over before a second of patience is, so that the text cannot eat up the status.
    let retry = RetryPolicy { attempt_timeout: Duration::from_millis(500), ..quick() };
    let sent = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 99\r\n\r\n{\"error\":\"".to_vec();
    let (error, count) = failed([Reply::Stall(sent.clone())], retry).await;
    assert!(matches!(error, VaultError::Unauthorized { .. }), "{error:?}");
    assert_eq!(count, 1);
    let (error, count) = failed([Reply::Reset(sent)], quick()).await;
    assert!(matches!(error, VaultError::Unauthorized { .. }), "{error:?}");
    assert_eq!(count, 1);
}

#[tokio::test]
async fn redirects_are_shown_and_not_followed() {
    let target = Server::start([json(200, r#"{"secrets":{"A":"1"}}"#)]).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("location: http://user:canary7Qx@{}/x?token=canary7Qx\r\n", target.address);
        let (error, count) = failed([response(status, &location, "")], quick()).await;
        assert_eq!(error, VaultError::RedirectRefused { status, to: Some(target.url()) });
        assert_eq!(count, 1);
    }
    let (error, _) = failed([response(302, "location: javascript:alert(1)\r\n", "")], quick()).await;
    assert_eq!(error, VaultError::RedirectRefused { status: 302, to: None });
    assert_eq!(target.count(), 0);
}

#[tokio::test]
async fn nonsense_is_a_broken_answer_at_once() {
    let gzip = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    let packed = compressed(br#"{"secrets":{"A":"1"}}"#);
    for (name, reply) in [
        ("HTML", response(200, "content-type: text/html\r\n", r#"{"secrets":{"A":"1"}}"#)),
        ("no JSON", json(200, "hello")),
        ("nothing", json(200, "")),
        ("JSON cut short", json(200, r#"{"secrets":{"A":"1"#)),
        ("another shape", json(200, r#"{"hits":[]}"#)),
        ("bytes that are no text", json(200, b"{\"secrets\":{\"A\":\"\xff\"}}")),
        ("a value that is no text", json(200, r#"{"secrets":{"A":1}}"#)),
        ("a key twice", json(200, r#"{"secrets":{"A":"1","A":"2"}}"#)),
        ("deeply nested", json(200, format!("{{\"secrets\":{}", "[".repeat(100_000)))),
        (
            "an encoding nobody asked for",
            response(200, "content-type: application/json\r\ncontent-encoding: br\r\n", "x"),
        ),
        ("damaged gzip", response(200, gzip, "no gzip at all")),
        ("gzip cut short", response(200, gzip, &packed[..packed.len() - 9])),
    ] {
        let (error, count) = failed([reply], quick()).await;
        assert!(matches!(error, VaultError::BrokenAnswer { .. }), "{name}: {error:?}");
        assert_eq!(count, 1, "{name}");
    }
}

#[tokio::test]
async fn an_unhealthy_server_is_not_healthy() {
    for status in [201, 204, 404] {
        let server = Server::start([response(status, "", "")]).await;
        assert!(client(&server.url(), quick()).health().await.is_err(), "{status}");
    }
}

#[tokio::test]
async fn only_writes_that_may_be_doubled_are_repeated() {
    let value = SecretBytes::from("x");
    for reply in [json(503, ""), Reply::Reset(Vec::new())] {
        let server = Server::start([reply.clone()]).await;
        let client = client(&server.url(), quick());
        assert!(client.create_secret(&bearer(), "v", "A", &value).await.is_err());
        assert_eq!(server.count(), 1, "a create that may have arrived");
        assert!(client.delete_secret(&bearer(), "v", "A").await.is_err());
        assert_eq!(server.count(), 2, "a delete that may have arrived");
        assert!(client.update_secret(&bearer(), "v", "A", &value).await.is_err());
        assert_eq!(server.count(), 5, "an update");
        assert!(client.reveal(&bearer(), &operator(&[])).await.is_err());
        assert_eq!(server.count(), 8, "a reveal, though it is a POST");
    }
}
