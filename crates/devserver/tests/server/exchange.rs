//! The OIDC exchange, with a cluster key made here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use reqwest::Method;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{Answer, START, World, send};

const CLUSTER: &str = "0b8f4ad0-6f5c-4f0e-9d39-3c5f3f2a7b11";
const ISSUER: &str = "https://kubernetes.default.svc";
const EXCHANGE: &str = "/api/v1/clusters/oidc-exchange";

struct ClusterKey(EcdsaKeyPair);

impl ClusterKey {
    fn new() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap())
    }

    fn jwks(&self) -> Value {
        let (x, y) = self.0.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "k", "alg": "ES256", "use": "sig", "x": x, "y": y }] })
    }

    fn jwt(&self, audience: &str) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({
            "iss": ISSUER, "aud": [audience], "exp": START + 600, "sub": "system:serviceaccount:ferrvault:operator",
        });
        let message = format!("{}.{}", part(json!({ "alg": "ES256", "kid": "k" })), part(claims));
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

async fn register(world: &World, keys: Value) {
    let body = json!({ "id": CLUSTER, "issuer": ISSUER, "organization": "acme", "keys": keys });
    let answer = world.call(Method::POST, "/dev/v1/clusters", &world.admin_token(), Some(body)).await;
    assert_eq!(answer.body, json!({ "id": CLUSTER, "audience": "https://ferrflow.com" }));
}

async fn exchange(world: &World, cluster: &str, jwt: &str) -> Answer {
    let body = json!({ "cluster_id": cluster, "token": jwt });
    send(world.request(Method::POST, EXCHANGE).json(&body)).await
}

#[tokio::test]
async fn a_jwt_of_the_cluster_buys_fifteen_minutes_of_reading() {
    let world = World::start().await;
    let key = ClusterKey::new();
    register(&world, json!({ "document": key.jwks() })).await;
    let vault_id = world.vault("acme", "shop", "app").await;
    world.set(&vault_id, json!({ "A": "one" })).await;

    let answer = exchange(&world, CLUSTER, &key.jwt("https://ferrflow.com")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let end = jiff::Timestamp::from_second(START + 900).unwrap().to_string();
    assert_eq!((&answer.body["expires_at"], &answer.body["token_type"]), (&json!(end), &json!("Bearer")));
    assert_eq!(answer.body.as_object().unwrap().len(), 3);
    let bearer = answer.body["access_token"].as_str().unwrap();
    let path = "/api/v1/orgs/acme/projects/shop/vaults/by-name/app/secrets/reveal";
    let reveal = || send(world.request(Method::GET, path).bearer_auth(bearer).header("X-FerrVault-Namespace", "n"));
    assert_eq!(reveal().await.body["secrets"], json!({ "A": "one" }));
    let write = Some(json!({ "vault": vault_id, "name": "B", "value": "two" }));
    world.call(Method::POST, "/v1/operator/secrets", bearer, write).await.refused(403, "error");
    world.hands.advance(SignedDuration::from_secs(900));
    reveal().await.refused(401, "message");
}

#[tokio::test]
async fn what_does_not_hold_is_refused_and_never_quoted() {
    let world = World::start().await;
    let (key, stranger) = (ClusterKey::new(), ClusterKey::new());
    register(&world, json!({ "document": key.jwks() })).await;
    let good = key.jwt("https://ferrflow.com");
    let unknown = "00000000-0000-4000-8000-000000000000";
    let cases = [
        ("a stranger's signature", CLUSTER, stranger.jwt("https://ferrflow.com"), 401, "signature"),
        ("another audience", CLUSTER, key.jwt("https://other"), 401, "audience"),
        ("no JWT at all", CLUSTER, "canary".to_owned(), 401, "not a signed JWT"),
        ("an unknown cluster", unknown, good.clone(), 404, unknown),
    ];
    for (case, cluster, jwt, status, text) in cases {
        let answer = exchange(&world, cluster, &jwt).await;
        let message = answer.refused(status, "message");
        assert!(message.contains(text) && !message.contains(&jwt), "{case}: {message}");
    }
    send(world.request(Method::POST, EXCHANGE).json(&json!({ "token": good }))).await.refused(400, "message");
    let upper = exchange(&world, &CLUSTER.to_uppercase(), &good).await;
    assert_eq!(upper.status, 200, "a UUID is the same in capitals");
    world.hands.advance(SignedDuration::from_secs(700));
    let late = exchange(&world, CLUSTER, &good).await;
    assert!(late.refused(401, "message").contains("expired"));
    let path = format!("/dev/v1/clusters/{CLUSTER}");
    assert_eq!(world.call(Method::DELETE, &path, &world.admin_token(), None).await.status, 204);
    exchange(&world, CLUSTER, &good).await.refused(404, "message");
}

#[tokio::test]
async fn keys_at_a_url_are_asked_for_at_each_exchange() {
    let world = World::start().await;
    let (old, new) = (ClusterKey::new(), ClusterKey::new());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks", listener.local_addr().unwrap());
    let documents = [Some(old.jwks()), Some(new.jwks()), None];
    let keys = tokio::spawn(async move {
        for document in documents {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            assert!(head[..read].starts_with(b"GET /jwks "));
            let (status, body) = document.map_or(("503 Busy", String::new()), |keys| ("200 OK", keys.to_string()));
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    register(&world, json!({ "url": { "url": url } })).await;
    assert_eq!(exchange(&world, CLUSTER, &old.jwt("https://ferrflow.com")).await.status, 200);
    let rotated_away = exchange(&world, CLUSTER, &old.jwt("https://ferrflow.com")).await;
    rotated_away.refused(401, "message");
    let unavailable = exchange(&world, CLUSTER, &new.jwt("https://ferrflow.com")).await;
    assert!(unavailable.refused(502, "message").contains("503"));
    keys.await.unwrap();
}
