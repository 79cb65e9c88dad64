//! What the API server would refuse in a Secret's data, found before anything is written.
//!
//! The rules are Kubernetes' own (its validation of Secrets); the messages are ours, because they can say what to change
//! in the resource. They name keys and sizes, never a value.

use super::Content;

/// Longest key of a Secret: that of a DNS subdomain name.
pub const MAX_KEY_CHARS: usize = 253;
/// Most bytes that the values of one Secret may have together: 1 MiB = 1024 x 1024. Keys are not counted.
pub const MAX_TOTAL_BYTES: usize = 1024 * 1024;

/// One reason why this content cannot be the data of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentViolation {
    /// A key that Kubernetes refuses.
    #[error(
        "key {} is not a valid key of a Secret: {rule}; use `transforms` (`rename` or `prefix`) to give it another name",
        Quoted(.key)
    )]
    InvalidKey {
        /// The key as it would be written.
        key: String,
        /// What it breaks.
        rule: KeyRule,
    },
    /// More bytes than a Secret may hold.
    #[error(
        "the values have {bytes} bytes together, a Secret holds at most {limit} (1 MiB); use `selector.names` to choose fewer keys"
    )]
    TooLarge {
        /// Bytes of all values.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
}

/// Everything that keeps a content from being the data of a Secret: keys in order, the size last. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentViolations(pub Vec<ContentViolation>);

/// How many of them a message spells out: a condition is read by people, and the rest have the same cure.
const SHOWN_VIOLATIONS: usize = 3;

impl std::fmt::Display for ContentViolations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, violation) in self.0.iter().take(SHOWN_VIOLATIONS).enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{violation}")?;
        }
        match self.0.len().saturating_sub(SHOWN_VIOLATIONS) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for ContentViolations {}

/// Which rule for keys is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRule {
    /// No character at all.
    #[error("it is empty")]
    Empty,
    /// More than [`MAX_KEY_CHARS`].
    #[error("it has more than 253 characters")]
    TooLong,
    /// A character outside the set.
    #[error("only letters, digits, `-`, `_` and `.` are allowed")]
    Character,
    /// `.`, or anything that starts with `..`: a file of that name could leave the mounted folder.
    #[error("it may not be `.` and may not start with `..`")]
    Dots,
}

impl Content {
    /// Whether this content can be the data of a Secret.
    pub fn check_for_secret(&self) -> Result<(), ContentViolations> {
        let invalid = |key: &String| {
            let rule = broken_rule(key)?;
            Some(ContentViolation::InvalidKey { key: key.clone(), rule })
        };
        let bytes = self.0.values().map(super::SecretBytes::len).sum();
        let too_large = (bytes > MAX_TOTAL_BYTES).then_some(ContentViolation::TooLarge {
            bytes,
            limit: MAX_TOTAL_BYTES,
        });
        let violations: Vec<_> = self.0.keys().filter_map(invalid).chain(too_large).collect();
        if violations.is_empty() {
            Ok(())
        } else {
            Err(ContentViolations(violations))
        }
    }
}

fn broken_rule(key: &str) -> Option<KeyRule> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() {
        Some(KeyRule::Empty)
    } else if !key.bytes().all(allowed) {
        Some(KeyRule::Character)
    } else if key.len() > MAX_KEY_CHARS {
        Some(KeyRule::TooLong)
    } else if key == "." || key.starts_with("..") {
        Some(KeyRule::Dots)
    } else {
        None
    }
}

/// A key inside a message: in quotes, control characters escaped, and cut where no valid key goes on. Keys come from
/// outside and end in logs and conditions, where a line break or a screenful would hide the rest.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.char_indices().nth(MAX_KEY_CHARS) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}...", self.0.get(..end).unwrap_or_default()),
        }
    }
}
