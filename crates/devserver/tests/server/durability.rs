//! What a restart finds.

use std::time::Instant;

use ferrvault_devserver::{Config, Server, StartError, outbound};
use reqwest::Method;
use serde_json::json;

use crate::world::{PATIENCE, World, send};

/// A dropped server closes its file when the last of its tasks is gone, which is soon and not at once.
async fn restart(dir: &std::path::Path) -> Server {
    let start = Instant::now();
    loop {
        match Server::start(Config::new(dir)).await {
            Ok(server) => return server,
            Err(StartError::Store(ferrvault_devserver::store::StoreError::InUse { .. }))
                if start.elapsed() < PATIENCE =>
            {
                tokio::task::yield_now().await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn everything_answered_is_there_after_the_server_was_dropped() {
    let world = World::start().await;
    let (vault_id, token) = world.app().await;
    let (admin, dir) = (world.admin_token(), world.dir);
    drop(world.server);
    let server = restart(dir.path()).await;
    assert_eq!(server.admin_token().expose(), admin, "the admin token is made once");
    let http = outbound::client(None, PATIENCE).unwrap();
    let url = format!("{}/v1/operator/secrets/reveal", server.url());
    let answer = send(http.post(&url).bearer_auth(&token).json(&json!({ "vault": vault_id }))).await;
    let values: Vec<_> = answer.body["hits"].as_array().unwrap().iter().map(|hit| hit["value"].clone()).collect();
    assert_eq!(values, ["one", "two"]);
    let deleted = format!("{}/dev/v1/vaults/{vault_id}", server.url());
    assert_eq!(send(http.request(Method::DELETE, deleted).bearer_auth(&admin)).await.status, 204);
    server.stop().await;
    let server = Server::start(Config::new(dir.path())).await.unwrap();
    let url = format!("{}/v1/operator/secrets/reveal", server.url());
    send(http.post(&url).bearer_auth(&token).json(&json!({ "vault": vault_id }))).await.refused(404, "error");
    server.stop().await;
}

#[tokio::test]
async fn a_stopped_server_is_no_longer_announced() {
    let world = World::start().await;
    let announced = world.dir.path().join("server.json");
    assert!(std::fs::read_to_string(&announced).unwrap().contains(world.server.url()));
    world.server.stop().await;
    assert!(!announced.exists());
}
