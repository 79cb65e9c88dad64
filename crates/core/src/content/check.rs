//! What the API server would refuse in a Secret's data, found before anything is written.
//!
//! The rules are Kubernetes' own (its validation of Secrets); the messages are ours, because they can say what to change
//! in the resource. They name keys and sizes, never a value.

use super::{Content, SecretBytes};

/// Longest key of a Secret: that of a DNS subdomain name.
pub const MAX_KEY_CHARS: usize = 253;
/// Most bytes that the values of one Secret may have together: 1 MiB = 1024 x 1024. Keys are not counted.
pub const MAX_TOTAL_BYTES: usize = 1024 * 1024;

/// How many invalid keys are spelled out: the list ends in a condition, and the rest have the same cure.
const NAMED_KEYS: usize = 3;

/// One reason why this content cannot be the data of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentViolation {
    /// A key that Kubernetes refuses.
    #[error(
        "key {} is not a valid key of a Secret: {rule}; give it another name by `transforms`: `rename`, or another `prefix`",
        Quoted(.key)
    )]
    InvalidKey {
        /// The key as it would be written.
        key: String,
        /// What it breaks.
        rule: KeyRule,
    },
    /// Further keys that Kubernetes refuses.
    #[error("{more} more {} not valid either", if *.more == 1 { "key is" } else { "keys are" })]
    MoreInvalidKeys {
        /// How many.
        more: usize,
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
    /// What keeps this content from being the data of a Secret; empty when nothing does. The first keys in order, how many
    /// more there are, and the size last: at most five entries.
    pub fn check_for_secret(&self) -> Vec<ContentViolation> {
        let mut invalid = self.0.keys().filter_map(|key| Some((key, broken_rule(key)?)));
        let named = invalid.by_ref().take(NAMED_KEYS);
        let mut violations: Vec<_> =
            named.map(|(key, rule)| ContentViolation::InvalidKey { key: key.clone(), rule }).collect();
        let more = invalid.count();
        if more > 0 {
            violations.push(ContentViolation::MoreInvalidKeys { more });
        }
        let bytes = self.0.values().map(SecretBytes::len).sum();
        if bytes > MAX_TOTAL_BYTES {
            violations.push(ContentViolation::TooLarge { bytes, limit: MAX_TOTAL_BYTES });
        }
        violations
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
