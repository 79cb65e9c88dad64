//! The content of a JSON string, decoded straight into memory that is wiped.
//!
//! A general JSON decoder unescapes into a scratch buffer that nobody wipes. So values are taken from the body as raw
//! text, borrowed, and unescaped here into the one allocation that becomes the [`SecretBytes`].

use ferrvault_core::content::SecretBytes;
use zeroize::Zeroizing;

/// Decodes `raw`, a JSON value as it stands in the body. `None` when it is not a string, or names half of a surrogate
/// pair (such a text has no bytes in UTF-8).
pub(crate) fn unescape(raw: &str) -> Option<SecretBytes> {
    let quoted = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !quoted.contains('\\') {
        return Some(SecretBytes::new(quoted.as_bytes().to_vec()));
    }
    // An escape is never shorter than what it stands for, so this vector never grows.
    let mut bytes = Zeroizing::new(Vec::with_capacity(quoted.len()));
    let mut rest = quoted;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (character, after) = escaped_character(escape)?;
        let mut utf8 = Zeroizing::new([0; 4]);
        bytes.extend_from_slice(character.encode_utf8(utf8.as_mut()).as_bytes());
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(SecretBytes::new(std::mem::take(&mut *bytes)))
}

/// The character of the escape whose backslash was just read, and what follows it.
pub(crate) fn escaped_character(escape: &str) -> Option<(char, &str)> {
    let kind = escape.chars().next()?;
    let after = escape.get(kind.len_utf8()..)?;
    let character = match kind {
        '"' | '\\' | '/' => kind,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode_escape(after),
        _ => return None,
    };
    Some((character, after))
}

/// `XXXX`, or `XXXX\uXXXX` where the first is the high half of a pair.
fn unicode_escape(digits: &str) -> Option<(char, &str)> {
    let (first, after) = code_unit(digits)?;
    if !(0xd800..0xdc00).contains(&first) {
        // A lone low half is no character and ends here.
        return Some((char::from_u32(first)?, after));
    }
    let (second, after) = code_unit(after.strip_prefix("\\u")?)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    let character = char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + low)?;
    Some((character, after))
}

/// Four hexadecimal digits.
fn code_unit(text: &str) -> Option<(u32, &str)> {
    let (digits, after) = text.split_at_checked(4)?;
    // `from_str_radix` would take a sign.
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    Some((u32::from_str_radix(digits, 16).ok()?, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(raw: &str) -> Option<Vec<u8>> {
        unescape(raw).map(|value| value.expose().to_vec())
    }

    #[test]
    fn every_escape_of_json_is_known() {
        for (raw, expected) in [
            (r#""""#, ""),
            (r#""plain é 😀""#, "plain é 😀"),
            (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#""a\u0000b\u00e9\u20AC""#, "a\0bé€"),
            (r#""\ud83d\uDE00!""#, "😀!"),
            (r#""\\u0041""#, r"\u0041"),
        ] {
            assert_eq!(decoded(raw).as_deref(), Some(expected.as_bytes()), "{raw}");
        }
    }

    #[test]
    fn what_is_no_string_has_no_content() {
        for raw in [
            "",
            "\"",
            "null",
            "12",
            "true",
            "[\"a\"]",
            "{\"a\":1}",
            r#""\ud83d""#,
            r#""\ud83dx""#,
            r#""\ud83d\u0041""#,
            r#""\ude00""#,
            r#""\x41""#,
            r#""\u+123""#,
            r#""\u12""#,
            r#""\u12é4""#,
        ] {
            assert_eq!(decoded(raw), None, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn any_text_survives_the_way_through_json(text in any::<String>()) {
            let raw = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decoded(&raw), Some(text.clone().into_bytes()));
            // The same text with every character as an escape.
            let escaped = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat();
            prop_assert_eq!(decoded(&format!("\"{escaped}\"")), Some(text.into_bytes()));
        }

        #[test]
        fn it_agrees_with_the_general_decoder(inner in r#"([a-z\\"u/0-9dDeEf]|\\u[dD][89c-fC-F][0-9]{2}){0,12}"#) {
            let raw = format!("\"{inner}\"");
            if let Ok(text) = serde_json::from_str::<String>(&raw) {
                prop_assert_eq!(decoded(&raw), Some(text.into_bytes()));
            }
        }
    }
}
