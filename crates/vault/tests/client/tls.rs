//! Whom the client trusts.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ferrvault_core::content::SecretBytes;
use ferrvault_vault::{ClientOptions, Endpoint, Pin, TlsOptions, VaultClient, VaultError};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PublicKeyData as _, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::PrivateKeyDer;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::quick;
use crate::server::read_request;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        (params.signed_by(&key, &self.0).unwrap(), key)
    }
}

/// A TLS server that answers every request with 200; without a client certificate of `clients`, if given, with an alert.
struct TlsServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl TlsServer {
    async fn start((certificate, key): (&rcgen::Certificate, &KeyPair), clients: Option<&Authority>) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // One after the other is enough. A refused handshake is what some of the tests are about.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                if read_request(&mut stream).await.is_some() {
                    let _ =
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
                    let _ = stream.shutdown().await;
                }
            }
        });
        Self { address, task }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn health(host: &str, address: SocketAddr, tls: TlsOptions) -> Result<(), VaultError> {
    let endpoint = Endpoint::parse(&format!("https://{host}:{}", address.port())).unwrap();
    let options = ClientOptions { tls, retry: quick(), ..ClientOptions::default() };
    VaultClient::new(endpoint, options).unwrap().health().await
}

fn trusting(authority: &Authority) -> TlsOptions {
    TlsOptions { extra_ca_pem: Some(authority.0.pem().into()), ..TlsOptions::default() }
}

fn why(result: Result<(), VaultError>) -> String {
    match result {
        Err(VaultError::RefusedByTls { why }) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn only_a_known_issuer_is_trusted() {
    let (known, unknown) = (Authority::new("known"), Authority::new("unknown"));
    let (certificate, key) = known.issue("127.0.0.1", |_| ());
    let server = TlsServer::start((&certificate, &key), None).await;
    assert_eq!(health("127.0.0.1", server.address, trusting(&known)).await, Ok(()));
    let refused = why(health("127.0.0.1", server.address, trusting(&unknown)).await);
    assert!(refused.contains("issuer") && refused.contains("CA"), "{refused}");
    let replaced = Authority::new("known");
    let refused = why(health("127.0.0.1", server.address, trusting(&replaced)).await);
    assert!(refused.contains("CA that is in use now"), "{refused}");
}

#[tokio::test]
async fn a_certificate_must_fit_name_and_time() {
    let authority = Authority::new("ca");
    for (name, issued_for, change, expected) in [
        ("another name", "vault.example.com", (|_| ()) as fn(&mut CertificateParams), "another host name"),
        ("in the past", "127.0.0.1", |params| params.not_after = date_time_ymd(2001, 1, 1), "expired"),
        ("in the future", "127.0.0.1", |params| params.not_before = date_time_ymd(4000, 1, 1), "not valid yet"),
    ] {
        let (certificate, key) = authority.issue(issued_for, change);
        let server = TlsServer::start((&certificate, &key), None).await;
        let why = why(health("127.0.0.1", server.address, trusting(&authority)).await);
        assert!(why.contains(expected), "{name}: {why}");
    }
}

#[tokio::test]
async fn pins_come_on_top_of_the_chain() {
    let authority = Authority::new("ca");
    let (certificate, key) = authority.issue("127.0.0.1", |_| ());
    let server = TlsServer::start((&certificate, &key), None).await;
    let pin = |key: &KeyPair| -> Pin {
        let digest = <sha2::Sha256 as sha2::Digest>::digest(key.subject_public_key_info());
        STANDARD.encode(digest).parse().unwrap()
    };
    let other = KeyPair::generate().unwrap();
    let pinned =
        |keys: &[&KeyPair]| TlsOptions { pins: keys.iter().map(|key| pin(key)).collect(), ..trusting(&authority) };
    assert_eq!(health("127.0.0.1", server.address, pinned(&[&key])).await, Ok(()));
    assert_eq!(health("127.0.0.1", server.address, pinned(&[&other, &key])).await, Ok(()));
    let refused = why(health("127.0.0.1", server.address, pinned(&[&other])).await);
    assert!(refused.contains("pinned"), "{refused}");
    let untrusted = TlsOptions { extra_ca_pem: Some(Authority::new("other").0.pem().into()), ..pinned(&[&key]) };
    let refused = why(health("127.0.0.1", server.address, untrusted).await);
    assert!(refused.contains("issuer"), "a pin replaces no chain: {refused}");
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_one_is_wanted() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let (certificate, key) = servers.issue("127.0.0.1", |_| ());
    let server = TlsServer::start((&certificate, &key), Some(&clients)).await;
    let (client_certificate, client_key) = clients.issue("operator", |_| ());
    let identity = SecretBytes::from(client_certificate.pem() + &client_key.serialize_pem());
    let with_identity = TlsOptions { client_identity_pem: Some(identity), ..trusting(&servers) };
    assert_eq!(health("127.0.0.1", server.address, with_identity).await, Ok(()));
    let refused = why(health("127.0.0.1", server.address, trusting(&servers)).await);
    assert!(refused.contains("client certificate"), "{refused}");
}

#[tokio::test]
async fn a_server_without_tls_is_named_and_asked_once() {
    let greeting = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = greeting.local_addr().unwrap();
    let accepted = tokio::spawn(async move {
        let (mut stream, _) = greeting.accept().await.unwrap();
        // The listener goes here, so that no further connection is possible.
        drop(greeting);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    });
    let refused = why(health("127.0.0.1", address, trusting(&Authority::new("ca"))).await);
    assert!(refused.contains("does not speak TLS"), "{refused}");
    // One connection was accepted; a second attempt would have found nobody and said so.
    accepted.await.unwrap();
}
