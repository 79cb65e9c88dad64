//! Mode `ferrvault`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{START, World, send};

const REVEAL: &str = "/v1/operator/secrets/reveal";

#[tokio::test]
async fn health_takes_no_token() {
    let world = World::start().await;
    let answer = send(world.request(Method::GET, "/health")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, json!({ "status": "ok" }));
}

#[tokio::test]
async fn a_reveal_answers_hits_and_missing_in_the_types_of_the_contract() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    let time = jiff::Timestamp::from_second(START).unwrap().to_string();
    let hit = |name: &str, value: &str| json!({ "name": name, "value": value, "version": 1, "fetched_at": time });
    let cases = [
        ("all", json!({ "vault": "app" }), json!([hit("A", "one"), hit("B", "two")]), json!([])),
        ("some", json!({ "vault": "app", "names": ["B"] }), json!([hit("B", "two")]), json!([])),
        (
            "some missing",
            json!({ "vault": "app", "names": ["Z", "A", "Y"] }),
            json!([hit("A", "one")]),
            json!(["Y", "Z"]),
        ),
        ("twice the same", json!({ "vault": "app", "names": ["A", "A"] }), json!([hit("A", "one")]), json!([])),
        ("none", json!({ "vault": "app", "names": [] }), json!([]), json!([])),
        ("names null", json!({ "vault": "app", "names": null }), json!([hit("A", "one"), hit("B", "two")]), json!([])),
    ];
    for (case, body, hits, missing) in cases {
        let answer = world.call(Method::POST, REVEAL, &token, Some(body)).await;
        assert_eq!(answer.status, 200, "{case}");
        assert_eq!(answer.body, json!({ "hits": hits, "missing": missing }), "{case}");
        assert_eq!(answer.headers["content-type"], "application/json");
    }
}

#[tokio::test]
async fn list_shows_names_and_versions_and_me_shows_the_token() {
    let world = World::start().await;
    let (vault_id, token) = world.app().await;
    world.set(&vault_id, json!({ "B": "three" })).await;
    let list = world.call(Method::GET, "/v1/operator/secrets/list", &token, None).await;
    let time = jiff::Timestamp::from_second(START).unwrap().to_string();
    assert_eq!(
        list.body,
        json!([
            { "name": "A", "version": 1, "updated_at": time },
            { "name": "B", "version": 2, "updated_at": time },
        ])
    );
    let me = world.call(Method::GET, "/v1/operator/me", &token, None).await.body;
    let token_id = me["token_id"].as_str().unwrap().to_owned();
    assert_eq!(
        me,
        json!({
            "token_id": token_id, "vault_id": vault_id, "vault_slug": "app", "role": "viewer", "token_label": "test",
            "expires_at": null,
        })
    );
    let unbound = world.call(Method::GET, "/v1/operator/me", &world.admin_token(), None).await;
    unbound.refused(403, "error");
}

#[tokio::test]
async fn writing_creates_updates_and_deletes_and_versions_go_on() {
    let world = World::start().await;
    let vault_id = world.vault("default", "default", "app").await;
    let token = world.account("writer", &vault_id).await;
    let secrets = "/v1/operator/secrets";
    let create = |name: &str, value: &str| Some(json!({ "vault": "app", "name": name, "value": value }));
    let update = |value: &str| Some(json!({ "vault": "app", "value": value }));

    let created = world.call(Method::POST, secrets, &token, create("K", "one")).await;
    assert_eq!((created.status.as_u16(), &created.body["version"]), (201, &json!(1)));
    let again = world.call(Method::POST, secrets, &token, create("K", "two")).await;
    assert!(again.refused(409, "error").starts_with("SECRET_EXISTS"));
    let updated = world.call(Method::PUT, "/v1/operator/secrets/K", &token, update("two")).await;
    assert_eq!((updated.status.as_u16(), &updated.body["version"]), (200, &json!(2)));
    let absent = world.call(Method::PUT, "/v1/operator/secrets/L", &token, update("two")).await;
    absent.refused(404, "error");
    let delete = "/v1/operator/secrets/K?vault=app";
    assert_eq!(world.call(Method::DELETE, delete, &token, None).await.status, 204);
    world.call(Method::DELETE, delete, &token, None).await.refused(404, "error");
    let reborn = world.call(Method::POST, secrets, &token, create("K", "three")).await;
    assert_eq!(reborn.body["version"], 4, "the deletion was version 3");
}

#[tokio::test]
async fn names_and_values_of_any_shape_survive_the_way() {
    let world = World::start().await;
    let vault_id = world.vault("default", "default", "app").await;
    let token = world.account("writer", &vault_id).await;
    let long = "x".repeat(1024 * 1024);
    for (name, value) in [("a/b c%ü", "\u{0}\n\"\\\u{1F512}"), ("empty", ""), ("LONG", long.as_str())] {
        let body = json!({ "vault": "app", "name": name, "value": value });
        let created = world.call(Method::POST, "/v1/operator/secrets", &token, Some(body)).await;
        assert_eq!(created.status, 201, "{name}");
        let body = json!({ "vault": "app", "names": [name] });
        let revealed = world.call(Method::POST, REVEAL, &token, Some(body)).await;
        assert_eq!(revealed.body["hits"][0]["value"], value, "{name}");
    }
    let encoded = "/v1/operator/secrets/a%2Fb%20c%25%C3%BC";
    let body = json!({ "vault": "app", "value": "new" });
    assert_eq!(world.call(Method::PUT, encoded, &token, Some(body)).await.body["version"], 2);
    assert_eq!(world.call(Method::DELETE, &format!("{encoded}?vault=app"), &token, None).await.status, 204);
    for name in ["", "..", "a\nb", &"x".repeat(254)] {
        let body = json!({ "vault": "app", "name": name, "value": "v" });
        world.call(Method::POST, "/v1/operator/secrets", &token, Some(body)).await.refused(400, "error");
    }
}

#[tokio::test]
async fn rights_are_refused_with_the_status_that_belongs_to_them() {
    let world = World::start().await;
    let (vault_id, viewer) = world.app().await;
    world.vault("default", "default", "other").await;
    let acme = world.vault("acme", "shop", "app").await;
    let of_acme = world.token("user", "viewer", json!({ "kind": "organization", "organization": "acme" })).await;
    let reveal = |vault: &str| Some(json!({ "vault": vault }));

    let wrong_vault = world.call(Method::POST, REVEAL, &viewer, reveal("other")).await;
    assert!(wrong_vault.refused(403, "error").contains("another vault"));
    let unknown_vault = world.call(Method::POST, REVEAL, &viewer, reveal("nowhere")).await;
    unknown_vault.refused(403, "error");
    assert_eq!(world.call(Method::POST, REVEAL, &viewer, reveal(&vault_id)).await.status, 200);

    let create = Some(json!({ "vault": "app", "name": "K", "value": "v" }));
    let denied = world.call(Method::POST, "/v1/operator/secrets", &viewer, create).await;
    assert!(denied.refused(403, "error").contains("role viewer"));
    let update = Some(json!({ "vault": "app", "value": "v" }));
    world.call(Method::PUT, "/v1/operator/secrets/A", &viewer, update).await.refused(403, "error");
    world.call(Method::DELETE, "/v1/operator/secrets/A?vault=app", &viewer, None).await.refused(403, "error");

    let admin = world.admin_token();
    world.call(Method::POST, REVEAL, &admin, reveal("nowhere")).await.refused(404, "error");
    world.call(Method::GET, "/v1/operator/secrets/list", &admin, None).await.refused(400, "error");
    assert_eq!(world.call(Method::POST, REVEAL, &of_acme, reveal(&acme)).await.status, 200);
    world.call(Method::POST, REVEAL, &of_acme, reveal(&vault_id)).await.refused(403, "error");
    world.call(Method::POST, REVEAL, "fft_unknown", reveal("app")).await.refused(401, "error");
    let anonymous = send(world.request(Method::POST, REVEAL).json(&reveal("app"))).await;
    anonymous.refused(401, "error");
    assert_eq!(anonymous.headers["www-authenticate"], "Bearer");
    let basic = world.request(Method::GET, "/v1/operator/me").basic_auth("user", Some(viewer));
    send(basic).await.refused(401, "error");
}

#[tokio::test]
async fn a_token_without_its_vault_finds_nothing() {
    let world = World::start().await;
    let (vault_id, token) = world.app().await;
    let path = format!("/dev/v1/vaults/{vault_id}");
    assert_eq!(world.call(Method::DELETE, &path, &world.admin_token(), None).await.status, 204);
    world.call(Method::POST, REVEAL, &token, Some(json!({ "vault": "app" }))).await.refused(404, "error");
    world.call(Method::GET, "/v1/operator/me", &token, None).await.refused(404, "error");
}

#[tokio::test]
async fn paths_and_bodies_that_are_not_of_the_api_are_refused_without_quoting_them() {
    let world = World::start().await;
    let (_, token) = world.app().await;
    world.call(Method::GET, "/v1/nothing", &token, None).await.refused(404, "error");
    world.call(Method::GET, "/api/v1/nothing", &token, None).await.refused(404, "message");
    world.call(Method::GET, REVEAL, &token, None).await.refused(405, "error");
    world.call(Method::PUT, "/v1/operator/secrets/%FF", &token, None).await.refused(400, "error");
    for body in ["", "{", "[]", r#"{"vault":"app","names":"canary"}"#, r#"{"vault":["canary"]}"#] {
        let request = world.request(Method::POST, REVEAL).bearer_auth(&token).body(body);
        let answer = send(request).await;
        assert!(!answer.refused(400, "error").contains("canary"), "{}", answer.body);
    }
    assert_eq!(Value::Null, world.call(Method::HEAD, "/health", &token, None).await.body);
}
