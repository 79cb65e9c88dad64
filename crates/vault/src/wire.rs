//! The JSON of the API, read with suspicion.
//!
//! Values stay raw text borrowed from the body until `json_string` decodes them; the texts of the JSON decoder's own
//! errors are never passed on, because they quote what they stumbled over.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use ferrvault_core::content::SecretBytes;
use jiff::Timestamp;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::error::VaultError;
use crate::json_string::unescape;

/// Most keys read from one answer. A Secret holds 1 MiB; at 64 bytes for a key with its value that is 16,384 keys, and
/// an answer of 4 MiB made of empty values would otherwise grow tenfold in memory.
const MAX_KEYS: usize = 16 * 1024;

/// Answer of the reveal in mode `cloud`.
#[derive(Deserialize)]
pub(crate) struct CloudAnswer<'a> {
    #[serde(borrow)]
    pub(crate) secrets: Entries<'a>,
    #[serde(borrow, default)]
    pub(crate) missing: Option<Bounded<Cow<'a, str>>>,
}

/// Answer of the reveal in mode `ferrvault`.
#[derive(Deserialize)]
pub(crate) struct OperatorAnswer<'a> {
    #[serde(borrow)]
    pub(crate) hits: Bounded<Hit<'a>>,
    #[serde(borrow, default)]
    pub(crate) missing: Option<Bounded<Cow<'a, str>>>,
}

#[derive(Deserialize)]
pub(crate) struct Hit<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) value: &'a RawValue,
}

/// Body of the reveal in mode `ferrvault`. It holds no secret.
#[derive(Serialize)]
pub(crate) struct OperatorQuestion<'a> {
    pub(crate) vault: &'a str,
    /// Left out for every key of the vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<Vec<&'a str>>,
}

/// Answer of the exchange.
#[derive(Deserialize)]
pub(crate) struct ExchangeAnswer<'a> {
    #[serde(borrow)]
    pub(crate) access_token: &'a RawValue,
    #[serde(borrow)]
    pub(crate) expires_at: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) token_type: Option<Cow<'a, str>>,
}

/// One line of the list.
#[derive(Deserialize)]
pub(crate) struct ListedSecret<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    pub(crate) version: i32,
    #[serde(borrow)]
    pub(crate) updated_at: Cow<'a, str>,
}

/// Answer about the token itself.
#[derive(Deserialize)]
pub(crate) struct MeAnswer<'a> {
    pub(crate) token_id: String,
    pub(crate) vault_id: String,
    pub(crate) vault_slug: String,
    #[serde(borrow)]
    pub(crate) role: Cow<'a, str>,
    #[serde(default)]
    pub(crate) token_label: Option<String>,
    #[serde(borrow, default)]
    pub(crate) expires_at: Option<Cow<'a, str>>,
}

/// The members of an object in their order, doubles included: whoever reads them decides what a double means. `null` is
/// an object without members, which is how some servers write an empty map.
#[derive(Default)]
pub(crate) struct Entries<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
            type Value = Entries<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Entries::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if entries.len() == MAX_KEYS {
                        return Err(A::Error::custom("too many keys"));
                    }
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_any(Members(PhantomData))
    }
}

/// A list of at most [`MAX_KEYS`] elements.
pub(crate) struct Bounded<T>(pub(crate) Vec<T>);

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = Bounded<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    if elements.len() == MAX_KEYS {
                        return Err(A::Error::custom("too many elements"));
                    }
                    elements.push(element);
                }
                Ok(Bounded(elements))
            }
        }

        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// Reads `body` as `T`. The error names the place, never what stands there.
pub(crate) fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, VaultError> {
    serde_json::from_slice(body).map_err(|error| {
        let place = format!("at line {}, column {}", error.line(), error.column());
        VaultError::broken(match error.classify() {
            Category::Eof => format!("its JSON ends early, {place}"),
            Category::Data => format!("its JSON has another shape than the API's, {place}"),
            Category::Syntax | Category::Io => format!("it is not JSON, {place}"),
        })
    })
}

/// A value or token, decoded into memory that is wiped. `name` is named where it is no text.
pub(crate) fn secret_text(name: &str, raw: &RawValue) -> Result<SecretBytes, VaultError> {
    unescape(raw.get())
        .ok_or_else(|| VaultError::broken(format!("\"{}\" is not a text", crate::upstream::shown_name(name))))
}

/// An RFC 3339 time.
pub(crate) fn time(field: &'static str, text: &str) -> Result<Timestamp, VaultError> {
    text.parse().map_err(|_| VaultError::broken(format!("{field} is not an RFC 3339 time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what<T: for<'a> Deserialize<'a>>(body: &str) -> String {
        match decode::<T>(body.as_bytes()) {
            Ok(_) => panic!("accepted: {body}"),
            Err(VaultError::BrokenAnswer { what }) => what,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn errors_name_the_place_and_never_the_content() {
        for (body, start) in [
            ("", "its JSON ends early"),
            ("[true, \"canary", "its JSON ends early"),
            ("canary", "it is not JSON"),
            ("\"canary\"", "its JSON has another shape"),
            ("[\"canary\"]", "its JSON has another shape"),
            ("[true] canary", "it is not JSON"),
        ] {
            let what = what::<Vec<bool>>(body);
            assert!(what.starts_with(start), "{body}: {what}");
            assert!(!what.contains("canary"), "{what}");
        }
    }

    #[test]
    fn entries_keep_doubles_and_take_null_for_nothing() {
        let entries: Entries<'_> = decode(br#"{"A":"1","B":2,"A":null}"#).unwrap();
        let names: Vec<_> = entries.0.iter().map(|(name, raw)| (name.as_str(), raw.get())).collect();
        assert_eq!(names, [("A", "\"1\""), ("B", "2"), ("A", "null")]);
        assert!(decode::<Entries<'_>>(b"null").unwrap().0.is_empty());
        assert!(decode::<Entries<'_>>(b"[]").is_err());
        assert!(decode::<CloudAnswer<'_>>(b"{}").is_err(), "an answer without secrets is another service's");
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let list = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert_eq!(decode::<Bounded<u8>>(list(MAX_KEYS).as_bytes()).unwrap().0.len(), MAX_KEYS);
        assert!(decode::<Bounded<u8>>(list(MAX_KEYS + 1).as_bytes()).is_err());
        let object = |count: usize| format!("{{{}}}", vec!["\"a\":1"; count].join(","));
        assert_eq!(decode::<Entries<'_>>(object(MAX_KEYS).as_bytes()).unwrap().0.len(), MAX_KEYS);
        assert!(decode::<Entries<'_>>(object(MAX_KEYS + 1).as_bytes()).is_err());
    }

    #[test]
    fn what_is_missing_is_bounded_like_what_is_there() {
        let missing = |count: usize| vec!["\"\""; count].join(",");
        for (count, is_read) in [(MAX_KEYS, true), (MAX_KEYS + 1, false)] {
            let operator = format!("{{\"hits\":[],\"missing\":[{}]}}", missing(count));
            assert_eq!(decode::<OperatorAnswer<'_>>(operator.as_bytes()).is_ok(), is_read, "{count}");
            let cloud = format!("{{\"secrets\":{{}},\"missing\":[{}]}}", missing(count));
            assert_eq!(decode::<CloudAnswer<'_>>(cloud.as_bytes()).is_ok(), is_read, "{count}");
        }
    }

    #[test]
    fn times_are_rfc_3339() {
        let expected: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(time("expires_at", "2026-01-02T04:04:05+01:00").unwrap(), expected);
        assert_eq!(time("expires_at", "2026-01-02T03:04:05.000Z").unwrap(), expected);
        for text in ["", "tomorrow", "2026-01-02", "1767322000"] {
            assert_eq!(time("expires_at", text), Err(VaultError::broken("expires_at is not an RFC 3339 time")));
        }
    }
}
