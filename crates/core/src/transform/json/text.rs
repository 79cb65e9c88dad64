//! Two ways to copy a piece of valid JSON out of its source, each in one pass into one buffer that is wiped.
//!
//! `serde_json` could do both, but not without buffers of its own that it does not wipe.

use zeroize::Zeroizing;

use crate::content::SecretBytes;

/// The text that a JSON string stands for; `None` when it has half a surrogate pair, which stands for no character.
pub(super) fn unescape(json: &str) -> Option<SecretBytes> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    // No escape is shorter than what it stands for, so this never grows: \n is 2 for 1, \uXXXX 6 for at most 3.
    let mut text = Zeroizing::new(Vec::with_capacity(inner.len()));
    let mut rest = inner;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.extend_from_slice(plain.as_bytes());
        let mut after = escape.chars();
        let plain = match after.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let (c, after_digits) = unicode(after.as_str())?;
                after = after_digits.chars();
                c
            }
            itself @ ('"' | '\\' | '/') => itself,
            _ => return None,
        };
        text.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
        rest = after.as_str();
    }
    text.extend_from_slice(rest.as_bytes());
    Some(SecretBytes::from(text))
}

/// The character whose digits stand at the start of `digits`, and what follows. Characters above U+FFFF take two escapes.
fn unicode(digits: &str) -> Option<(char, &str)> {
    let (first, rest) = code_unit(digits)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, rest));
    }
    let (second, rest) = code_unit(rest.strip_prefix("\\u")?)?;
    let mut pair = char::decode_utf16([u16::try_from(first).ok()?, u16::try_from(second).ok()?]);
    match (pair.next(), pair.next()) {
        (Some(Ok(c)), None) => Some((c, rest)),
        _ => None,
    }
}

fn code_unit(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

/// The same JSON without the blanks between its parts; every part stays exactly as it was written.
pub(super) fn compact(json: &str) -> SecretBytes {
    let mut text = Zeroizing::new(Vec::with_capacity(json.len()));
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            in_string = byte == b'"';
        }
        text.push(byte);
    }
    SecretBytes::from(text)
}
