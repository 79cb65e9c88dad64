//! What stands on the wire for each call.

use ferrvault_core::content::SecretBytes;
use ferrvault_vault::{Bearer, RevealRequest, Role, Scope, VaultError};

use crate::server::{Server, json, response};
use crate::{CANARY, bearer, client, cloud, operator, quick};

/// First line, headers in lower case without those that only the transport cares for, and body.
fn parts(request: &str) -> (String, Vec<String>, String) {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let first = lines.next().unwrap().to_owned();
    let mut headers: Vec<String> = lines
        .map(|line| line.split_once(": ").map(|(name, value)| format!("{}: {value}", name.to_lowercase())).unwrap())
        .filter(|line| !line.starts_with("host: ") && !line.starts_with("content-length: "))
        .collect();
    headers.sort();
    (first, headers, body.to_owned())
}

fn common() -> [String; 3] {
    let user_agent = format!("user-agent: ferrvault-operator/{}", env!("CARGO_PKG_VERSION"));
    ["accept-encoding: gzip".to_owned(), "accept: application/json".to_owned(), user_agent]
}

fn authorized() -> [String; 4] {
    let [encoding, accept, user_agent] = common();
    [encoding, accept, format!("authorization: Bearer fvsat_{CANARY}"), user_agent]
}

#[tokio::test]
async fn the_cloud_reveal_is_a_get_with_the_namespace() {
    let server = Server::start([json(200, r#"{"secrets":{"A":"1","B":"2"},"missing":[]}"#)]).await;
    let answer = client(&server.url(), quick()).reveal(&bearer(), &cloud(&["B", "A", "B", "C"])).await.unwrap();
    assert_eq!(answer.missing, ["C"]);
    assert_eq!(answer.content.0["A"].expose(), b"1");
    let requests = server.requests();
    let (first, headers, body) = parts(&requests[0]);
    let path = "/api/v1/orgs/acme/projects/shop/vaults/by-name/prod/secrets/reveal";
    assert_eq!(first, format!("GET {path}?names=A,B,C HTTP/1.1"));
    let mut expected = authorized().to_vec();
    expected.push("x-ferrvault-namespace: team-a".to_owned());
    assert_eq!(headers, expected);
    assert_eq!((body.as_str(), requests.len()), ("", 1));
}

#[tokio::test]
async fn names_cannot_leave_their_place_in_the_address() {
    let server = Server::start([json(200, r#"{"secrets":{}}"#)]).await;
    let request = RevealRequest {
        scope: Scope::Cloud { organization: "a/../b".into(), project: "p?x=1#y".into(), namespace: "team-a".into() },
        vault: "%2e%2e\\ü".into(),
        names: vec!["A&names=B".into(), "..".into()],
        namespace: None,
    };
    client(&format!("{}/ferr/vault/", server.url()), quick()).reveal(&bearer(), &request).await.unwrap();
    let (first, _, _) = parts(&server.requests()[0]);
    assert_eq!(
        first,
        "GET /ferr/vault/api/v1/orgs/a%2F..%2Fb/projects/p%3Fx%3D1%23y/vaults/by-name/%252e%252e%5C%C3%BC\
         /secrets/reveal?names=..,A%26names%3DB HTTP/1.1"
    );
}

#[tokio::test]
async fn the_operator_reveal_is_a_post_that_leaves_names_out_for_all() {
    let answer = r#"{"hits":[{"name":"A,B","value":"\ud83d\ude00","version":3,"fetched_at":"2026-01-02T03:04:05Z"}],"missing":[]}"#;
    let server = Server::start([json(200, answer)]).await;
    let client = client(&server.url(), quick());
    for request in [operator(&["A,B", "A,B", "\"C\""]), operator(&[])] {
        let answer = client.reveal(&bearer(), &request).await.unwrap();
        assert_eq!(answer.content.0["A,B"].expose(), "😀".as_bytes());
    }
    let requests = server.requests();
    let (first, headers, body) = parts(&requests[0]);
    assert_eq!(first, "POST /v1/operator/secrets/reveal HTTP/1.1");
    let mut expected = authorized().to_vec();
    expected.insert(3, "content-type: application/json".to_owned());
    assert_eq!(headers, expected);
    assert_eq!(body, r#"{"vault":"prod","names":["\"C\"","A,B"]}"#);
    assert_eq!(parts(&requests[1]).2, r#"{"vault":"prod"}"#);
}

#[tokio::test]
async fn the_operator_reveal_names_a_namespace_where_one_is_given() {
    let server = Server::start([json(200, r#"{"hits":[],"missing":[]}"#)]).await;
    let client = client(&server.url(), quick());
    for namespace in [Some("team-a"), None] {
        let request = RevealRequest { namespace: namespace.map(str::to_owned), ..operator(&[]) };
        client.reveal(&bearer(), &request).await.unwrap();
    }
    let named = |request: &String| {
        let (_, headers, body) = parts(request);
        assert_eq!(body, r#"{"vault":"prod"}"#, "what is asked is the same");
        headers.into_iter().find(|header| header.starts_with("x-ferrvault-namespace"))
    };
    let found: Vec<_> = server.requests().iter().map(named).collect();
    assert_eq!(found, [Some("x-ferrvault-namespace: team-a".to_owned()), None]);
}

#[tokio::test]
async fn metadata_services_are_not_called() {
    for url in ["http://169.254.169.254", "http://[fe80::1]:8200/x", "http://metadata.google.internal"] {
        let client = client(url, quick());
        assert_eq!(client.reveal(&bearer(), &operator(&[])).await, Err(VaultError::AddressRefused), "{url}");
        assert_eq!(client.health().await, Err(VaultError::AddressRefused), "{url}");
        let jwt = Bearer::new(&SecretBytes::from("eyJ.x.sig")).unwrap();
        let refused = client.oidc_exchange("0af3c6e2-0000-4000-8000-000000000000", &jwt).await;
        assert_eq!(refused.map(drop), Err(VaultError::AddressRefused), "{url}");
    }
}

#[tokio::test]
async fn health_and_exchange_send_no_token() {
    let grant =
        format!(r#"{{"access_token":"ffclust_{CANARY}","expires_at":"2026-01-02T03:04:05Z","token_type":"Bearer"}}"#);
    let server = Server::start([response(200, "content-type: text/plain\r\n", "well"), json(200, grant)]).await;
    let client = client(&server.url(), quick());
    client.health().await.unwrap();
    let jwt = Bearer::new(&SecretBytes::from(format!("eyJ.{CANARY}.sig\n"))).unwrap();
    let grant = client.oidc_exchange("0af3c6e2-0000-4000-8000-000000000000", &jwt).await.unwrap();
    assert_eq!(grant.expires_at.to_string(), "2026-01-02T03:04:05Z");
    let requests = server.requests();
    let (first, headers, _) = parts(&requests[0]);
    assert_eq!((first.as_str(), headers), ("GET /health HTTP/1.1", common().to_vec()));
    let (first, headers, body) = parts(&requests[1]);
    assert_eq!(first, "POST /api/v1/clusters/oidc-exchange HTTP/1.1");
    assert!(!headers.iter().any(|header| header.starts_with("authorization")), "{headers:?}");
    assert_eq!(body, format!(r#"{{"cluster_id":"0af3c6e2-0000-4000-8000-000000000000","token":"eyJ.{CANARY}.sig"}}"#));
}

#[tokio::test]
async fn list_and_me_are_gets() {
    let list = r#"[{"name":"A","version":7,"updated_at":"2026-01-02T03:04:05Z"}]"#;
    let me =
        r#"{"token_id":"t","vault_id":"i","vault_slug":"prod","role":"viewer","token_label":"ci","expires_at":null}"#;
    let server = Server::start([json(200, list), json(200, me)]).await;
    let client = client(&server.url(), quick());
    assert_eq!(client.list(&bearer()).await.unwrap()[0].version, 7);
    assert_eq!(client.me(&bearer()).await.unwrap().role, Role::Viewer);
    let requests = server.requests();
    for (request, line) in
        requests.iter().zip(["GET /v1/operator/secrets/list HTTP/1.1", "GET /v1/operator/me HTTP/1.1"])
    {
        let (first, headers, body) = parts(request);
        assert_eq!((first.as_str(), headers, body.as_str()), (line, authorized().to_vec(), ""));
    }
}

#[tokio::test]
async fn the_write_side_sends_values_in_bodies_only() {
    let server = Server::start([json(201, "{}"), response(204, "", ""), response(204, "", "")]).await;
    let client = client(&server.url(), quick());
    let value = SecretBytes::from(format!("{CANARY}\n\"é"));
    client.create_secret(&bearer(), "prod", "A/B", &value).await.unwrap();
    client.update_secret(&bearer(), "prod", "A/B", &value).await.unwrap();
    client.delete_secret(&bearer(), "pr&od", "A/B").await.unwrap();
    let requests = server.requests();
    for (request, (line, body)) in requests.iter().zip([
        ("POST /v1/operator/secrets HTTP/1.1", format!(r#"{{"vault":"prod","name":"A/B","value":"{CANARY}\n\"é"}}"#)),
        ("PUT /v1/operator/secrets/A%2FB HTTP/1.1", format!(r#"{{"vault":"prod","value":"{CANARY}\n\"é"}}"#)),
        ("DELETE /v1/operator/secrets/A%2FB?vault=pr%26od HTTP/1.1", String::new()),
    ]) {
        let (first, headers, sent) = parts(request);
        assert_eq!((first.as_str(), sent), (line, body));
        assert!(headers.contains(&format!("authorization: Bearer fvsat_{CANARY}")), "{headers:?}");
    }
    assert_eq!(requests.len(), 3);
}

#[tokio::test]
async fn what_the_wire_cannot_carry_is_refused_before_any_call() {
    let server = Server::start([json(200, "{}")]).await;
    let client = client(&server.url(), quick());
    let token = bearer();
    let value = SecretBytes::from("x");
    let scope = |organization: &str, project: &str, namespace: &str| RevealRequest {
        scope: Scope::Cloud { organization: organization.into(), project: project.into(), namespace: namespace.into() },
        ..operator(&[])
    };
    let long: Vec<String> = (0..200).map(|index| format!("{index:040}")).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    let mut refused = Vec::new();
    for request in [
        cloud(&["A", "B,C"]),
        cloud(&[""]),
        cloud(&["A\n"]),
        operator(&[""]),
        operator(&["A\u{7f}"]),
        scope("..", "p", "n"),
        scope("o", "", "n"),
        scope("o", "p", "n\r\nx: y"),
        RevealRequest { namespace: Some("n\r\nx: y".into()), ..operator(&[]) },
        RevealRequest { vault: String::new(), ..operator(&[]) },
        RevealRequest { vault: ".".into(), ..cloud(&[]) },
        cloud(&long),
    ] {
        refused.push(client.reveal(&token, &request).await.unwrap_err());
    }
    refused.push(client.create_secret(&token, "", "A", &value).await.unwrap_err());
    refused.push(client.create_secret(&token, "v", "", &value).await.unwrap_err());
    refused.push(client.create_secret(&token, "v", "A", &SecretBytes::new(vec![0xff])).await.unwrap_err());
    refused.push(client.update_secret(&token, "v", "..", &value).await.unwrap_err());
    refused.push(client.delete_secret(&token, "v\0", "A").await.unwrap_err());
    refused.push(client.oidc_exchange("", &token).await.unwrap_err());
    for error in &refused {
        assert!(
            matches!(
                error,
                VaultError::UnencodableKey { .. }
                    | VaultError::UnencodableName { .. }
                    | VaultError::UnencodableValue { .. }
                    | VaultError::TooManyNames { .. }
            ),
            "{error:?}"
        );
    }
    assert!(refused[0].to_string().contains("\"B,C\""), "{}", refused[0]);
    // 65 bytes of path, `?names=`, and 200 names of 40 bytes with 199 commas.
    let path = "/api/v1/orgs/acme/projects/shop/vaults/by-name/prod/secrets/reveal".len();
    assert_eq!(refused[11], VaultError::TooManyNames { bytes: path + 7 + 200 * 40 + 199, limit: 8_000 });
    assert_eq!(server.count(), 0, "nothing may be sent");
    // The other mode has room for as many.
    let server = Server::start([json(200, r#"{"hits":[],"missing":[]}"#)]).await;
    let answer = crate::client(&server.url(), quick()).reveal(&token, &operator(&long)).await.unwrap();
    assert_eq!(answer.missing.len(), 200);
}
