//! No byte of a token or value in anything this crate prints (invariant I8).

use std::error::Error;
use std::fmt::Write as _;

use ferrvault_core::content::SecretBytes;
use ferrvault_vault::{BearerGrant, ClientOptions, TlsOptions, VaultError};

use crate::server::{Reply, Server, json, response};
use crate::{CANARY, bearer, client, cloud, operator, quick};

/// Everything an error can print, with the errors below it.
fn printed(error: &impl Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, " {cause} {cause:?}");
        source = cause.source();
    }
    text
}

#[tokio::test]
async fn no_error_repeats_a_token_or_a_value() {
    let echo = format!(r#"{{"error":"token fvsat_{CANARY} or value {CANARY}-value is not welcome"}}"#);
    let value = format!("{CANARY}-value");
    let mut replies: Vec<Reply> =
        [400, 401, 403, 404, 409, 429, 500, 503, 301, 799].into_iter().map(|status| json(status, &echo)).collect();
    replies.extend([
        json(200, format!(r#"{{"secrets":"{value}","hits":"{value}"}}"#)),
        json(
            200,
            format!(r#"{{"secrets":{{"A":["{value}"]}},"hits":[{{"name":"A","value":["{value}"]}}],"missing":[]}}"#),
        ),
        json(200, format!(r#"{{"secrets":{{"A":"{value}","#)),
        json(200, format!("\"{value}\"")),
        json(200, value.clone()),
        json(200, format!("[{{\"name\":\"A\",\"version\":\"{value}\"}}]")),
        json(200, format!(r#"{{"access_token":"{value} {value}","expires_at":"2026-01-02T03:04:05Z"}}"#)),
        json(200, format!(r#"{{"access_token":"{value}","expires_at":"{value}"}}"#)),
        response(302, &format!("location: /{value}?token=fvsat_{CANARY}\r\n"), ""),
        response(302, &format!("location: https://fvsat_{CANARY}.example.com/\r\n"), ""),
        response(200, &format!("content-type: fvsat_{CANARY}\r\n"), "{}"),
        response(429, &format!("retry-after: {value}\r\n"), &echo),
        Reply::Bytes(format!("{value}\r\n\r\n").into_bytes()),
        Reply::Reset(format!("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{value}").into_bytes()),
    ]);
    let secret = SecretBytes::from(value);
    for reply in replies {
        let server = Server::start([reply]).await;
        let client = client(&server.url(), quick());
        let token = bearer();
        let errors: Vec<VaultError> = [
            client.reveal(&token, &cloud(&["A"])).await.err(),
            client.reveal(&token, &operator(&["A"])).await.err(),
            client.list(&token).await.err(),
            client.me(&token).await.err(),
            client.oidc_exchange("c", &token).await.err(),
            client.create_secret(&token, "v", "A", &secret).await.err(),
            client.update_secret(&token, "v", "A", &secret).await.err(),
            client.delete_secret(&token, "v", "A").await.err(),
        ]
        .into_iter()
        .flatten()
        .collect();
        assert!(errors.len() >= 4, "a reply meant to fail was understood");
        for error in errors {
            let printed = printed(&error).to_lowercase();
            assert!(!printed.contains(&CANARY.to_lowercase()), "{printed}");
            assert!(error.source().is_none(), "errors below could print what they saw");
        }
    }
}

#[tokio::test]
async fn no_type_prints_a_token_or_a_value() {
    let reveal = format!(r#"{{"secrets":{{"A":"{CANARY}"}}}}"#);
    let grant = format!(r#"{{"access_token":"{CANARY}","expires_at":"2026-01-02T03:04:05Z"}}"#);
    let server = Server::start([json(200, reveal), json(200, grant)]).await;
    let client = client(&server.url(), quick());
    let answer = client.reveal(&bearer(), &cloud(&["A"])).await.unwrap();
    let grant: BearerGrant = client.oidc_exchange("c", &bearer()).await.unwrap();
    let tls = TlsOptions { client_identity_pem: Some(CANARY.into()), ..TlsOptions::default() };
    let options = ClientOptions { tls, ..ClientOptions::default() };
    let printed = format!("{answer:?} {grant:?} {client:?} {:?} {options:#?}", bearer());
    assert!(printed.contains("<9 bytes>") && printed.contains("<hidden>"), "{printed}");
    assert!(!printed.contains(CANARY), "{printed}");
}
