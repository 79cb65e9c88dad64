//! Every value and token that a scenario used, so that it can be looked for where none may ever be.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shorter texts occur by themselves.
const SHORTEST: usize = 12;

/// Longer ones are there to be too long for something, and of one letter.
const LONGEST: usize = 4096;

/// The values so far. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Canaries(Arc<Mutex<BTreeSet<String>>>);

/// A value that occurs nowhere else.
pub fn fresh(label: &str) -> String {
    format!("canary-{label}-{:016x}", fastrand::u64(..))
}

impl Canaries {
    /// Takes a value or token in.
    pub fn note(&self, value: &str) {
        if (SHORTEST..=LONGEST).contains(&value.len()) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(value.to_owned());
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The first one that `text` holds: as it is, or in base64, or as JSON and Rust write it inside quotes. What is
    /// returned says which and where, and shows neither the value nor the text around it.
    pub fn found_in(&self, text: &str) -> Option<String> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        values.iter().find_map(|value| {
            let escaped = format!("{value:?}");
            let forms = [
                value.clone(),
                escaped.trim_matches('"').to_owned(),
                STANDARD.encode(value),
                STANDARD_NO_PAD.encode(value),
                URL_SAFE_NO_PAD.encode(value),
                format!("{:?}", value.as_bytes()).trim_matches(['[', ']']).to_owned(),
            ];
            let at = forms.iter().find_map(|form| text.find(form.as_str()))?;
            let line = text[..at].lines().count();
            Some(format!(
                "the value or token that begins with {:?} is in line {line}",
                &value[..SHORTEST.min(value.len())]
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_in_each_form_that_a_leak_could_have() {
        let canaries = Canaries::default();
        canaries.note("canary \"quoted\" 17");
        canaries.note("short");
        assert_eq!(canaries.count(), 1);
        for text in [
            "is: canary \"quoted\" 17.",
            r#"{"a":"canary \"quoted\" 17"}"#,
            "data: Y2FuYXJ5ICJxdW90ZWQiIDE3",
            "ByteString([99, 97, 110, 97, 114, 121, 32, 34, 113, 117, 111, 116, 101, 100, 34, 32, 49, 55])",
        ] {
            assert!(canaries.found_in(text).is_some(), "{text}");
        }
        assert_eq!(canaries.found_in("short canary quoted"), None);
    }
}
