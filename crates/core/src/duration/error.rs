//! What can be wrong with the text of a duration. Every message quotes the text and says what is expected.

/// Most characters of the text that a message repeats; the longest duration that makes sense has fewer than 40.
const SHOWN_CHARS: usize = 64;

/// What every message ends with.
const EXPECTED: &str = "expected a duration such as 30m, 1h30m or 1.5s";

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing at all.
    #[error("the duration is empty (\"\"); {EXPECTED}")]
    Empty,
    /// Something that is not a number stands where one should.
    #[error("{input:?} is not a duration; {EXPECTED}")]
    Malformed {
        /// The text.
        input: String,
    },
    /// A number without a unit; only a lone `0` needs none.
    #[error("{input:?} lacks a unit after a number (ns, us, ms, s, m or h); {EXPECTED}")]
    MissingUnit {
        /// The text.
        input: String,
    },
    /// A unit that does not exist.
    #[error("{input:?} has the unknown unit {unit:?}; the units are ns, us, ms, s, m and h; {EXPECTED}")]
    UnknownUnit {
        /// The text.
        input: String,
        /// What stands where a unit should.
        unit: String,
    },
    /// Below zero where that makes no sense.
    #[error("{input:?} is negative; expected zero or more, such as 0s, 30m or 1h30m")]
    Negative {
        /// The text.
        input: String,
    },
    /// More than 64 bits of nanoseconds.
    #[error("{input:?} is too long; expected at most 2562047h (about 292 years)")]
    Overflow {
        /// The text.
        input: String,
    },
}

impl DurationError {
    pub(super) fn malformed(text: &str) -> Self {
        Self::Malformed { input: shown(text) }
    }

    pub(super) fn missing_unit(text: &str) -> Self {
        Self::MissingUnit { input: shown(text) }
    }

    pub(super) fn unknown_unit(text: &str, unit: &str) -> Self {
        Self::UnknownUnit { input: shown(text), unit: shown(unit) }
    }

    pub(super) fn negative(text: &str) -> Self {
        Self::Negative { input: shown(text) }
    }

    pub(super) fn overflow(text: &str) -> Self {
        Self::Overflow { input: shown(text) }
    }
}

/// The text, cut where it is absurdly long. The quoting in the messages escapes what would break a line.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}
