//! The server's own certificate authority, and the TLS setup under it.
//!
//! The CA is made once per data directory, so that clients go on trusting a restarted server; the server's certificate is
//! made at each start and its key never touches the disk.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::data_dir::{DataDir, FileError, PRIVATE, PUBLIC, read, replace};
use crate::secret_text::SecretText;

const CA_NAME: &str = "ferrvault-dev CA";

/// Ten years of 365 days: a data directory outlives any experiment.
const CA_DAYS: i64 = 10 * 365;

/// One year; a server that runs longer has to be restarted.
const SERVER_DAYS: i64 = 365;

/// Certificates are valid from a day ago, for clients whose clock is behind.
const BACKDATED_DAYS: i64 = 1;

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of the CA.
    #[error(transparent)]
    File(#[from] FileError),
    /// The CA or the certificate.
    #[error("cannot make a certificate: {0}; if ca.pem or ca-key.pem in the data directory is damaged, remove both")]
    Certificate(#[from] rcgen::Error),
    /// The protocol.
    #[error("cannot set up TLS: {0}")]
    Protocol(#[from] rustls::Error),
}

/// An acceptor with a certificate for loopback and `address`, under the CA of `dir`, which is made if there is none.
pub(crate) fn acceptor(dir: &DataDir, address: IpAddr, now: Timestamp) -> Result<TlsAcceptor, TlsError> {
    let ca_key = load_or_create_ca(dir, now)?;
    let issuer = Issuer::new(ca_params(now), ca_key);
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let address = address.to_string();
    if !names.contains(&address) {
        names.push(address);
    }
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "ferrvault-dev");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    set_validity(&mut params, now, SERVER_DAYS);
    let certificate = params.signed_by(&key, &issuer)?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The key of the CA. The key is written before the certificate, so a certificate always has its key; without the
/// certificate nobody can trust the key yet, and both are made anew.
fn load_or_create_ca(dir: &DataDir, now: Timestamp) -> Result<KeyPair, TlsError> {
    if dir.ca().exists()
        && let Some(pem) = read(&dir.ca_key())?.map(SecretText::new)
    {
        return Ok(KeyPair::from_pem(pem.expose())?);
    }
    let key = KeyPair::generate()?;
    let certificate = ca_params(now).self_signed(&key)?;
    let pem = SecretText::new(key.serialize_pem());
    replace(&dir.ca_key(), pem.expose().as_bytes(), PRIVATE)?;
    replace(&dir.ca(), certificate.pem().as_bytes(), PUBLIC)?;
    Ok(key)
}

fn ca_params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, now, CA_DAYS);
    params
}

/// Valid from yesterday until so many days from now, in whole days.
fn set_validity(params: &mut CertificateParams, now: Timestamp, days: i64) {
    let date = |from_today: i64| {
        let moment = now.saturating_add(SignedDuration::from_hours(24 * from_today)).unwrap_or(now);
        let date = moment.to_zoned(TimeZone::UTC).date();
        rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    params.not_before = date(-BACKDATED_DAYS);
    params.not_after = date(days);
}
