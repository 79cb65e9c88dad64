//! Whom a connection's token may be sent to, and which Secrets are no tokens: whoever may create connections in a namespace
//! is not thereby trusted with its Secrets.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and clippy only knows the functions marked as tests"
)]

use std::sync::Arc;

use ferrvault_api::{FerrVaultConnection, Reason};
use ferrvault_core::refusal::Refusal;
use ferrvault_operator::clock::Clock;
use ferrvault_operator::cluster::access::Cluster;
use ferrvault_operator::ferrvault::{Credentials, Http, OidcLimits, endpoint};
use ferrvault_operator::leader::Leadership;
use ferrvault_testkit::{ApiServer, build};
use ferrvault_vault::AllowedUrl;

async fn bearer_of(type_: &str, url: &str, origins: &[&str]) -> Result<(), Refusal> {
    let api = ApiServer::default();
    api.apply(&build::secret("default", "token").key("token", "fft_token").set(&["type"], type_));
    let connection: FerrVaultConnection =
        build::connection("default", "conn").url(url).token_in("token", "token").typed();
    let cluster = Cluster::new(api.client("default"), Leadership::always());
    let origins = origins.iter().map(|origin| AllowedUrl::parse(origin).unwrap()).collect();
    let limits = OidcLimits { token_dir: "/nowhere".into(), origins };
    let credentials = Credentials::new(Arc::new(Http::default()), Clock::system(), limits);
    let endpoint = endpoint(&connection.spec)?;
    credentials.bearer(&cluster, &connection, &endpoint).await.map(drop)
}

#[tokio::test]
async fn with_a_list_of_origins_tokens_obey_it_as_well() {
    let listed = ["https://vault.example.com"];
    for (case, url, origins, expected) in [
        ("no list, any server", "https://elsewhere.example.com", &[][..], Ok(())),
        ("on the list", "https://vault.example.com/base", &listed[..], Ok(())),
        ("not on the list", "https://elsewhere.example.com", &listed[..], Err(Reason::InvalidConnection)),
        ("another port", "https://vault.example.com:8443", &listed[..], Err(Reason::InvalidConnection)),
        ("below a listed path", "https://v.example.com/a/b", &["https://v.example.com/a"], Ok(())),
        (
            "beside a listed path",
            "https://v.example.com/ab",
            &["https://v.example.com/a"],
            Err(Reason::InvalidConnection),
        ),
        ("the metadata service", "http://169.254.169.254", &[], Err(Reason::InvalidConnection)),
        ("the same as https", "https://[fe80::1]/latest", &[], Err(Reason::InvalidConnection)),
        ("by a name", "https://metadata.google.internal", &[], Err(Reason::InvalidConnection)),
        ("of a person who said so", "https://169.254.1.1", &["https://169.254.1.1"], Ok(())),
    ] {
        let found = bearer_of("Opaque", url, origins).await;
        assert_eq!(found.map_err(|refusal| refusal.reason), expected, "{case}");
    }
}

#[tokio::test]
async fn a_secret_that_grants_rights_is_sent_to_nobody() {
    for type_ in ["bootstrap.kubernetes.io/token", "helm.sh/release.v1"] {
        let refusal = bearer_of(type_, "https://vault.example.com", &[]).await.unwrap_err();
        assert_eq!(refusal.reason, Reason::InvalidConnection, "{type_}");
        assert!(refusal.message.contains(type_), "{}", refusal.message);
    }
}
