//! Transforms: what happens to an answer between FerrVault and the Secret, in the order the resource lists them.
//!
//! All or nothing: the first transform that cannot be applied ends the whole, and what was worked on is wiped. An error
//! names the transform, its type and the key it failed on, and never a value, a piece of one or what a parser says about
//! one. Values are moved, not copied, wherever they stay as they are.

mod error;
mod json;

use std::collections::{BTreeMap, BTreeSet};

use ferrvault_api::secret::Transform;

use crate::content::{Alphabet, Content, MAX_KEY_CHARS, SecretBytes, decode_base64};

pub use error::{Problem, TransformError};

/// Applies `transforms` in order.
pub fn apply(transforms: &[Transform], content: Content) -> Result<Content, TransformError> {
    transforms.iter().enumerate().try_fold(content, |content, (index, transform)| {
        apply_one(transform, content).map_err(|failure| TransformError {
            index,
            type_: transform.type_.clone(),
            key: failure.key,
            problem: failure.problem,
        })
    })
}

/// What is wrong, and with which key; the caller knows where.
#[derive(Debug)]
struct Failure {
    key: Option<String>,
    problem: Problem,
}

impl Failure {
    fn at(key: &str, problem: Problem) -> Self {
        Self { key: Some(key.to_owned()), problem }
    }
}

fn apply_one(transform: &Transform, content: Content) -> Result<Content, Failure> {
    match transform.type_.as_str() {
        "prefix" => {
            // Without a value nothing changes, as the Go operator had it.
            let prefix = transform.value.as_deref().unwrap_or_default();
            with_keys(content, |key| format!("{prefix}{key}"))
        }
        "suffix" => {
            let suffix = transform.value.as_deref().unwrap_or_default();
            with_keys(content, |key| format!("{key}{suffix}"))
        }
        "rename" => {
            rename(content, not_empty(transform.from.as_ref(), "from")?, not_empty(transform.to.as_ref(), "to")?)
        }
        "base64Decode" => base64_decode(content, &transform.keys),
        "jsonExpand" => json_expand(content, not_empty(transform.key.as_ref(), "key")?),
        _ => Err(Failure { key: None, problem: Problem::UnknownType }),
    }
}

fn not_empty<'a>(field: Option<&'a String>, name: &'static str) -> Result<&'a str, Failure> {
    let given = field.map(String::as_str).filter(|text| !text.is_empty());
    given.ok_or(Failure { key: None, problem: Problem::MissingField(name) })
}

/// Different keys stay different under a common prefix or suffix, so nothing can collide here.
fn with_keys(content: Content, renamed: impl Fn(&str) -> String) -> Result<Content, Failure> {
    let pairs = content.0.into_iter();
    pairs.map(|(key, value)| Ok((checked_length(renamed(&key))?, value))).collect()
}

/// Refuses a made-up key that no Secret could hold.
fn checked_length(key: String) -> Result<String, Failure> {
    if key.len() > MAX_KEY_CHARS {
        return Err(Failure::at(&key, Problem::KeyTooLong { bytes: key.len() }));
    }
    Ok(key)
}

fn rename(mut content: Content, from: &str, to: &str) -> Result<Content, Failure> {
    if from == to {
        return Ok(content);
    }
    if let Some(value) = content.0.remove(from) {
        insert_new(&mut content.0, to.to_owned(), value)?;
    }
    Ok(content)
}

fn insert_new(values: &mut BTreeMap<String, SecretBytes>, key: String, value: SecretBytes) -> Result<(), Failure> {
    if values.contains_key(&key) {
        return Err(Failure::at(&key, Problem::Collision));
    }
    values.insert(key, value);
    Ok(())
}

/// A key that is named but missing is skipped, as in the other transforms; one named twice is decoded once.
fn base64_decode(mut content: Content, keys: &[String]) -> Result<Content, Failure> {
    let named: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    for (key, value) in &mut content.0 {
        if named.is_empty() || named.contains(key.as_str()) {
            let text = value.expose();
            *value = decode_base64(Alphabet::Standard, text)
                .or_else(|_| decode_base64(Alphabet::UrlSafe, text))
                .map_err(|_| Failure::at(key, Problem::NotBase64))?;
        }
    }
    Ok(content)
}

fn json_expand(mut content: Content, key: &str) -> Result<Content, Failure> {
    if let Some(source) = content.0.remove(key) {
        json::expand(key, source.expose(), |name, value| insert_new(&mut content.0, name, value))?;
    }
    Ok(content)
}

#[cfg(test)]
mod tests;
