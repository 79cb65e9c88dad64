//! HTTP clients that trust exactly the certificates they are given.
//!
//! No system roots, no proxy from the environment and no redirects: what is sent may hold a token, and it goes to the
//! server that was named or nowhere.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NotBuilt {
    /// The CA file is of no use.
    #[error("the CA is not a PEM file with certificates")]
    Ca,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Http(reqwest::Error),
}

/// A client that trusts the certificates in `ca_pem` (without them: nobody, so only `http://` works) and gives each
/// request `deadline` in all.
pub fn client(ca_pem: Option<&str>, deadline: Duration) -> Result<reqwest::Client, NotBuilt> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = ca_pem {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|_| NotBuilt::Ca)?;
            roots.add(certificate).map_err(|_| NotBuilt::Ca)?;
        }
        if roots.is_empty() {
            return Err(NotBuilt::Ca);
        }
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(deadline)
        .build()
        .map_err(NotBuilt::Http)
}
