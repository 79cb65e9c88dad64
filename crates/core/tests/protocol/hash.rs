//! A hasher for states: many small fields, and nobody who would provoke collisions.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds FNV-1a hashers.
pub(crate) type Fnv = BuildHasherDefault<Fnv1a>;

pub(crate) struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
    }
}

impl Hasher for Fnv1a {
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
        // The table looks at the upper bits too, and the last words only reached the lower ones.
        self.0 ^ (self.0 >> 32)
    }
}
