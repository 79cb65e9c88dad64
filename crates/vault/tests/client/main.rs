//! The client against servers on loopback: what it sends, byte for byte, and what it makes of every answer.
//!
//! The servers are scripted sockets rather than a web framework, because most of what is tested here a framework would
//! refuse to send.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed, and clippy only knows the functions marked as tests"
)]

mod deadline;
mod failures;
mod limits;
mod requests;
mod secrecy;
mod server;
mod tls;

use std::time::Duration;

use ferrvault_core::content::SecretBytes;
use ferrvault_vault::{Bearer, ClientOptions, Endpoint, RetryPolicy, RevealRequest, Scope, VaultClient};

/// Occurs in every token and value of these tests, and nowhere in what the client prints.
const CANARY: &str = "canary7Qx";

/// Three attempts with pauses of a millisecond. An attempt has far more time than loopback needs, so that a busy machine
/// turns no answer into a timeout.
fn quick() -> RetryPolicy {
    RetryPolicy {
        attempts: 3,
        attempt_timeout: Duration::from_secs(30),
        delays: vec![Duration::from_millis(1)],
        jitter_percent: 25,
    }
}

/// As [`quick`], for servers that never answer: the time passes for real.
fn impatient() -> RetryPolicy {
    RetryPolicy { attempt_timeout: Duration::from_millis(100), ..quick() }
}

fn client(url: &str, retry: RetryPolicy) -> VaultClient {
    let endpoint = Endpoint::parse(url).unwrap();
    VaultClient::new(endpoint, ClientOptions { retry, ..ClientOptions::default() }).unwrap()
}

fn bearer() -> Bearer {
    Bearer::new(&SecretBytes::from(format!("fvsat_{CANARY}"))).unwrap()
}

fn cloud(names: &[&str]) -> RevealRequest {
    let scope = Scope::Cloud { organization: "acme".into(), project: "shop".into(), namespace: "team-a".into() };
    RevealRequest { scope, ..operator(names) }
}

fn operator(names: &[&str]) -> RevealRequest {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    RevealRequest { scope: Scope::FerrVault, vault: "prod".into(), names, namespace: None }
}
