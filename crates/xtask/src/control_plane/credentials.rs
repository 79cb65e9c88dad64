//! What a throwaway control plane trusts: a CA and serving certificate of its own, the key that signs the tokens of its
//! service accounts, and the token of its one administrator. Made anew for each start; never logged.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use zeroize::Zeroizing;

use super::Error;

/// Bytes of randomness in the administrator's token: 256 bits.
const TOKEN_BYTES: usize = 32;

/// A bearer token: it cannot be printed, and is wiped when dropped.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    pub(super) fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The token itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// The files of the credentials, and what clients need of them.
pub(super) struct Credentials {
    /// The CA that signed the serving certificate.
    pub(super) ca_pem: String,
    pub(super) serving_certificate: PathBuf,
    pub(super) serving_key: PathBuf,
    /// Signs the tokens of service accounts.
    pub(super) service_account_key: PathBuf,
    /// Verifies them.
    pub(super) service_account_public_key: PathBuf,
    pub(super) tokens: PathBuf,
    /// The administrator's token.
    pub(super) admin: Token,
}

impl Credentials {
    /// Makes all of it and writes it into `folder`.
    pub(super) fn write(folder: &Path) -> Result<Self, Error> {
        let made = make_certificates().map_err(|error| Error::Certificates(error.to_string()))?;
        let mut random = Zeroizing::new([0u8; TOKEN_BYTES]);
        getrandom::fill(random.as_mut_slice()).map_err(|error| Error::Certificates(error.to_string()))?;
        let admin = Token::new(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random.as_slice()));
        let line = Zeroizing::new(format!("{},admin,admin,\"system:masters\"\n", admin.expose()));
        Ok(Self {
            serving_certificate: write_private(folder, "serving.crt", &made.serving_certificate)?,
            serving_key: write_private(folder, "serving.key", &made.serving_key)?,
            service_account_key: write_private(folder, "service-account.key", &made.service_account_key)?,
            service_account_public_key: write_private(folder, "service-account.pub", &made.service_account_public_key)?,
            tokens: write_private(folder, "tokens.csv", &line)?,
            ca_pem: made.ca_pem,
            admin,
        })
    }
}

struct Certificates {
    ca_pem: String,
    serving_certificate: String,
    serving_key: Zeroizing<String>,
    service_account_key: Zeroizing<String>,
    service_account_public_key: String,
}

fn make_certificates() -> Result<Certificates, rcgen::Error> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "ferrvault throwaway control plane");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    // The first two are how clients on this machine say it; the third is the issuer that its tokens name.
    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
    let mut serving = CertificateParams::new(names)?;
    serving.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    let key = KeyPair::generate()?;
    let certificate = serving.signed_by(&key, &authority)?;
    let service_account = KeyPair::generate()?;
    Ok(Certificates {
        ca_pem: authority.pem(),
        serving_certificate: certificate.pem(),
        serving_key: Zeroizing::new(key.serialize_pem()),
        service_account_key: Zeroizing::new(service_account.serialize_pem()),
        service_account_public_key: service_account.public_key_pem(),
    })
}

/// Writes a file that only its owner may read.
pub(super) fn write_private(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = folder.join(name);
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(path),
        Err(source) => Err(Error::File { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn credentials_differ_each_time_and_are_readable_by_their_owner_only() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, second) = (Credentials::write(one.path()).unwrap(), Credentials::write(two.path()).unwrap());
        assert_ne!(first.admin.expose(), second.admin.expose());
        assert_ne!(first.ca_pem, second.ca_pem);
        assert!(first.admin.expose().len() >= TOKEN_BYTES);
        for file in [&first.serving_key, &first.service_account_key, &first.tokens] {
            assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
        }
    }
}
