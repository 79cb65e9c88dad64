//! How a connection is going to end. Pure.

/// The direction whose bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client: requests.
    Up,
    /// To the client: answers and watch events.
    Down,
}

/// What happens to it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides get a reset.
    Reset,
    /// Both sides see an orderly end of what they read.
    Close,
    /// Nothing comes through any more, either way; the connection stays open.
    Stall,
}

/// A connection's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Which bytes count.
    pub way: Way,
    /// How many of them still get through.
    pub after: u64,
    /// What happens then.
    pub end: End,
}

/// Powers of two between which the number of bytes is drawn: from within the first TLS message (2^5 = 32) up to a list of a
/// few hundred objects (2^19 = 512 KiB), each size as likely as the next.
const SIZES: std::ops::Range<u32> = 5..19;

impl Fate {
    /// Draws one; nothing for a connection that lasts. A third of them do, or no list would ever end.
    pub fn draw(random: &mut fastrand::Rng) -> Option<Self> {
        if random.u8(0..3) == 0 {
            return None;
        }
        let size = 1_u64 << random.u32(SIZES);
        let end = match random.u8(0..10) {
            0 => End::Stall,
            1..=5 => End::Reset,
            _ => End::Close,
        };
        // Answers are longer than requests, and what they answer has been done.
        let way = if random.u8(0..5) < 3 { Way::Down } else { Way::Up };
        Some(Self { way, after: random.u64(size..2 * size), end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_fates_again_and_every_kind_of_them() {
        let fates = |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            (0..300).map(|_| Fate::draw(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
        let drawn = fates(7);
        assert!(drawn.contains(&None));
        for end in [End::Reset, End::Close, End::Stall] {
            for way in [Way::Up, Way::Down] {
                assert!(drawn.iter().flatten().any(|fate| fate.end == end && fate.way == way), "{end:?} {way:?}");
            }
        }
    }
}
