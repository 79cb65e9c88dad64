//! Makes tokens, identifiers and random values, and turns a token into what is stored of it.
//!
//! A token is 32 random bytes behind a prefix that tells its kind. Only its SHA-256 is kept: with 256 bits of entropy
//! there is nothing to guess, so a salt or a slow hash would add nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::secret_text::SecretText;
use crate::store::TokenKind;

/// Bytes of randomness in a token: 256 bits.
const TOKEN_BYTES: usize = 32;

/// The system's random source failed.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed: {0}")]
pub struct NoRandomness(getrandom::Error);

/// A new token of `kind`.
pub fn mint_token(kind: TokenKind) -> Result<SecretText, NoRandomness> {
    let mut text = kind.prefix().to_owned();
    text.push_str(random_text(TOKEN_BYTES)?.expose());
    Ok(SecretText::new(text))
}

/// Base64url text made from `bytes` random bytes.
pub fn random_text(bytes: usize) -> Result<SecretText, NoRandomness> {
    let mut raw = zeroize::Zeroizing::new(vec![0_u8; bytes]);
    getrandom::fill(&mut raw).map_err(NoRandomness)?;
    Ok(SecretText::new(URL_SAFE_NO_PAD.encode(&*raw)))
}

/// A random (version 4) UUID.
pub fn new_uuid() -> Result<String, NoRandomness> {
    let mut raw = [0_u8; 16];
    getrandom::fill(&mut raw).map_err(NoRandomness)?;
    let mut bits = u128::from_be_bytes(raw);
    // RFC 9562: version 4 in bits 76-79, variant 0b10 in bits 62-63, counted from the least significant one.
    bits = (bits & !(0xf << 76)) | (0x4 << 76);
    bits = (bits & !(0b11 << 62)) | (0b10 << 62);
    let mut text = format!("{bits:032x}");
    // From the right, so that each place is still the one before any dash.
    for place in [20, 16, 12, 8] {
        text.insert(place, '-');
    }
    Ok(text)
}

/// Whether `text` is a UUID in its usual form of 36 characters.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(at, character)| match at {
            8 | 13 | 18 | 23 => character == '-',
            _ => character.is_ascii_hexdigit(),
        })
}

/// What is stored of a token.
pub fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::{digest, is_uuid, mint_token, new_uuid};
    use crate::store::TokenKind;

    #[test]
    fn tokens_carry_the_prefix_of_their_kind_and_never_repeat() {
        for (kind, prefix) in
            [(TokenKind::User, "fft_"), (TokenKind::Cluster, "ffclust_"), (TokenKind::ServiceAccount, "fvsat_")]
        {
            let (first, second) = (mint_token(kind).unwrap(), mint_token(kind).unwrap());
            assert!(first.expose().starts_with(prefix));
            assert_eq!(first.expose().len(), prefix.len() + 43, "32 bytes are 43 characters of base64url");
            assert_ne!(digest(first.expose()), digest(second.expose()));
        }
    }

    #[test]
    fn uuids_have_36_characters_version_4_and_the_right_variant() {
        let uuid = new_uuid().unwrap();
        assert!(is_uuid(&uuid), "{uuid}");
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }

    #[test]
    fn what_is_not_a_uuid_is_told_apart() {
        let short = "1b4e28ba-2fa1-11d2-883f-0016d3cca42";
        for wrong in ["", short, "1b4e28ba-2fa1-11d2-883f-0016d3cca42g", "1b4e28ba02fa1-11d2-883f-0016d3cca427"] {
            assert!(!is_uuid(wrong), "{wrong}");
        }
    }
}
