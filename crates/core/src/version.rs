//! Versions: a name for one content that tells nothing to whoever lacks the operator's key.
//!
//! A version is a nonce with a keyed hash over nonce and content, so the same content gets another version each time it
//! returns, and the operator can tell from any version alone whether given data is its content. Versions stand in
//! annotations, labels and status and may be printed; keys and values may not. The nonce is handed in: nothing here is
//! random.
//!
//! ```text
//!   v1 . 4 bytes key id . 8 bytes nonce . 16 bytes mac      (lower-case hex)
//!   2  1       8        1      16       1      32        =  61 characters, of the 63 that a label value may have
//! ```

mod hex;
mod key;

use hmac::Mac;
use hmac::digest::CtOutput;
use sha2::{Digest, Sha256};

use crate::content::Content;

pub use key::{KeyId, OperatorKey, OperatorKeyError};

/// What a version's keyed hash begins with, so that no other use of the same key can ever produce one.
const MAC_DOMAIN: &[u8] = b"ferrvault.com/content-version/v1\0";
/// What a keyed version's text begins with; another scheme gets another number.
const SCHEME: &str = "v1";
/// Bytes of the keyed hash that are kept. 16 = 128 bits: a content cannot be made to fit without the key.
const MAC_BYTES: usize = 16;

/// Names one content. Equal when the text is equal.
#[derive(Clone)]
pub struct Version {
    text: String,
    form: Form,
}

/// What a version's text says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Made by this operator.
    Keyed {
        /// The key it was made with.
        key_id: KeyId,
        /// What makes it different from every other version of the same content.
        nonce: [u8; 8],
        /// The keyed hash, truncated.
        mac: [u8; MAC_BYTES],
    },
    /// Made by the Go operator: an unkeyed SHA-256.
    Legacy([u8; 32]),
    /// Anything else: somebody edited it, or a later scheme.
    Foreign,
}

/// Whether a version is that of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Matches,
    /// It is not.
    Differs,
    /// Cannot be told: it was made with a key that is gone, or by somebody else.
    KeyGone,
}

impl Version {
    /// A new version of `content`. `nonce` must never have been used before.
    pub fn make(key: &OperatorKey, nonce: [u8; 8], content: &Content) -> Self {
        let full = keyed_mac(key, nonce, content).finalize();
        let mut mac = [0; MAC_BYTES];
        for (kept, byte) in mac.iter_mut().zip(full.as_bytes()) {
            *kept = *byte;
        }
        let key_id = key.id();
        let text = format!("{SCHEME}.{key_id}.{}.{}", hex::encode(&nonce), hex::encode(&mac));
        Self { text, form: Form::Keyed { key_id, nonce, mac } }
    }

    /// Reads a version back. Never fails: what nobody here made is [`Form::Foreign`] and still equal to itself.
    pub fn parse(text: impl Into<String>) -> Self {
        let text = text.into();
        let form = keyed(&text).or_else(|| hex::decode(&text).map(Form::Legacy)).unwrap_or(Form::Foreign);
        Self { text, form }
    }

    /// The text, as it stands in annotations and status.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the text says about itself.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Whether this is the version of `content`. Hashes are compared in constant time.
    pub fn verify(&self, key: &OperatorKey, content: &Content) -> Verdict {
        let matches = match self.form {
            Form::Keyed { key_id, nonce, mac } if key_id == key.id() => {
                keyed_mac(key, nonce, content).verify_truncated_left(&mac).is_ok()
            }
            Form::Legacy(expected) => {
                let mut hash = Sha256::new();
                content.feed_legacy(|piece| Digest::update(&mut hash, piece));
                CtOutput::<Sha256>::new(hash.finalize()) == CtOutput::new(expected.into())
            }
            Form::Keyed { .. } | Form::Foreign => return Verdict::KeyGone,
        };
        if matches { Verdict::Matches } else { Verdict::Differs }
    }
}

fn keyed_mac(key: &OperatorKey, nonce: [u8; 8], content: &Content) -> hmac::Hmac<Sha256> {
    let mut mac = key.mac();
    Mac::update(&mut mac, MAC_DOMAIN);
    Mac::update(&mut mac, &nonce);
    content.feed_canonical(|piece| Mac::update(&mut mac, piece));
    mac
}

fn keyed(text: &str) -> Option<Form> {
    let mut parts = text.split('.');
    let scheme = parts.next()?;
    let form = Form::Keyed {
        key_id: KeyId::parse(parts.next()?)?,
        nonce: hex::decode(parts.next()?)?,
        mac: hex::decode(parts.next()?)?,
    };
    (scheme == SCHEME && parts.next().is_none()).then_some(form)
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl std::hash::Hash for Version {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Version({:?})", self.text)
    }
}

#[cfg(test)]
mod tests;
