//! Pins: the fingerprint of a server's key, written down beforehand.
//!
//! As customary (RFC 7469) it is the SHA-256 of the certificate's `SubjectPublicKeyInfo`, not of the certificate: a
//! renewed certificate for the same key keeps its pin.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Bytes of a SHA-256.
const DIGEST_BYTES: usize = 256 / 8;

/// A text that is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a pin is the SHA-256 of the server's public key: 64 hexadecimal digits, or 44 characters of base64")]
pub struct PinError;

/// SHA-256 of a `SubjectPublicKeyInfo`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pin([u8; DIGEST_BYTES]);

impl Pin {
    /// The pin of a key.
    pub(crate) fn of(public_key_info: &[u8]) -> Self {
        Self(Sha256::digest(public_key_info).into())
    }

    /// Whether this is the pin of that key.
    pub(crate) fn matches(&self, public_key_info: &[u8]) -> bool {
        *self == Self::of(public_key_info)
    }
}

impl FromStr for Pin {
    type Err = PinError;

    /// Takes hexadecimal digits or base64, each with or without `sha256/` before it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let text = text.strip_prefix("sha256/").unwrap_or(text);
        let bytes = if text.len() == 2 * DIGEST_BYTES { from_hex(text) } else { STANDARD.decode(text).ok() };
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(PinError)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect::<Option<_>>()?;
    Some(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

/// `sha256/<base64>`, as other tools print it.
impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256/{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_are_read() {
        let pin = Pin::of(b"abc");
        // The digest of "abc" from FIPS 180-2, appendix B.1.
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let base64 = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
        for text in [hex, &hex.to_uppercase(), base64, &format!("sha256/{base64}"), &format!(" sha256/{hex}\n")] {
            assert_eq!(text.parse(), Ok(pin), "{text}");
        }
        assert_eq!(pin.to_string(), format!("sha256/{base64}"));
        assert!(pin.matches(b"abc") && !pin.matches(b"abd"));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "sha256/",
            "abc",
            &"g".repeat(64),
            &"a".repeat(63),
            &"é".repeat(32),
            "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIA",
        ] {
            assert_eq!(text.parse::<Pin>(), Err(PinError), "{text}");
        }
    }
}
