//! What can keep a transform from being applied. No variant can hold a value or a piece of one.

use std::fmt;

use crate::content::{MAX_KEY_CHARS, Quoted};

/// Which transform failed, on which key, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformError {
    /// Its place in `spec.transforms`, from 0.
    pub index: usize,
    /// Its type as written in the resource.
    pub type_: String,
    /// The key it failed on; `None` when the transform itself is at fault.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The type is none of ours.
    #[error("unknown type; the types are prefix, suffix, rename, base64Decode and jsonExpand")]
    UnknownType,
    /// A field without which the type means nothing.
    #[error("the field `{0}` is missing; set it")]
    MissingField(&'static str),
    /// The key that would result exists already, or results twice.
    #[error("a key of that name is there already and would be written twice; rename one of the two")]
    Collision,
    /// The key that would result is longer than any key of a Secret; unbounded, a prefix could fill the memory.
    #[error("the key would have {bytes} bytes, a key of a Secret has at most {}; shorten it", MAX_KEY_CHARS)]
    KeyTooLong {
        /// Bytes it would have.
        bytes: usize,
    },
    /// Neither standard nor URL-safe base64.
    #[error(
        "the value is neither standard nor URL-safe base64 with padding; correct it, or leave the key out of the step"
    )]
    NotBase64,
    /// Not JSON at all.
    #[error("the value is not JSON (line {line}, column {column}); correct it, or take the step out")]
    NotJson {
        /// Line of the first fault, from 1; 0 when the bytes are not text.
        line: usize,
        /// Column of the first fault in bytes.
        column: usize,
    },
    /// JSON, but of another kind.
    #[error("the value is JSON but not an object; correct it, or take the step out")]
    NotAnObject,
    /// A text in the object with an escape that stands for no character.
    #[error("a text has a \\u escape that is half a surrogate pair; correct it")]
    LoneSurrogate,
    /// More values than a Secret can sensibly hold.
    #[error("the object would become more than {limit} keys; take the step out")]
    TooManyFields {
        /// How many there may be.
        limit: usize,
    },
    /// Objects in objects, too many.
    #[error("the objects are nested more than {limit} deep; take the step out")]
    TooDeep {
        /// How deep they may be.
        limit: usize,
    },
}

impl fmt::Display for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transforms[{}] ({}): ", self.index, Plain(&self.type_))?;
        if let Some(key) = &self.key {
            write!(f, "key {}: ", Quoted(key))?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for TransformError {}

/// A type as a message shows it: the known ones as they are, anything else escaped and cut.
struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Twice the longest type that exists.
        const SHOWN_CHARS: usize = 24;
        for c in self.0.chars().take(SHOWN_CHARS) {
            write!(f, "{}", c.escape_debug())?;
        }
        if self.0.chars().nth(SHOWN_CHARS).is_some() {
            f.write_str("...")?;
        }
        Ok(())
    }
}
