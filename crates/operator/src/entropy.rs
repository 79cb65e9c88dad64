//! Where randomness comes from: the system, or in a simulation one seed.
//!
//! Two qualities, never mixed up. The operator key must be unpredictable and comes from the system alone. A nonce must
//! only differ from every other, and jitter must only spread.

use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

/// The system gave no random bytes, so no key can be made.
#[derive(Debug, thiserror::Error)]
#[error("the system gave no random bytes: {0}")]
pub struct NoEntropy(#[from] getrandom::Error);

/// A source of randomness. Clones share it.
#[derive(Clone, Debug)]
pub struct Entropy(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Seeded(Arc<Mutex<fastrand::Rng>>),
}

impl Entropy {
    /// The system's.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// Everything from `seed`, so that a run can be repeated. For simulations: its keys can be guessed.
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seeded(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)))))
    }

    /// Eight bytes unlike any before.
    pub fn nonce(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        match &self.0 {
            // Not secret, only distinct: so a pass need not fail where the system's source does.
            Source::System => getrandom::fill(&mut bytes).unwrap_or_else(|_| fastrand::fill(&mut bytes)),
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).fill(&mut bytes),
        }
        bytes
    }

    /// Thirty-two bytes that nobody can guess, wiped when dropped.
    pub fn key_bytes(&self) -> Result<Zeroizing<[u8; 32]>, NoEntropy> {
        let mut bytes = Zeroizing::new([0; 32]);
        match &self.0 {
            Source::System => getrandom::fill(bytes.as_mut_slice())?,
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes.as_mut_slice()),
        }
        Ok(bytes)
    }

    /// A number from 0 up to, but not including, 1.
    pub fn jitter(&self) -> f64 {
        match &self.0 {
            Source::System => fastrand::f64(),
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_seed_gives_one_story() {
        let draw = |entropy: &Entropy| (entropy.nonce(), *entropy.key_bytes().unwrap(), entropy.jitter().to_bits());
        assert_eq!(draw(&Entropy::seeded(7)), draw(&Entropy::seeded(7)));
        assert_ne!(draw(&Entropy::seeded(7)), draw(&Entropy::seeded(8)));
    }

    #[test]
    fn clones_of_a_seed_share_its_sequence() {
        let entropy = Entropy::seeded(7);
        let clone = entropy.clone();
        assert_ne!(entropy.nonce(), clone.nonce());
    }

    #[test]
    fn nonces_of_the_system_differ() {
        let entropy = Entropy::system();
        let nonces: BTreeSet<_> = (0..1_000).map(|_| entropy.nonce()).collect();
        assert_eq!(nonces.len(), 1_000);
    }

    #[test]
    fn keys_of_the_system_differ_and_are_not_blank() {
        let entropy = Entropy::system();
        let first = entropy.key_bytes().unwrap();
        assert_ne!(*first, [0; 32]);
        assert_ne!(*first, *entropy.key_bytes().unwrap());
    }

    #[test]
    fn jitter_stays_below_one() {
        let entropy = Entropy::seeded(1);
        assert!((0..10_000).all(|_| (0.0..1.0).contains(&entropy.jitter())));
    }
}
