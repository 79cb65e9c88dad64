//! The scripted FerrVault, in process under paused time and over HTTP on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::time::Duration;

use ferrvault_testkit::{ApiServer, ScriptedVault, VaultFailure, VaultFault};
use tokio::time::{Instant, timeout};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reveal_finds_what_is_there_and_names_what_is_missing() {
    let vault = ScriptedVault::new();
    vault.set("main", "A", "1");
    vault.set("main", "B", "2");
    let all = vault.reveal(None, "main", &[]).await.unwrap();
    assert_eq!((all.content.keys(), all.missing.len()), (names(&["A", "B"]), 0));
    let some = vault.reveal(None, "main", &names(&["Z", "A", "Y"])).await.unwrap();
    assert_eq!((some.content.keys(), some.missing), (names(&["A"]), names(&["Y", "Z"])));
    assert_eq!(some.content.get("A").unwrap().expose(), b"1");
    assert_eq!(vault.reveal(None, "none", &[]).await, Err(VaultFailure::Status(404, None)));
    vault.unset("main", "A");
    vault.unset("main", "B");
    assert!(vault.reveal(None, "main", &[]).await.unwrap().content.is_empty());
}

#[tokio::test(start_paused = true)]
async fn tokens_open_what_they_are_bound_to() {
    let vault = ScriptedVault::new();
    vault.empty("main");
    vault.empty("other");
    assert!(vault.reveal(Some(b"any"), "main", &[]).await.is_ok(), "before the first token every one is good");
    vault.accept("sat_main", Some("main"));
    vault.accept("fft_all", None);
    for (token, name, expected) in [
        ("sat_main", "main", None),
        ("sat_main", "other", Some(403)),
        ("fft_all", "other", None),
        ("any", "main", Some(401)),
    ] {
        let answer = vault.reveal(Some(token.as_bytes()), name, &[]).await;
        assert_eq!(answer.err(), expected.map(|code| VaultFailure::Status(code, None)), "{token} {name}");
    }
    vault.revoke("fft_all");
    assert_eq!(vault.reveal(Some(b"fft_all"), "main", &[]).await, Err(VaultFailure::Status(401, None)));
}

#[tokio::test(start_paused = true)]
async fn each_fault_does_what_it_says() {
    let cases = [
        (VaultFault::None, Ok(1), 0),
        (VaultFault::Refuse(500), Err(VaultFailure::Status(500, None)), 0),
        (VaultFault::Throttle(Some(9)), Err(VaultFailure::Status(429, Some(9))), 0),
        (VaultFault::Unreachable, Err(VaultFailure::Unreachable), 0),
        (VaultFault::Slow(Duration::from_secs(5)), Ok(1), 5),
        (VaultFault::Nonsense, Err(VaultFailure::Nonsense), 0),
        (VaultFault::Empty, Ok(0), 0),
        (VaultFault::TooLarge, Err(VaultFailure::TooLarge), 0),
    ];
    for (fault, expected, seconds) in cases {
        let vault = ScriptedVault::new();
        vault.set("main", "A", "1");
        vault.fail_at(1, fault.clone());
        let before = Instant::now();
        let answer = vault.reveal(None, "main", &[]).await.map(|answer| answer.content.len());
        assert_eq!(answer, expected, "{fault:?}");
        assert_eq!(before.elapsed().as_secs(), seconds, "{fault:?}");
    }
    let vault = ScriptedVault::new();
    vault.fail_at(1, VaultFault::Stall);
    assert!(timeout(Duration::from_hours(1), vault.health()).await.is_err());
    assert!(vault.health().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_answers_what_was_there_at_its_end_or_at_its_start() {
    for (fault, expected) in
        [(VaultFault::Slow(Duration::from_secs(5)), "new"), (VaultFault::SlowAnswer(Duration::from_secs(5)), "old")]
    {
        let vault = ScriptedVault::new();
        vault.set("main", "A", "old");
        vault.fail_at(1, fault);
        let asking = vault.clone();
        let asked = tokio::spawn(async move { asking.reveal(None, "main", &[]).await.unwrap() });
        tokio::time::sleep(Duration::from_secs(1)).await;
        vault.set("main", "A", "new");
        assert_eq!(asked.await.unwrap().content.get("A").unwrap().expose(), expected.as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_sees_every_call_and_may_end_the_process_that_makes_it() {
    let api = ApiServer::default();
    let vault = ScriptedVault::new();
    vault.empty("main");
    let server = api.clone();
    vault.on_call(move |call| {
        if call.number == 2 {
            server.end("operator");
            return VaultFault::Stall;
        }
        VaultFault::None
    });
    vault.reveal(None, "main", &names(&["A"])).await.unwrap();
    assert!(timeout(Duration::from_hours(1), vault.reveal(None, "main", &[])).await.is_err());
    assert!(api.has_ended("operator"));
    assert_eq!(
        vault.calls().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["F#1 reveal main [\"A\"]", "F#2 reveal main []",]
    );
}

/// One HTTP request by hand: status line and headers, and the body.
async fn ask(url: &str, head: &str, body: &str) -> (String, String) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!("{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[tokio::test]
async fn over_http_it_speaks_both_modes() {
    let vault = ScriptedVault::new();
    vault.set("main", "A", "1");
    vault.set("main", "A", "2");
    vault.accept("sat_x", Some("main"));
    let listening = vault.listen().await.unwrap();
    let url = listening.url();
    let bearer = "\r\nAuthorization: Bearer sat_x";
    let own = "POST /v1/operator/secrets/reveal HTTP/1.1";
    let (head, body) = ask(&url, &format!("{own}{bearer}"), r#"{"vault":"main","names":["A","B"]}"#).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&answer["hits"][0]["value"], &answer["hits"][0]["version"]), (&"2".into(), &2.into()));
    assert_eq!(answer["missing"][0], "B");

    let cloud = "GET /api/v1/orgs/o/projects/p/vaults/by-name/main/secrets/reveal?names=A,B HTTP/1.1";
    let namespace = "\r\nX-FerrVault-Namespace: default";
    let (_, body) = ask(&url, &format!("{cloud}{bearer}{namespace}"), "").await;
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&answer["secrets"]["A"], &answer["missing"][0]), (&"2".into(), &"B".into()));
    assert!(ask(&url, &format!("{cloud}{bearer}"), "").await.0.starts_with("HTTP/1.1 400"), "no namespace");

    let (_, body) = ask(&url, &format!("GET /v1/operator/secrets/list HTTP/1.1{bearer}"), "").await;
    assert!(body.contains(r#""name":"A""#) && body.contains(r#""version":2"#), "{body}");
    let (_, body) = ask(&url, &format!("GET /v1/operator/me HTTP/1.1{bearer}"), "").await;
    assert!(body.contains(r#""vault_slug":"main""#), "{body}");
    assert!(ask(&url, "GET /health HTTP/1.1", "").await.0.starts_with("HTTP/1.1 200"));
    assert!(ask(&url, own, r#"{"vault":"main"}"#).await.0.starts_with("HTTP/1.1 401"));

    let (_, body) = ask(&url, "POST /api/v1/clusters/oidc-exchange HTTP/1.1", "{}").await;
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    let exchanged = format!("{own}\r\nAuthorization: Bearer {}", answer["access_token"].as_str().unwrap());
    assert!(ask(&url, &exchanged, r#"{"vault":"main"}"#).await.0.starts_with("HTTP/1.1 200"));

    vault.on_call(|_| VaultFault::Throttle(Some(4)));
    let (head, _) = ask(&url, &format!("{own}{bearer}"), r#"{"vault":"main"}"#).await;
    assert!(head.starts_with("HTTP/1.1 429") && head.to_lowercase().contains("retry-after: 4"), "{head}");
}
