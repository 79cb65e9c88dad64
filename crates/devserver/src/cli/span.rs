//! Spans of time on the command line, and the words for what is none.

use jiff::SignedDuration;

use super::CliError;

/// Reads the span that `option` was given, such as `90s`, `15m`, `1h30m` or `24h`.
pub(super) fn read_span(option: &str, text: &str) -> Result<SignedDuration, CliError> {
    text.trim().parse().map_err(|_| {
        CliError::Usage(format!(
            "{option} {text:?} is no time: write a number with s, m or h behind it, such as 90s, 15m, 1h30m or 24h; a day is \
             24h"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("1h30m", 5_400), ("24h", 86_400), ("-5m", -300), ("0s", 0)]
        {
            assert_eq!(read_span("--a", text).unwrap().as_secs(), seconds, "{text}");
        }
    }

    #[test]
    fn what_is_none_is_told_in_our_own_words() {
        for text in ["", "soon", "7", "7d", "1y", "1h30"] {
            let said = read_span("--expires-in", text).unwrap_err().to_string();
            let expected = format!("--expires-in {text:?} is no time: write a number with s, m or h behind it");
            assert!(said.starts_with(&expected), "{said}");
        }
    }
}
