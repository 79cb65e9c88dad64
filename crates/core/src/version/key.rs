//! The operator's key: 32 random bytes that only the operator has, and the short id by which versions name it.
//!
//! The key cannot be printed and is wiped when dropped. Its id is public: it stands in every version.

use hmac::{Hmac, KeyInit};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::hex;

/// What the hash behind an id begins with, so that an id is of no use for anything else.
const ID_DOMAIN: &[u8] = b"ferrvault.com/operator-key-id/v1\0";
/// SHA-256 works on blocks of 512 bits = 64 bytes; HMAC fills a shorter key up to that with zeros.
const BLOCK_BYTES: usize = 64;

/// Public name of an operator key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 4]);

impl KeyId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        hex::decode(text).map(Self)
    }
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl std::fmt::Debug for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// The bytes are not an operator key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an operator key has {} bytes, this one has {found}", OperatorKey::BYTES)]
pub struct OperatorKeyError {
    /// How many bytes there were.
    pub found: usize,
}

/// What versions are made and verified with.
pub struct OperatorKey {
    // On the heap, so that moving the key leaves no copy of it behind.
    bytes: Box<Zeroizing<[u8; Self::BYTES]>>,
    id: KeyId,
}

impl OperatorKey {
    /// Bytes of a key: 32, as many as SHA-256 gives; more would add nothing.
    pub const BYTES: usize = 32;

    /// Copies the key out of `bytes`, which the caller wipes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, OperatorKeyError> {
        if bytes.len() != Self::BYTES {
            return Err(OperatorKeyError { found: bytes.len() });
        }
        let mut kept = Box::new(Zeroizing::new([0; Self::BYTES]));
        kept.copy_from_slice(bytes);

        let hash = Sha256::new().chain_update(ID_DOMAIN).chain_update(bytes).finalize();
        let mut id = [0; 4];
        for (kept, byte) in id.iter_mut().zip(hash) {
            *kept = byte;
        }
        Ok(Self { bytes: kept, id: KeyId(id) })
    }

    /// Its public name.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The key itself, to be stored. Named so that each place which looks inside can be found.
    pub fn expose(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    pub(super) fn mac(&self) -> Hmac<Sha256> {
        // Filled up by hand because the constructor from a slice can fail and this one cannot.
        let mut block = Zeroizing::new([0; BLOCK_BYTES]);
        for (kept, byte) in block.iter_mut().zip(self.bytes.iter()) {
            *kept = *byte;
        }
        Hmac::new((&*block).into())
    }
}

impl std::fmt::Debug for OperatorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OperatorKey({})", self.id)
    }
}
