//! The public keys of a cluster, and checking a signature with them.
//!
//! A key fixes its algorithm: an elliptic curve has one, an RSA key three that differ in the hash. Symmetric keys are
//! never taken, so a public key cannot be passed off as a shared one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;

use super::Rejected;
use super::jws::Signed;

/// The document has no key that can check a signature.
#[derive(Debug, thiserror::Error)]
#[error(
    "this is not a JWKS document with a usable key; it looks like {{\"keys\":[{{\"kty\":\"RSA\",\"n\":...,\"e\":...}}]}}"
)]
pub(crate) struct BrokenKeys;

/// Refuses a document without any usable key.
pub(crate) fn check_document(document: &serde_json::Value) -> Result<(), BrokenKeys> {
    Keys::parse(document).map(|_| ())
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The usable keys of a document.
pub(super) struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    /// Where the document narrows the key to one algorithm.
    only: Option<String>,
    public: PublicKey,
}

enum PublicKey {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl Keys {
    /// Keys of kinds that are not known are skipped, as RFC 7517 asks: a document may hold keys for others.
    pub(super) fn parse(document: &serde_json::Value) -> Result<Self, BrokenKeys> {
        let document = Document::deserialize(document).map_err(|_| BrokenKeys)?;
        let keys: Vec<Key> = document.keys.iter().filter_map(Key::parse).collect();
        if keys.is_empty() { Err(BrokenKeys) } else { Ok(Self(keys)) }
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<(), Rejected> {
        const ACCEPTED: [&str; 6] = ["RS256", "RS384", "RS512", "ES256", "ES384", "EdDSA"];
        if !ACCEPTED.contains(&signed.algorithm.as_str()) {
            return Err(Rejected::Algorithm);
        }
        let named = |key: &&Key| signed.key_id.is_none() || key.id.is_none() || key.id == signed.key_id;
        if self.0.iter().filter(named).any(|key| key.signed(signed)) { Ok(()) } else { Err(Rejected::Signature) }
    }
}

impl Key {
    fn parse(value: &serde_json::Value) -> Option<Self> {
        let jwk = Jwk::deserialize(value).ok()?;
        if jwk.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let decode = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref()?).ok();
        let public = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => PublicKey::Rsa { n: without_leading_zeros(decode(&jwk.n)?), e: decode(&jwk.e)? },
            ("EC", Some("P-256")) => PublicKey::P256(point(&decode(&jwk.x)?, &decode(&jwk.y)?)),
            ("EC", Some("P-384")) => PublicKey::P384(point(&decode(&jwk.x)?, &decode(&jwk.y)?)),
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(decode(&jwk.x)?),
            _ => return None,
        };
        Some(Self { id: jwk.kid, only: jwk.alg, public })
    }

    fn signed(&self, signed: &Signed<'_>) -> bool {
        let algorithm = signed.algorithm.as_str();
        if self.only.as_deref().is_some_and(|only| only != algorithm) {
            return false;
        }
        let plain = |kind: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(kind, key).verify(signed.message, &signed.signature).is_ok()
        };
        match (&self.public, algorithm) {
            (PublicKey::Rsa { n, e }, "RS256" | "RS384" | "RS512") => {
                let parameters = match algorithm {
                    "RS256" => &RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &RSA_PKCS1_2048_8192_SHA384,
                    _ => &RSA_PKCS1_2048_8192_SHA512,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, signed.message, &signed.signature).is_ok()
            }
            (PublicKey::P256(key), "ES256") => plain(&ECDSA_P256_SHA256_FIXED, key),
            (PublicKey::P384(key), "ES384") => plain(&ECDSA_P384_SHA384_FIXED, key),
            (PublicKey::Ed25519(key), "EdDSA") => plain(&ED25519, key),
            _ => false,
        }
    }
}

/// The uncompressed form that ring reads: 0x04, x, y.
fn point(x: &[u8], y: &[u8]) -> Vec<u8> {
    [&[0x04], x, y].concat()
}

/// ring refuses a modulus with leading zeros; some documents have one.
fn without_leading_zeros(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    if zeros == 0 { number } else { number.into_iter().skip(zeros).collect() }
}
