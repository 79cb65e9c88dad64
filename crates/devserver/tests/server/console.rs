//! The calls behind the client verbs.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn managing_takes_an_admin_of_the_whole_server() {
    let world = World::start().await;
    let (vault_id, viewer) = world.app().await;
    let bound_admin = world.account("admin", &vault_id).await;
    let calls = [
        (Method::POST, "/dev/v1/vaults".to_owned()),
        (Method::GET, "/dev/v1/tokens".to_owned()),
        (Method::POST, "/dev/v1/tokens".to_owned()),
        (Method::DELETE, "/dev/v1/tokens/x".to_owned()),
        (Method::GET, "/dev/v1/clusters".to_owned()),
        (Method::POST, "/dev/v1/clusters".to_owned()),
        (Method::DELETE, "/dev/v1/clusters/x".to_owned()),
        (Method::DELETE, format!("/dev/v1/vaults/{vault_id}")),
    ];
    for (method, path) in calls {
        for token in [&viewer, &bound_admin] {
            world.call(method.clone(), &path, token, Some(json!({}))).await.refused(403, "error");
        }
        world.call(method.clone(), &path, "fft_unknown", Some(json!({}))).await.refused(401, "error");
        let admitted = world.call(method.clone(), &path, &world.admin_token(), None).await.status.as_u16();
        assert!(![401, 403].contains(&admitted), "{method} {path}: {admitted}");
    }
}

#[tokio::test]
async fn vaults_are_listed_as_far_as_a_token_reaches() {
    let world = World::start().await;
    let (_, viewer) = world.app().await;
    world.vault("acme", "shop", "app").await;
    let again = world.call(Method::POST, "/dev/v1/vaults", &world.admin_token(), Some(json!({ "name": "app" }))).await;
    assert!(again.refused(409, "error").contains("default/default"));
    let names = |answer: crate::world::Answer| -> Vec<String> {
        let vaults = answer.body.as_array().unwrap().clone();
        vaults.iter().map(|vault| format!("{}/{}", vault["organization"], vault["name"])).collect()
    };
    let all = world.call(Method::GET, "/dev/v1/vaults", &world.admin_token(), None).await;
    assert_eq!(names(all), ["\"acme\"/\"app\"", "\"default\"/\"app\""]);
    let own = world.call(Method::GET, "/dev/v1/vaults", &viewer, None).await;
    assert_eq!(names(own), ["\"default\"/\"app\""]);
}

#[tokio::test]
async fn several_secrets_are_written_as_one_change_by_whoever_may_write() {
    let world = World::start().await;
    let (vault_id, viewer) = world.app().await;
    let path = format!("/dev/v1/vaults/{vault_id}/secrets");
    let body = || Some(json!({ "values": { "A": "new", "C": "three" } }));
    world.call(Method::PUT, &path, &viewer, body()).await.refused(403, "error");
    let writer = world.account("writer", &vault_id).await;
    let written = world.call(Method::PUT, &path, &writer, body()).await;
    let versions: Vec<_> = written.body.as_array().unwrap().iter().map(|secret| secret["version"].clone()).collect();
    assert_eq!(versions, [2, 1]);
    let refused = Some(json!({ "values": { "A": "newer", "": "nameless" } }));
    world.call(Method::PUT, &path, &writer, refused).await.refused(400, "error");
    let reveal = Some(json!({ "vault": "app", "names": ["A"] }));
    let after = world.call(Method::POST, "/v1/operator/secrets/reveal", &viewer, reveal).await;
    assert_eq!(after.body["hits"][0]["value"], "new", "one refused name leaves the others unwritten");
}

#[tokio::test]
async fn tokens_end_when_they_expire_or_are_revoked() {
    let world = World::start().await;
    let (vault_id, _) = world.app().await;
    let admin = world.admin_token();
    let scope = json!({ "kind": "vault", "vault_id": vault_id });
    let body = json!({ "kind": "service-account", "role": "viewer", "scope": scope, "expires_in_seconds": 90 });
    let created = world.call(Method::POST, "/dev/v1/tokens", &admin, Some(body)).await;
    let (token, id) = (created.body["token"].as_str().unwrap(), created.body["record"]["id"].as_str().unwrap());
    let me = || world.call(Method::GET, "/v1/operator/me", token, None);
    assert_eq!(me().await.body["expires_at"], created.body["record"]["expires_at"]);
    world.hands.advance(SignedDuration::from_secs(89));
    assert_eq!(me().await.status, 200);
    world.hands.advance(SignedDuration::from_secs(1));
    assert!(me().await.refused(401, "error").contains("expired"));

    let other = world.account("viewer", &vault_id).await;
    let listed = world.call(Method::GET, "/dev/v1/tokens", &admin, None).await;
    assert!(!listed.body.to_string().contains(&other), "a list holds no token");
    let newest = listed.body.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    assert_ne!(newest, id);
    let path = format!("/dev/v1/tokens/{newest}");
    assert_eq!(world.call(Method::DELETE, &path, &admin, None).await.status, 204);
    let again = world.call(Method::DELETE, &path, &admin, None).await;
    assert_eq!(again.refused(404, "error"), "there is no token with this identifier; see `token list`");
    world.call(Method::GET, "/v1/operator/me", &other, None).await.refused(401, "error");
}

#[tokio::test]
async fn what_cannot_be_is_refused_when_it_is_asked_for() {
    let world = World::start().await;
    let admin = world.admin_token();
    let keys = json!({ "document": { "keys": [] } });
    let cases = [
        ("/dev/v1/vaults", json!({ "name": " " }), 400),
        ("/dev/v1/vaults", json!({ "name": "a", "organisation": "typing error" }), 400),
        ("/dev/v1/tokens", json!({ "kind": "service-account", "role": "viewer", "scope": { "kind": "server" } }), 400),
        ("/dev/v1/tokens", json!({ "kind": "user", "role": "owner", "scope": { "kind": "server" } }), 400),
        (
            "/dev/v1/tokens",
            json!({ "kind": "user", "role": "admin", "scope": { "kind": "vault", "vault_id": "x" } }),
            404,
        ),
        ("/dev/v1/clusters", json!({ "issuer": "x", "keys": keys }), 400),
        ("/dev/v1/clusters", json!({ "id": "short", "issuer": "x", "keys": { "url": { "url": "http://h" } } }), 400),
        ("/dev/v1/clusters", json!({ "issuer": "x", "keys": { "url": { "url": "https://h" } } }), 400),
        ("/dev/v1/clusters", json!({ "issuer": "x", "keys": { "url": { "url": "file:///etc/passwd" } } }), 400),
    ];
    for (path, body, status) in cases {
        world.call(Method::POST, path, &admin, Some(body.clone())).await.refused(status, "error");
    }
}
