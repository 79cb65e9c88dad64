//! Names on their way into an address or a body.
//!
//! Every name a person wrote is checked here before a call is made, and percent-encoded so strictly that none can
//! end a segment, open a query or climb out of its place.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::VaultError;
use crate::upstream::shown_name;

/// Everything but the unreserved characters of RFC 3986 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const EMPTY: &str = "it is empty";
const CONTROL_CHARACTER: &str = "it contains a control character";
const DOTS_ALONE: &str = "dots alone mean a folder to every URL parser, even percent-encoded";
const COMMA: &str = "it contains a comma, which separates the keys in this mode";
const NOT_A_LABEL: &str = "it is not the name of a namespace";

/// `text` with every character encoded that could mean something to an address.
pub(crate) fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A name that travels within a body or a query.
pub(crate) fn check_name(field: &'static str, name: &str) -> Result<(), VaultError> {
    refusal(name).map_or(Ok(()), |why| Err(unencodable_name(field, name, why)))
}

/// A name that becomes a segment of the path.
pub(crate) fn segment(field: &'static str, name: &str) -> Result<String, VaultError> {
    match refusal(name).or(dots_alone(name)) {
        Some(why) => Err(unencodable_name(field, name, why)),
        None => Ok(percent_encoded(name)),
    }
}

/// A namespace, which travels in a header: a DNS label, as Kubernetes has it.
pub(crate) fn check_namespace(name: &str) -> Result<(), VaultError> {
    let is_label = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    match refusal(name).or((!is_label).then_some(NOT_A_LABEL)) {
        Some(why) => Err(unencodable_name("namespace", name, why)),
        None => Ok(()),
    }
}

/// A key that travels within a body.
pub(crate) fn check_key(key: &str) -> Result<(), VaultError> {
    refusal(key).map_or(Ok(()), |why| Err(unencodable_key(key, why)))
}

/// A key that travels in a list joined with commas. An encoded comma does not help: the other side decodes before it
/// splits.
pub(crate) fn check_listed_key(key: &str) -> Result<(), VaultError> {
    check_key(key)?;
    if key.contains(',') { Err(unencodable_key(key, COMMA)) } else { Ok(()) }
}

/// A key that becomes a segment of the path.
pub(crate) fn key_segment(key: &str) -> Result<String, VaultError> {
    match refusal(key).or(dots_alone(key)) {
        Some(why) => Err(unencodable_key(key, why)),
        None => Ok(percent_encoded(key)),
    }
}

fn refusal(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some(EMPTY)
    } else if name.chars().any(char::is_control) {
        Some(CONTROL_CHARACTER)
    } else {
        None
    }
}

/// `.` and `..` vanish when an address is parsed, encoded as `%2e` too (WHATWG URL, "double-dot URL path segment"), and
/// the call would go to another place.
fn dots_alone(name: &str) -> Option<&'static str> {
    matches!(name, "." | "..").then_some(DOTS_ALONE)
}

fn unencodable_name(field: &'static str, name: &str, why: &'static str) -> VaultError {
    VaultError::UnencodableName { field, name: shown_name(name), why }
}

fn unencodable_key(key: &str, why: &'static str) -> VaultError {
    VaultError::UnencodableKey { key: shown_name(key), why }
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;
    use url::Url;

    use super::*;

    #[test]
    fn segments_are_encoded_down_to_the_unreserved_characters() {
        for (name, encoded) in [
            ("prod", "prod"),
            ("a-b.c_d~e", "a-b.c_d~e"),
            ("a/b", "a%2Fb"),
            ("a b", "a%20b"),
            ("100%", "100%25"),
            ("%2e%2e", "%252e%252e"),
            ("...", "..."),
            ("a?b#c&d=e+f;g:h@i,j", "a%3Fb%23c%26d%3De%2Bf%3Bg%3Ah%40i%2Cj"),
            ("back\\slash", "back%5Cslash"),
            ("schlüssel", "schl%C3%BCssel"),
        ] {
            assert_eq!(segment("vault", name).unwrap(), encoded);
            assert_eq!(key_segment(name).unwrap(), encoded);
        }
    }

    #[test]
    fn what_an_address_cannot_carry_is_refused_by_name() {
        for (name, why) in [("", EMPTY), (".", DOTS_ALONE), ("..", DOTS_ALONE), ("a\nb", CONTROL_CHARACTER)] {
            let shown = shown_name(name);
            assert_eq!(
                segment("project", name).unwrap_err(),
                VaultError::UnencodableName { field: "project", name: shown.clone(), why }
            );
            assert_eq!(key_segment(name).unwrap_err(), VaultError::UnencodableKey { key: shown, why });
        }
    }

    #[test]
    fn bodies_carry_dots_and_lists_carry_no_comma() {
        assert_eq!(check_name("vault", ".."), Ok(()));
        assert_eq!(check_key("A,B"), Ok(()));
        assert_eq!(check_listed_key(".."), Ok(()));
        let error = check_listed_key("A,B").unwrap_err();
        assert_eq!(error, VaultError::UnencodableKey { key: "A,B".into(), why: COMMA });
        assert!(error.to_string().contains("\"A,B\""), "{error}");
        for key in ["", "A\u{0}", "A\u{85}"] {
            assert!(check_key(key).is_err() && check_listed_key(key).is_err() && check_name("vault", key).is_err());
        }
    }

    #[test]
    fn a_namespace_is_a_label() {
        assert_eq!(check_namespace("team-a1"), Ok(()));
        for name in ["", "Team", "a b", "a\r\nX: y", "ä", "a.b"] {
            assert!(check_namespace(name).is_err(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn a_segment_stays_one_segment(name in any::<String>()) {
            let Ok(encoded) = segment("vault", &name) else { return Ok(()) };
            let url = Url::parse(&format!("https://host/a/{encoded}/z?q=1")).unwrap();
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 3);
            prop_assert_eq!(percent_decode_str(segments[1]).decode_utf8().unwrap(), name);
            prop_assert_eq!(url.query(), Some("q=1"));
            prop_assert_eq!(url.fragment(), None);
        }
    }
}
