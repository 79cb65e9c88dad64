//! The two byte forms of a content that hashes are taken over.
//!
//! Both are handed to a sink piece by piece, so that no buffer ever holds all values at once. Whoever changes a byte of
//! either form changes every version in every cluster: the known answers in the tests of `version` pin them.

use super::Content;

impl Content {
    /// The unambiguous form: the number of keys, then each key and each value preceded by its length; every number is
    /// 8 bytes, big-endian. Two different contents never give the same bytes, whatever bytes they hold.
    pub(crate) fn feed_canonical(&self, mut sink: impl FnMut(&[u8])) {
        let length = |number: usize| u64::try_from(number).unwrap_or(u64::MAX).to_be_bytes();
        sink(&length(self.0.len()));
        for (key, value) in &self.0 {
            sink(&length(key.len()));
            sink(key.as_bytes());
            sink(&length(value.len()));
            sink(value.expose());
        }
    }

    /// The Go operator's form: `key 0x00 value 0x00`, sorted by key. Ambiguous where a value holds a zero byte, so it
    /// only serves to recognise what that operator left.
    pub(crate) fn feed_legacy(&self, mut sink: impl FnMut(&[u8])) {
        for (key, value) in &self.0 {
            sink(key.as_bytes());
            sink(&[0]);
            sink(value.expose());
            sink(&[0]);
        }
    }
}
