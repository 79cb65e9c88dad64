//! The `data` of a Kubernetes Secret on the wire: base64 text by key, to and from [`Content`].
//!
//! These types exist so that a Secret can be read and patched without k8s-openapi's own, which prints and is not wiped.
//! Errors of reading name a key at most: the messages that serde makes by itself quote what they met.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use zeroize::Zeroize;

use super::encoding::{Alphabet, decode, encode};
use super::{Content, SecretBytes};

/// A whole `data` map. Absent or null reads as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretData(pub Content);

/// A merge patch of a `data` map: a value is written, `None` (null on the wire) removes the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataPatch(pub BTreeMap<String, Option<SecretBytes>>);

/// The patch that makes `current` into `wanted`.
///
/// It names every wanted key, changed or not, so that its result depends on `current` only for the keys to remove: a
/// merge patch keeps what it does not name. Patching with it twice changes nothing more.
pub fn data_patch(current: &Content, wanted: &Content) -> DataPatch {
    let stale = current.0.keys().filter(|key| !wanted.0.contains_key(*key));
    let removed = stale.map(|key| (key.clone(), None));
    let written = wanted.0.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
    DataPatch(removed.chain(written).collect())
}

impl From<Content> for SecretData {
    fn from(content: Content) -> Self {
        Self(content)
    }
}

impl From<SecretData> for Content {
    fn from(data: SecretData) -> Self {
        data.0
    }
}

impl Serialize for SecretData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0.0 {
            map.serialize_entry(key, encode(value).as_str())?;
        }
        map.end()
    }
}

impl Serialize for DataPatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            let text = value.as_ref().map(encode);
            map.serialize_entry(key, &text.as_ref().map(|text| text.as_str()))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for SecretData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = SecretData;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of base64 text by key")
    }

    fn visit_unit<E: de::Error>(self) -> Result<SecretData, E> {
        Ok(SecretData::default())
    }

    // What stands where the map should be could be a value, and the errors that serde has for it quote it.
    fn visit_str<E: de::Error>(self, _: &str) -> Result<SecretData, E> {
        Err(not_a_map())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<SecretData, E> {
        Err(not_a_map())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<SecretData, E> {
        Err(not_a_map())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<SecretData, E> {
        Err(not_a_map())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretData, A::Error> {
        let mut content = Content::default();
        while let Some(key) = map.next_key::<String>()? {
            let Text(value) = map.next_value()?;
            match value {
                Some(value) => content.0.insert(key, value),
                None => return Err(de::Error::custom(format_args!("data[{key:?}] is not base64 text"))),
            };
        }
        Ok(SecretData(content))
    }
}

fn not_a_map<E: de::Error>() -> E {
    E::custom("data is not a map of base64 text by key")
}

/// What one key holds; `None` when it is not base64 text, for the map's visitor to say of which key.
struct Text(Option<SecretBytes>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base64 text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(decode(Alphabet::Standard, text.as_bytes()).ok()))
    }

    fn visit_string<E: de::Error>(self, mut text: String) -> Result<Text, E> {
        let read = self.visit_str(&text);
        text.zeroize();
        read
    }

    // Go writes an empty slice that was never allocated as null.
    fn visit_unit<E: de::Error>(self) -> Result<Text, E> {
        Ok(Text(Some(SecretBytes::new(Vec::new()))))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Text, E> {
        Ok(Text(None))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Text, E> {
        Ok(Text(None))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Text, E> {
        Ok(Text(None))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Text, E> {
        Ok(Text(None))
    }
}
