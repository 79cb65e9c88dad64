//! Mode `cloud`.

use reqwest::Method;
use serde_json::json;

use crate::world::{Answer, World, send};

async fn reveal(world: &World, path: &str, token: &str) -> Answer {
    send(world.request(Method::GET, path).bearer_auth(token).header("X-FerrVault-Namespace", "team-a")).await
}

const APP: &str = "/api/v1/orgs/acme/projects/shop/vaults/by-name/app/secrets/reveal";

#[tokio::test]
async fn a_reveal_answers_secrets_missing_and_the_vault() {
    let world = World::start().await;
    let vault_id = world.vault("acme", "shop", "app").await;
    world.set(&vault_id, json!({ "A": "one", "B": "two" })).await;
    let cluster = world.token("cluster", "viewer", json!({ "kind": "organization", "organization": "acme" })).await;
    let account = world.account("viewer", &vault_id).await;
    assert!(cluster.starts_with("ffclust_") && account.starts_with("fvsat_"));
    let vault = json!({ "id": vault_id, "name": "app", "environment": "development" });
    let cases = [
        ("all", APP.to_owned(), json!({ "A": "one", "B": "two" }), json!([])),
        ("some missing", format!("{APP}?names=B,Z,Y"), json!({ "B": "two" }), json!(["Y", "Z"])),
        ("an encoded comma", format!("{APP}?names=A%2CB"), json!({ "A": "one", "B": "two" }), json!([])),
        ("the parameter twice", format!("{APP}?names=A&names=B"), json!({ "A": "one", "B": "two" }), json!([])),
        ("no name at all", format!("{APP}?names="), json!({}), json!([])),
    ];
    for token in [&cluster, &account, &world.admin_token()] {
        for (case, path, secrets, missing) in &cases {
            let answer = reveal(&world, path, token).await;
            assert_eq!(answer.status, 200, "{case}");
            assert_eq!(answer.body, json!({ "secrets": secrets, "missing": missing, "vault": vault }), "{case}");
        }
    }
}

#[tokio::test]
async fn segments_are_decoded_after_they_were_split() {
    let world = World::start().await;
    let vault_id = world.vault("a/c", "p q", "ü%2F").await;
    world.set(&vault_id, json!({ "K&=,?": "v" })).await;
    let path = "/api/v1/orgs/a%2Fc/projects/p%20q/vaults/by-name/%C3%BC%252F/secrets/reveal";
    let answer = reveal(&world, path, &world.admin_token()).await;
    assert_eq!(answer.body["vault"]["name"], "ü%2F");
    assert_eq!(answer.body["secrets"], json!({ "K&=,?": "v" }));
}

#[tokio::test]
async fn the_namespace_is_required_and_remembered() {
    let world = World::start().await;
    world.vault("acme", "shop", "app").await;
    let without = world.call(Method::GET, APP, &world.admin_token(), None).await;
    assert!(without.refused(400, "message").contains("X-FerrVault-Namespace"));
    let empty = world.request(Method::GET, APP).bearer_auth(world.admin_token()).header("X-FerrVault-Namespace", " ");
    send(empty).await.refused(400, "message");
    assert_eq!(reveal(&world, APP, &world.admin_token()).await.status, 200);
    let last = world.server.ledger().requests(0).pop().unwrap();
    assert_eq!(last.namespace.as_deref(), Some("team-a"));
}

#[tokio::test]
async fn what_is_missing_on_the_way_is_named_and_what_is_out_of_reach_is_forbidden() {
    let world = World::start().await;
    let vault_id = world.vault("acme", "shop", "app").await;
    world.vault("acme", "shop", "other").await;
    let admin = world.admin_token();
    let cluster = world.token("cluster", "viewer", json!({ "kind": "organization", "organization": "umbrella" })).await;
    let account = world.account("viewer", &vault_id).await;
    let path = |organization: &str, project: &str, vault: &str| {
        format!("/api/v1/orgs/{organization}/projects/{project}/vaults/by-name/{vault}/secrets/reveal")
    };
    let cases = [
        (&admin, path("none", "shop", "app"), 404, "organization \"none\""),
        (&admin, path("acme", "none", "app"), 404, "project \"none\""),
        (&admin, path("acme", "shop", "none"), 404, "vault \"none\""),
        (&cluster, path("acme", "shop", "app"), 403, "organization \"acme\""),
        (&cluster, path("acme", "shop", "none"), 403, "organization \"acme\""),
        (&account, path("acme", "shop", "other"), 403, "vault \"other\""),
    ];
    for (token, path, status, text) in cases {
        let answer = reveal(&world, &path, token).await;
        assert!(answer.refused(status, "message").contains(text), "{path}: {}", answer.body);
    }
    reveal(&world, APP, "ffclust_unknown").await.refused(401, "message");
}
