//! Base64 between text and [`SecretBytes`], with the tolerance of Go's decoder: padding is required, line breaks
//! (`\r`, `\n`) are skipped anywhere, and unused trailing bits may be set.
//!
//! That is what the Go operator and the API server accept, so a value accepted there is accepted here and gives the same
//! bytes. The error carries nothing: the library's own names a byte of the value and where it stands.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use super::SecretBytes;

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_encode_padding(true)
    .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
    .with_decode_allow_trailing_bits(true);

const STANDARD_ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
const URL_SAFE_ENGINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);

/// Which two characters stand for 62 and 63.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alphabet {
    /// `+` and `/`.
    Standard,
    /// `-` and `_`.
    UrlSafe,
}

impl Alphabet {
    const fn engine(self) -> &'static GeneralPurpose {
        match self {
            Self::Standard => &STANDARD_ENGINE,
            Self::UrlSafe => &URL_SAFE_ENGINE,
        }
    }
}

/// The text is not base64 of that alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotBase64;

/// The bytes that `text` stands for.
pub(crate) fn decode(alphabet: Alphabet, text: &[u8]) -> Result<SecretBytes, NotBase64> {
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    if text.iter().any(is_break) {
        // Sized once: a vector that grows leaves unwiped copies behind.
        let mut joined = Zeroizing::new(Vec::with_capacity(text.len()));
        joined.extend(text.iter().copied().filter(|byte| !is_break(byte)));
        decode_line(alphabet, &joined)
    } else {
        decode_line(alphabet, text)
    }
}

fn decode_line(alphabet: Alphabet, text: &[u8]) -> Result<SecretBytes, NotBase64> {
    let mut bytes = Zeroizing::new(vec![0; base64::decoded_len_estimate(text.len())]);
    let written = alphabet.engine().decode_slice(text, &mut bytes).map_err(|_| NotBase64)?;
    bytes.truncate(written);
    Ok(SecretBytes::from(bytes))
}

/// `value` as standard, padded base64.
pub(crate) fn encode(value: &SecretBytes) -> Zeroizing<String> {
    // Every 3 bytes begun become 4 characters; sized once for the same reason as above.
    let mut text = Zeroizing::new(String::with_capacity(value.len().div_ceil(3) * 4));
    STANDARD_ENGINE.encode_string(value.expose(), &mut text);
    text
}
