//! Go's grammar for durations, in Go's order of steps: that order decides which texts overflow and how fractions round.
//!
//! ```text
//!   duration = [sign] ( "0" | term+ )        term = ( digits [ "." digits* ] | "." digits ) unit
//! ```

use super::{DurationError, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND};

/// 2^63: one more than the largest positive 64-bit number, because the most negative one has that size.
const LIMIT: u64 = 1 << 63;

/// Nanoseconds of the duration that `text` stands for.
pub(super) fn parse(text: &str) -> Result<i64, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned == "0" {
        return Ok(0);
    }
    if unsigned.is_empty() {
        return Err(DurationError::malformed(text));
    }

    let mut total: u64 = 0;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let term = Term::split(text, rest)?;
        total = term
            .nanos()
            .and_then(|nanos| total.checked_add(nanos))
            .filter(|total| *total <= LIMIT)
            .ok_or_else(|| DurationError::overflow(text))?;
        rest = term.rest;
    }

    let nanos = if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
    nanos.ok_or_else(|| DurationError::overflow(text))
}

/// One number with its unit, and what follows it.
struct Term<'a> {
    whole: &'a str,
    fraction: &'a str,
    unit: u64,
    rest: &'a str,
}

impl<'a> Term<'a> {
    fn split(text: &str, from: &'a str) -> Result<Self, DurationError> {
        let (whole, after) = split_digits(from);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(DurationError::malformed(text));
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, rest) = after.split_at(end);
        let unit = match unit {
            "" => return Err(DurationError::missing_unit(text)),
            "ns" => 1,
            // U+00B5, the micro sign, and U+03BC, the Greek letter: both are typed.
            "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
            "ms" => MILLISECOND,
            "s" => SECOND,
            "m" => MINUTE,
            "h" => HOUR,
            unknown => return Err(DurationError::unknown_unit(text, unknown)),
        };
        Ok(Self { whole, fraction, unit, rest })
    }

    /// `None` when it is more than [`LIMIT`].
    fn nanos(&self) -> Option<u64> {
        let whole = whole(self.whole)?.checked_mul(self.unit)?;
        whole.checked_add(fraction(self.fraction, self.unit)).filter(|nanos| *nanos <= LIMIT)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn digits(text: &str) -> impl Iterator<Item = u64> {
    text.bytes().map(|digit| u64::from(digit.wrapping_sub(b'0')))
}

fn whole(text: &str) -> Option<u64> {
    let mut number: u64 = 0;
    for digit in digits(text) {
        number = number.checked_mul(10)?.checked_add(digit).filter(|number| *number <= LIMIT)?;
    }
    Some(number)
}

/// The fraction of one unit behind the decimal point, cut to whole nanoseconds.
///
/// In floating point because Go does it so, and the last nanosecond depends on it: `0.3333333333333333333h` is 20
/// minutes there, where exact arithmetic would give one nanosecond less. Digits beyond 63 bits are ignored.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go's own conversions; the result is never negative and at most one unit, 3.6e12"
)]
fn fraction(text: &str, unit: u64) -> u64 {
    let mut number: u64 = 0;
    let mut scale: f64 = 1.0;
    for digit in digits(text) {
        if number > (LIMIT - 1) / 10 {
            break;
        }
        let longer = number * 10 + digit;
        if longer > LIMIT {
            break;
        }
        number = longer;
        scale *= 10.0;
    }
    if number == 0 {
        return 0;
    }
    (number as f64 * (unit as f64 / scale)) as u64
}
