//! Tokens: a text that proves who is asking, in a type that cannot be printed.
//!
//! A [`Bearer`] is stored as the finished value of the `Authorization` header in memory that is wiped when the last
//! user drops it, so that a call shares it instead of copying it. Nothing here prints or compares it.

use std::fmt;

use bytes::Bytes;
use ferrvault_core::content::SecretBytes;
use http::HeaderValue;
use thiserror::Error;
use zeroize::Zeroizing;

/// What stands before the token in the `Authorization` header.
const SCHEME: &[u8] = b"Bearer ";

/// Longest token accepted: common servers take header lines of 8 KiB at most, and the longest token known is a JWT
/// of about 2 KiB.
const MAX_TOKEN_BYTES: usize = 8 * 1024 - SCHEME.len() - "Authorization: \r\n".len();

/// Why a text is no token. Never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BearerError {
    /// Nothing but white space.
    #[error("the token is empty; store the whole token under this key")]
    Empty,
    /// A character that a header cannot carry.
    #[error(
        "the token contains a character that no token has (a space or line break within, a control character, or a \
         character beyond ASCII); store the token alone under this key"
    )]
    ForeignCharacter,
    /// Longer than any token.
    #[error("the token is {length} bytes long, at most {limit} can be sent; store the token alone under this key")]
    TooLong {
        /// Length without surrounding white space.
        length: usize,
        /// The most that is sent.
        limit: usize,
    },
}

/// A token that may be sent: `fft_…`, `ffclust_…`, `fvsat_…`, `sat_…`, or the JWT of a service account.
#[derive(Clone)]
pub struct Bearer {
    /// `Bearer <token>`, marked as sensitive.
    header: HeaderValue,
}

impl Bearer {
    /// Takes a token, without the white space around it.
    pub fn new(text: &SecretBytes) -> Result<Self, BearerError> {
        let token = text.expose().trim_ascii();
        if token.is_empty() {
            return Err(BearerError::Empty);
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(BearerError::ForeignCharacter);
        }
        if token.len() > MAX_TOKEN_BYTES {
            return Err(BearerError::TooLong { length: token.len(), limit: MAX_TOKEN_BYTES });
        }
        // Exact capacity: a vector that grows leaves its former, unwiped memory behind.
        let mut value = Zeroizing::new(Vec::with_capacity(SCHEME.len() + token.len()));
        value.extend_from_slice(SCHEME);
        value.extend_from_slice(token);
        let mut header =
            HeaderValue::from_maybe_shared(Bytes::from_owner(value)).map_err(|_| BearerError::ForeignCharacter)?;
        header.set_sensitive(true);
        Ok(Self { header })
    }

    /// The header's value. A clone shares the memory.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// The token itself, for the body of an exchange and for finding it in foreign texts.
    pub(crate) fn expose(&self) -> &[u8] {
        self.header.as_bytes().strip_prefix(SCHEME).unwrap_or_default()
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(<hidden>)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(text: &str) -> Result<Bearer, BearerError> {
        Bearer::new(&SecretBytes::from(text))
    }

    #[test]
    fn surrounding_white_space_is_not_part_of_a_token() {
        let token = bearer("\r\n fvsat_canary-1 \t\n").unwrap();
        assert_eq!(token.expose(), b"fvsat_canary-1");
        assert_eq!(token.header().as_bytes(), b"Bearer fvsat_canary-1");
        assert!(token.header().is_sensitive());
    }

    #[test]
    fn what_no_header_carries_is_refused_without_repeating_it() {
        for (text, expected) in [
            ("", BearerError::Empty),
            (" \n\t", BearerError::Empty),
            ("canary canary", BearerError::ForeignCharacter),
            ("canary\ncanary", BearerError::ForeignCharacter),
            ("canary\r\nX-Evil: 1", BearerError::ForeignCharacter),
            ("canary\0", BearerError::ForeignCharacter),
            ("canarÿ", BearerError::ForeignCharacter),
        ] {
            let error = bearer(text).unwrap_err();
            assert_eq!(error, expected, "{text:?}");
            assert!(!format!("{error} {error:?}").contains("canar"), "{text:?}");
        }
        let longest = "x".repeat(MAX_TOKEN_BYTES);
        assert!(bearer(&longest).is_ok());
        let length = MAX_TOKEN_BYTES + 1;
        assert_eq!(
            bearer(&format!("{longest}x")).unwrap_err(),
            BearerError::TooLong { length, limit: MAX_TOKEN_BYTES }
        );
    }

    #[test]
    fn a_token_is_never_printed() {
        let token = bearer("fvsat_canary").unwrap();
        assert_eq!(format!("{token:?} {:?}", token.header()), "Bearer(<hidden>) Sensitive");
    }
}
