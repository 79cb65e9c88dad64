//! TLS as this client wants it: rustls with ring, nothing taken from process-wide defaults.
//!
//! Trusted are the system's CAs and those handed in; verification is never weakened. Pins come on top of it: the chain
//! must be valid *and* the server's key must be one of the pinned ones.

use std::fmt;
use std::sync::{Arc, OnceLock};

use ferrvault_core::content::SecretBytes;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use thiserror::Error;

use crate::pin::Pin;

/// What is trusted beyond the system's CAs, and who this client is.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Certificates of further CAs, as PEM.
    pub extra_ca_pem: Option<Vec<u8>>,
    /// Certificate chain and private key of this client, as PEM, for servers that ask for one.
    pub client_identity_pem: Option<SecretBytes>,
    /// When there are any, the server's key must be one of these.
    pub pins: Vec<Pin>,
}

/// Why TLS cannot be set up. Never repeats what was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TlsError {
    /// The extra CAs are no PEM certificates.
    #[error("the extra CA holds no usable certificate; store one or more PEM blocks CERTIFICATE")]
    ExtraCa,
    /// The client identity lacks a part.
    #[error(
        "the client certificate is not usable; store PEM blocks: its CERTIFICATE chain and one PRIVATE KEY that belongs to it"
    )]
    ClientIdentity,
    /// There is nobody to trust.
    #[error(
        "this system has no CA certificates; install them (package ca-certificates), set SSL_CERT_FILE, or hand in the CA"
    )]
    NoRoots,
    /// The build of rustls lacks what is needed.
    #[error("TLS is not available: protocol versions and cipher suites do not fit together")]
    Protocol,
}

/// Builds the configuration. Reads the system's CAs from disk once per process.
pub(crate) fn client_config(options: &TlsOptions, is_plain_http: bool) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|_| TlsError::Protocol)?;
    let builder = if is_plain_http {
        // Never used, yet the HTTP client wants one. Trusts nobody, and works on a system without CAs.
        builder.with_root_certificates(RootCertStore::empty())
    } else {
        let roots = roots(options)?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots, provider).build().map_err(|_| TlsError::NoRoots)?;
        if options.pins.is_empty() {
            builder.with_webpki_verifier(verifier)
        } else {
            let pins = options.pins.clone();
            builder.dangerous().with_custom_certificate_verifier(Arc::new(PinnedVerifier { chain: verifier, pins }))
        }
    };
    let mut config = match &options.client_identity_pem {
        Some(pem) => {
            let (chain, key) = client_identity(pem)?;
            builder.with_client_auth_cert(chain, key).map_err(|_| TlsError::ClientIdentity)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The system's CAs, shared between clients, and the extra ones.
fn roots(options: &TlsOptions) -> Result<Arc<RootCertStore>, TlsError> {
    let Some(pem) = &options.extra_ca_pem else { return Ok(system_roots()) };
    let mut roots = RootCertStore::clone(&system_roots());
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| TlsError::ExtraCa)?;
        roots.add(certificate).map_err(|_| TlsError::ExtraCa)?;
        found = true;
    }
    if found { Ok(Arc::new(roots)) } else { Err(TlsError::ExtraCa) }
}

/// About 150 certificates that would otherwise be parsed and kept once per client. Only a success is remembered.
fn system_roots() -> Arc<RootCertStore> {
    static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(roots) = SYSTEM.get() {
        return Arc::clone(roots);
    }
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, ignored) = roots.add_parsable_certificates(loaded.certs);
    tracing::debug!(added, ignored, errors = loaded.errors.len(), "CA certificates of the system read");
    let roots = Arc::new(roots);
    if roots.is_empty() {
        return roots;
    }
    Arc::clone(SYSTEM.get_or_init(|| roots))
}

fn client_identity(pem: &SecretBytes) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(pem.expose()).collect::<Result<_, _>>().map_err(|_| TlsError::ClientIdentity)?;
    let key = PrivateKeyDer::from_pem_slice(pem.expose()).map_err(|_| TlsError::ClientIdentity)?;
    if chain.is_empty() { Err(TlsError::ClientIdentity) } else { Ok((chain, key)) }
}

/// The usual verification, then the pins.
struct PinnedVerifier {
    chain: Arc<WebPkiServerVerifier>,
    pins: Vec<Pin>,
}

impl fmt::Debug for PinnedVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedVerifier").field("pins", &self.pins).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        if self.pins.iter().any(|pin| pin.matches(&key)) {
            Ok(verified)
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// What was refused and what to change. Made of own words only: rustls quotes names out of foreign certificates.
pub(crate) fn explain(error: &rustls::Error) -> String {
    use rustls::Error as Tls;
    let text = match error {
        Tls::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer => {
                "the issuer of its certificate is not trusted; add its CA to those of the operator's image, or name a file \
                 with it in SSL_CERT_FILE"
            }
            CertificateError::BadSignature => {
                "its certificate is not signed by the trusted CA of that name; add the CA that is in use now to those of the \
                 operator's image, or name a file with it in SSL_CERT_FILE"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired; renew it"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; check the clocks"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another host name; check the URL"
            }
            CertificateError::Revoked => "its certificate is revoked; give it another",
            CertificateError::ApplicationVerificationFailure => "its key is none of the pinned ones; check the pins",
            _ => "its certificate is not valid for a server; check how it was made",
        },
        Tls::InvalidMessage(_) => {
            "the other side does not speak TLS; check the port and whether the URL should be http://"
        }
        Tls::AlertReceived(alert) => {
            return format!(
                "the other side ended the handshake ({alert:?}); check whether it wants a client certificate"
            );
        }
        Tls::PeerIncompatible(_) => "the other side speaks no version or cipher in common; it needs TLS 1.2 or newer",
        _ => "the handshake failed; check what answers at the URL",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_material_is_refused_without_repeating_it() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["client".into()]).unwrap().self_signed(&key).unwrap();
        let other = rcgen::KeyPair::generate().unwrap();
        let identity = |text: String| TlsOptions { client_identity_pem: Some(text.into()), ..TlsOptions::default() };
        let extra_ca = |text: &str| TlsOptions { extra_ca_pem: Some(text.into()), ..TlsOptions::default() };
        let broken_pem = "-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n";
        for (name, options, expected) in [
            ("no PEM as CA", extra_ca("canary"), Some(TlsError::ExtraCa)),
            ("an empty CA", extra_ca(""), Some(TlsError::ExtraCa)),
            ("a PEM that is no certificate", extra_ca(broken_pem), Some(TlsError::ExtraCa)),
            ("a key instead of a CA", extra_ca(&key.serialize_pem()), Some(TlsError::ExtraCa)),
            ("a certificate", extra_ca(&certificate.pem()), None),
            ("no PEM as identity", identity("canary".into()), Some(TlsError::ClientIdentity)),
            ("an identity without key", identity(certificate.pem()), Some(TlsError::ClientIdentity)),
            ("an identity without certificate", identity(key.serialize_pem()), Some(TlsError::ClientIdentity)),
            (
                "an identity with a foreign key",
                identity(certificate.pem() + &other.serialize_pem()),
                Some(TlsError::ClientIdentity),
            ),
        ] {
            let error = client_config(&options, false).err();
            assert_eq!(error, expected, "{name}");
            assert!(!format!("{error:?} {options:?}").contains("PRIVATE"), "{name}");
        }
        let whole = TlsOptions {
            extra_ca_pem: Some(certificate.pem().into()),
            ..identity(certificate.pem() + &key.serialize_pem())
        };
        assert!(client_config(&whole, false).is_ok());
    }

    #[test]
    fn plain_http_needs_no_roots_and_trusts_nobody() {
        assert!(client_config(&TlsOptions::default(), true).is_ok());
    }
}
