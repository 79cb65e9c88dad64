//! What travels: the answer of FerrVault and the content of a Secret, in types that cannot be printed.
//!
//! Holds invariant I8 by construction: none of these types implements `Display`, and `Debug` shows sizes only.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

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

/// What FerrVault answered to a reveal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The keys it has, with their values.
    pub content: Content,
    /// The keys that were asked for and that it does not have, sorted.
    pub missing: Vec<String>,
}
