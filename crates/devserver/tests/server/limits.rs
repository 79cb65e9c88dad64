//! What the server limits: rate, size, and where it listens.

use ferrvault_devserver::{Config, Server, StartError};
use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;

use crate::world::{World, send};

#[tokio::test]
async fn the_61st_call_of_a_service_account_within_a_minute_is_told_when_to_come_back() {
    let world = World::start().await;
    let (vault_id, token) = world.app().await;
    let other = world.account("viewer", &vault_id).await;
    let me = |token: String| {
        let world = &world;
        async move { world.call(Method::GET, "/v1/operator/me", &token, None).await }
    };
    for call in 1..=60 {
        assert_eq!(me(token.clone()).await.status, 200, "call {call}");
        world.hands.advance(SignedDuration::from_millis(500));
    }
    // The clock has moved by 30 s; the oldest call leaves the window 30 s from now.
    let refused = me(token.clone()).await;
    refused.refused(429, "error");
    assert_eq!(refused.headers["retry-after"], "30");
    let path = "/api/v1/orgs/default/projects/default/vaults/by-name/app/secrets/reveal";
    let cloud = send(world.request(Method::GET, path).bearer_auth(&token).header("X-FerrVault-Namespace", "n")).await;
    cloud.refused(429, "message");
    assert_eq!(me(other).await.status, 200, "another token of the same vault has a limit of its own");
    for _ in 0..70 {
        let listed = world.call(Method::GET, "/dev/v1/vaults", &world.admin_token(), None).await;
        assert_eq!(listed.status, 200, "a user's token has no limit");
    }
    world.hands.advance(SignedDuration::from_secs(30));
    assert_eq!(me(token).await.status, 200, "whoever waits as told is admitted");
}

#[tokio::test]
async fn the_rate_can_be_set_and_turned_off() {
    for (limit, admitted) in [(2, 2), (0, 80)] {
        let world = World::start_with(|config| config.rate_limit = limit).await;
        let (_, token) = world.app().await;
        let mut answered = 0;
        while answered < 80 && world.call(Method::GET, "/v1/operator/me", &token, None).await.status == 200 {
            answered += 1;
        }
        assert_eq!(answered, admitted, "limit {limit}");
    }
}

#[tokio::test]
async fn a_body_above_two_mebibytes_is_refused_and_one_below_is_read() {
    let world = World::start().await;
    let (vault_id, _) = world.app().await;
    let path = format!("/dev/v1/vaults/{vault_id}/secrets");
    let body = |bytes: usize| json!({ "values": { "K": "x".repeat(bytes) } });
    let put = |bytes: usize| world.call(Method::PUT, &path, "fft_unknown", Some(body(bytes)));
    put(2 * 1024 * 1024 - 100).await.refused(401, "error");
    // The server may close before the client has sent everything; either way nothing is taken.
    let request = world.request(Method::PUT, &path).bearer_auth(world.admin_token()).json(&body(2 * 1024 * 1024));
    if let Ok(response) = request.send().await {
        assert_eq!(response.status(), 413);
    }
    let reveal = Some(json!({ "vault": "app", "names": ["K"] }));
    let after = world.call(Method::POST, "/v1/operator/secrets/reveal", &world.admin_token(), reveal).await;
    assert_eq!(after.body["missing"], json!(["K"]));
}

#[tokio::test]
async fn a_base_path_stands_before_every_call() {
    let world = World::start_with(|config| config.base_path = "/vault".to_owned()).await;
    assert!(world.server.url().ends_with("/vault"));
    assert_eq!(send(world.request(Method::GET, "/health")).await.status, 200);
    let (_, token) = world.app().await;
    assert_eq!(world.call(Method::GET, "/v1/operator/me", &token, None).await.status, 200);
    let bare = world.server.url().trim_end_matches("/vault").to_owned();
    let http = ferrvault_devserver::outbound::client(None, crate::world::PATIENCE).unwrap();
    for path in ["/health", "/vaults/health", "/vaulthealth"] {
        send(http.get(format!("{bare}{path}"))).await.refused(404, "error");
    }
}

#[tokio::test]
async fn it_listens_beyond_loopback_only_when_that_is_said_and_the_admin_side_never() {
    let dir = tempfile::tempdir().unwrap();
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let admin = Server::start(Config { admin: Some(everywhere), expose: true, ..Config::new(dir.path()) }).await;
    assert!(matches!(admin, Err(StartError::AdminBeyondLoopback(_))));
    let api = Server::start(Config { listen: everywhere, ..Config::new(dir.path()) }).await;
    assert!(matches!(api, Err(StartError::BeyondLoopback(_))));
    let path = Server::start(Config { base_path: "vault/".to_owned(), ..Config::new(dir.path()) }).await;
    assert!(matches!(path, Err(StartError::BasePath(_))));
    let first = Server::start(Config::new(dir.path().join("first"))).await.unwrap();
    let taken = first.url().trim_start_matches("http://").parse().unwrap();
    let second = Server::start(Config { listen: taken, ..Config::new(dir.path().join("second")) }).await;
    assert!(matches!(second, Err(StartError::Listen { .. })));
    let same_data = Server::start(Config::new(dir.path().join("first"))).await.unwrap_err();
    assert!(same_data.to_string().contains("in use by another server"), "{same_data}");
    first.stop().await;
}
