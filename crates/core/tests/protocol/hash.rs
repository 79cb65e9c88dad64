//! Fingerprints of states: what has been seen is remembered by 128 bits of it instead of by all of it, so that tens of
//! millions of states fit into memory. Two states with one fingerprint would hide one of them; among 10^8 states the odds of
//! any such pair are below 10^-22.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// States that were seen.
#[derive(Default)]
pub(crate) struct Seen(HashSet<u128, BuildHasherDefault<Lower>>);

impl Seen {
    /// Whether this one is new.
    pub(crate) fn insert(&mut self, state: &impl Hash) -> bool {
        let mut lanes = Lanes::default();
        state.hash(&mut lanes);
        self.0.insert(lanes.fingerprint())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Two hashes side by side: FNV-1a over words, and one that rotates, so that what cancels out in one does not in the other.
struct Lanes(u64, u64);

impl Default for Lanes {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325, 0x9e37_79b9_7f4a_7c15)
    }
}

impl Lanes {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
        self.1 = (self.1.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
    }

    fn fingerprint(&self) -> u128 {
        // The last words reach the upper bits only by being spread once more.
        let spread = |lane: u64| {
            let lane = (lane ^ (lane >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            u128::from(lane ^ (lane >> 29))
        };
        (spread(self.0) << 64) | spread(self.1)
    }
}

impl Hasher for Lanes {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.mix(word.cast_unsigned() as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A fingerprint is as random as a hash gets.
#[derive(Default)]
struct Lower(u64);

impl Hasher for Lower {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            self.0 ^= chunk.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte));
        }
    }

    fn write_u128(&mut self, word: u128) {
        self.0 = (word & u128::from(u64::MAX)).try_into().unwrap_or_default();
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
