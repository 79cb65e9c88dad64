//! Text that must never be printed: values of secrets, tokens and private keys.
//!
//! The type has neither `Display` nor `Serialize`, its `Debug` shows a size, and its memory is wiped when it is dropped.
//! The few fields that do go out on the wire or into the file name [`serialize_exposed`] themselves, so that each of
//! them can be found with one search.

use serde::{Deserialize, Deserializer, Serializer};
use zeroize::Zeroizing;

/// One value, token or private key.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes `text` over, without a copy.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Writes the text itself; for the fields whose purpose is to carry it.
pub fn serialize_exposed<S: Serializer>(text: &SecretText, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text.expose())
}

#[cfg(test)]
mod tests {
    use super::SecretText;

    #[test]
    fn debug_shows_the_size_and_nothing_else() {
        let text = SecretText::new("canary-value".to_owned());
        assert_eq!(format!("{text:?}"), "<12 bytes>");
    }
}
