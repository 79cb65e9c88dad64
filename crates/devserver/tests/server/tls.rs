//! TLS under the server's own CA.

use ferrvault_devserver::faults::{Action, CallPattern, Rule};
use ferrvault_devserver::{Config, Server, outbound};

use crate::world::PATIENCE;

async fn healthy(server: &Server, ca_pem: Option<&str>) -> Result<bool, String> {
    let http = outbound::client(ca_pem, PATIENCE).unwrap();
    let response = http.get(format!("{}/health", server.url())).send().await;
    response.map(|response| response.status().is_success()).map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn clients_trust_the_ca_of_the_directory_over_restarts_and_no_other() {
    let (dir, other_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = |dir: std::path::PathBuf| Server::start(Config { tls: true, ..Config::new(dir) });
    let server = start(dir.path().to_owned()).await.unwrap();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    let ca_file = server.address().ca.clone().unwrap();
    let ca = std::fs::read_to_string(&ca_file).unwrap();
    assert_eq!(healthy(&server, Some(&ca)).await, Ok(true));
    assert!(healthy(&server, None).await.unwrap_err().contains("UnknownIssuer"));

    let other = start(other_dir.path().to_owned()).await.unwrap();
    assert!(
        healthy(&other, Some(&ca)).await.is_err(),
        "the CA of another directory has the same name, not the same key"
    );
    other.stop().await;

    server.stop().await;
    let server = start(dir.path().to_owned()).await.unwrap();
    assert_eq!(std::fs::read_to_string(&ca_file).unwrap(), ca);
    assert_eq!(healthy(&server, Some(&ca)).await, Ok(true));

    let plain = server.url().replace("https://", "http://");
    let http = outbound::client(None, PATIENCE).unwrap();
    assert!(http.get(format!("{plain}/health")).send().await.is_err(), "no plain HTTP on a TLS port");
    server.stop().await;
}

#[tokio::test]
async fn a_connection_without_a_handshake_does_not_hold_up_others_or_the_stop() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(Config { tls: true, ..Config::new(dir.path()) }).await.unwrap();
    let address = server.url().trim_start_matches("https://").to_owned();
    let silent = tokio::net::TcpStream::connect(address).await.unwrap();
    let ca = std::fs::read_to_string(server.address().ca.clone().unwrap()).unwrap();
    assert_eq!(healthy(&server, Some(&ca)).await, Ok(true));
    tokio::time::timeout(PATIENCE, server.stop()).await.unwrap();
    drop(silent);
}

#[tokio::test]
async fn a_damaged_ca_is_named_and_a_half_made_one_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let start = || Server::start(Config { tls: true, ..Config::new(dir.path()) });
    start().await.unwrap().stop().await;
    // A crash between the key and the certificate leaves the key alone.
    std::fs::remove_file(dir.path().join("ca.pem")).unwrap();
    let server = start().await.unwrap();
    let ca = std::fs::read_to_string(dir.path().join("ca.pem")).unwrap();
    assert_eq!(healthy(&server, Some(&ca)).await, Ok(true));
    server.stop().await;
    std::fs::write(dir.path().join("ca-key.pem"), "no key").unwrap();
    let error = start().await.unwrap_err().to_string();
    assert!(error.contains("ca-key.pem") && !error.contains("no key"), "{error}");
}

#[tokio::test]
async fn a_cut_connection_says_no_goodbye_in_tls_either() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(Config { tls: true, ..Config::new(dir.path()) }).await.unwrap();
    let ca = std::fs::read_to_string(server.address().ca.clone().unwrap()).unwrap();
    let http = outbound::client(Some(&ca), PATIENCE).unwrap();
    let health = || http.get(format!("{}/health", server.url())).send();
    let once = |action| Rule { calls: CallPattern::default(), action, skip: 0, times: Some(1) };
    server.faults().add(once(Action::Reset));
    assert!(format!("{:?}", health().await.unwrap_err()).contains("ConnectionReset"));
    server.faults().add(once(Action::ResetBody));
    let begun = health().await.unwrap();
    assert_eq!(begun.status(), 200);
    assert!(format!("{:?}", begun.bytes().await.unwrap_err()).contains("ConnectionReset"));
    assert_eq!(health().await.unwrap().status(), 200);
    server.stop().await;
}
