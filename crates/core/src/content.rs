//! What travels: the answer of FerrVault and the content of a Secret, in types that cannot be printed.
//!
//! Holds invariant I8 by construction: none of these types implements `Display`, and `Debug` shows sizes only. Nothing
//! here may format, log or put into an error a single byte of a value; keys are names and may be shown.

mod canonical;
mod check;
mod data;
mod encoding;

use std::collections::BTreeMap;

use zeroize::Zeroizing;

pub(crate) use check::Quoted;
pub use check::{ContentViolation, KeyRule, MAX_KEY_CHARS, MAX_TOTAL_BYTES};
pub use data::{DataPatch, SecretData, data_patch};
pub(crate) use encoding::{Alphabet, decode as decode_base64};

/// One secret value. Cannot be printed; wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// Takes `bytes` over, without a copy.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The value itself. Named so that each place which looks inside can be found.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

impl From<Zeroizing<Vec<u8>>> for SecretBytes {
    fn from(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for SecretBytes {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes().to_vec())
    }
}

impl From<String> for SecretBytes {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes())
    }
}

/// Keys and their values, sorted by key: what a Secret holds or shall hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content(pub BTreeMap<String, SecretBytes>);

impl Content {
    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&SecretBytes> {
        self.0.get(key)
    }

    /// The keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Bytes of all keys and values together: what this content costs to hold.
    pub fn total_size(&self) -> usize {
        self.0.iter().map(|(key, value)| key.len() + value.len()).sum()
    }
}

impl<K: Into<String>, V: Into<SecretBytes>> FromIterator<(K, V)> for Content {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

/// What FerrVault answered to a reveal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The keys it has, with their values.
    pub content: Content,
    /// The keys that were asked for and that it does not have, sorted.
    pub missing: Vec<String>,
}

#[cfg(test)]
mod tests;
