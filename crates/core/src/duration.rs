//! Durations as Go writes them: `1h30m`, `1.5s`, `300ms`, `0`.
//!
//! Resources and flags of the Go operator hold such text, so parsing follows Go's `time.ParseDuration` and formatting its
//! `Duration.String` in every detail: units, signs, rounding of fractions, limits. Only the errors are our own, because
//! they end in conditions: each quotes the text and says what is expected.

mod error;
mod grammar;

use std::time::Duration;

pub use error::DurationError;

/// Nanoseconds of one of each unit.
const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// A span of time, negative ones included: nanoseconds in 64 bits, about 292 years either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// That many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Reads Go's syntax.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        grammar::parse(text).map(Self)
    }

    /// Reads Go's syntax where a negative span makes no sense, as in a resource; zero is allowed.
    pub fn parse_non_negative(text: &str) -> Result<Duration, DurationError> {
        Self::parse(text)?.to_std().ok_or_else(|| DurationError::negative(text))
    }

    /// The same span for the rest of the program; `None` when it is negative.
    pub fn to_std(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }
}

impl std::str::FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        Self::parse(text)
    }
}

/// What does not fit becomes the longest span there is.
impl From<Duration> for GoDuration {
    fn from(span: Duration) -> Self {
        Self(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl std::fmt::Display for GoDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..MICROSECOND => write!(f, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write_decimal(f, nanos, MICROSECOND, "µs"),
            MILLISECOND..SECOND => write_decimal(f, nanos, MILLISECOND, "ms"),
            SECOND.. => {
                if nanos >= HOUR {
                    write!(f, "{}h", nanos / HOUR)?;
                }
                if nanos >= MINUTE {
                    write!(f, "{}m", nanos % HOUR / MINUTE)?;
                }
                write_decimal(f, nanos % MINUTE, SECOND, "s")
            }
        }
    }
}

/// `nanos` as a decimal number of `unit`, without zeros at the end.
fn write_decimal(f: &mut std::fmt::Formatter<'_>, nanos: u64, unit: u64, suffix: &str) -> std::fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let (mut rest, mut unit) = (nanos % unit, unit);
    if rest > 0 {
        f.write_str(".")?;
    }
    while rest > 0 {
        unit /= 10;
        write!(f, "{}", rest / unit)?;
        rest %= unit;
    }
    f.write_str(suffix)
}

#[cfg(test)]
mod tests;
