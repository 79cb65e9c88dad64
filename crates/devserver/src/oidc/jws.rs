//! The compact form of a signed token: `header.claims.signature`, each in base64url.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Rejected;

/// The longest token that is looked at: 16 KiB, some ten times the size of a service account's.
const MAX_TOKEN: usize = 16 * 1024;

/// A token taken apart; nothing in it is trusted yet.
pub(super) struct Signed<'a> {
    pub(super) algorithm: String,
    pub(super) key_id: Option<String>,
    /// The bytes that are signed: header and claims, still encoded.
    pub(super) message: &'a [u8],
    pub(super) signature: Vec<u8>,
    claims: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood: none is, so a token with any is refused.
    crit: Option<serde::de::IgnoredAny>,
}

impl<'a> Signed<'a> {
    pub(super) fn parse(token: &'a str) -> Result<Self, Rejected> {
        if token.len() > MAX_TOKEN {
            return Err(Rejected::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(Rejected::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(Rejected::Malformed)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Rejected::Malformed);
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| Rejected::Malformed)?;
        if header.crit.is_some() {
            return Err(Rejected::Malformed);
        }
        Ok(Self {
            algorithm: header.alg,
            key_id: header.kid,
            message: message.as_bytes(),
            signature: decode(signature)?,
            claims: decode(claims)?,
        })
    }

    /// The claims; to be called after the signature has been checked.
    pub(super) fn claims<T: DeserializeOwned>(&self) -> Result<T, Rejected> {
        serde_json::from_slice(&self.claims).map_err(|_| Rejected::Malformed)
    }
}
