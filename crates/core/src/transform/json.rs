//! A JSON object as keys of its own: `{"db":{"port":1}}` under `APP` becomes `APP_DB_PORT`.
//!
//! Values are never parsed into numbers or trees: each is looked at as the slice of the source that it is, so every digit
//! survives and the only copies are the results, which are wiped. What `serde_json` says about a fault is reduced to its
//! position, because its messages quote what they met.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Failure, Problem, checked_length};
use crate::content::SecretBytes;

mod text;

/// How deep objects may be nested. Each level costs a look over what it holds, and 64 levels of names would not fit a key.
const MAX_DEPTH: usize = 64;

/// How many values one object may become. A Secret holds 1 MiB = 1,048,576 bytes: that is 100 bytes for each. Without a
/// bound, a source of 4 MiB in which every byte counts becomes half a million keys.
const MAX_FIELDS: usize = 10_000;

/// Calls `emit` for each value in the object `source`, with its key.
pub(super) fn expand(
    key: &str,
    source: &[u8],
    mut emit: impl FnMut(String, SecretBytes) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let not_json = |line, column| Failure::at(key, Problem::NotJson { line, column });
    let source = std::str::from_utf8(source).map_err(|_| not_json(0, 0))?;
    // One look over the whole: what follows works on slices of valid JSON.
    let whole: &RawValue = serde_json::from_str(source).map_err(|error| not_json(error.line(), error.column()))?;
    if !whole.get().starts_with('{') {
        return Err(Failure::at(key, Problem::NotAnObject));
    }
    let mut walk = Walk { source_key: key, emitted: 0, emit: &mut emit };
    walk.object(&upper(key), whole.get(), 1)
}

struct Walk<'a, E> {
    source_key: &'a str,
    emitted: usize,
    emit: &'a mut E,
}

impl<E: FnMut(String, SecretBytes) -> Result<(), Failure>> Walk<'_, E> {
    fn object(&mut self, path: &str, json: &str, depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(self.refuse(Problem::TooDeep { limit: MAX_DEPTH }));
        }
        // Known to be an object of valid JSON; what can still fail is a name with half a surrogate pair.
        let Fields(fields) = serde_json::from_str(json).map_err(|_| self.refuse(Problem::LoneSurrogate))?;
        for (name, value) in fields {
            let path = checked_length(format!("{path}_{}", upper(&name)))?;
            let json = value.get();
            let value = match json.as_bytes().first() {
                Some(b'{') => {
                    self.object(&path, json, depth + 1)?;
                    continue;
                }
                Some(b'"') => text::unescape(json).ok_or_else(|| Failure::at(&path, Problem::LoneSurrogate))?,
                Some(b'[') => text::compact(json),
                Some(b'n') => SecretBytes::new(Vec::new()),
                _ => SecretBytes::from(json),
            };
            self.emitted += 1;
            if self.emitted > MAX_FIELDS {
                return Err(self.refuse(Problem::TooManyFields { limit: MAX_FIELDS }));
            }
            (self.emit)(path, value)?;
        }
        Ok(())
    }

    fn refuse(&self, problem: Problem) -> Failure {
        Failure::at(self.source_key, problem)
    }
}

/// Upper case one character at a time, as Go does it: `ß` stays `ß` instead of becoming two letters.
fn upper(name: &str) -> String {
    let single = |c: char| {
        let mut upper = c.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(only), None) => only,
            _ => c,
        }
    };
    name.chars().map(single).collect()
}

/// The fields of one object in their order, duplicates included: two of one name collide like any other two.
///
/// One more than [`MAX_FIELDS`] is enough to see that there are too many, so no more are kept.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Vec::new();
        while fields.len() <= MAX_FIELDS {
            match map.next_entry()? {
                Some(field) => fields.push(field),
                None => return Ok(Fields(fields)),
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Fields(fields))
    }
}
