//! Secrets: `stringData`, base64, key names, size, what a type demands, what may not change.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::object;
use crate::refusal::FieldError;

/// 1 MiB of values, decoded.
const SIZE_LIMIT: usize = 1024 * 1024;
/// Of a key.
const KEY_LIMIT: usize = 253;

const KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
     or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Merges `stringData` into `data`, gives a type, checks that `data` is base64.
pub(super) fn decode(object: &mut Value) -> Result<(), String> {
    let fields = object::fields_mut(object);
    for field in ["data", "stringData"] {
        if let Some(value) = fields.get(field).filter(|value| !value.is_null() && !value.is_object()) {
            let type_ = if field == "data" { "map[string][]uint8" } else { "map[string]string" };
            return Err(unreadable(value, field, type_));
        }
    }
    if fields.get("type").and_then(Value::as_str).unwrap_or_default().is_empty() {
        fields.insert("type".to_owned(), "Opaque".into());
    }
    let plain = match fields.remove("stringData") {
        Some(Value::Object(plain)) => plain,
        _ => Map::new(),
    };
    let mut data = match fields.remove("data") {
        Some(Value::Object(data)) => data,
        _ => Map::new(),
    };
    for value in data.values_mut() {
        match value {
            // A null value of a byte field is an empty value.
            Value::Null => *value = "".into(),
            Value::String(text) => {
                if let Err(error) = STANDARD.decode(&*text) {
                    return Err(format!("illegal base64 data at input byte {}", position(&error)));
                }
            }
            other => return Err(unreadable(other, "data", "[]uint8")),
        }
    }
    for (key, value) in plain {
        let Some(text) = value.as_str() else { return Err(unreadable(&value, "stringData", "string")) };
        data.insert(key, STANDARD.encode(text).into());
    }
    if !data.is_empty() {
        fields.insert("data".to_owned(), data.into());
    }
    Ok(())
}

fn unreadable(value: &Value, field: &str, type_: &str) -> String {
    let found = object::go_word(value);
    format!("json: cannot unmarshal {found} into Go struct field Secret.{field} of type {type_}")
}

fn position(error: &base64::DecodeError) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol { offset: at, .. } => *at,
        base64::DecodeError::InvalidLength(length) => *length,
        base64::DecodeError::InvalidPadding => 0,
    }
}

pub(super) fn validate(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let data = object::map(object, "/data");
    let mut total = 0;
    for (key, value) in data.into_iter().flatten() {
        if let Some(wrong) = wrong_key(key) {
            errors.push(FieldError::invalid(format!("data[{key}]"), &key.as_str().into(), wrong));
        }
        total += STANDARD.decode(value.as_str().unwrap_or_default()).map_or(0, |bytes| bytes.len());
    }
    if total > SIZE_LIMIT {
        errors.push(FieldError::too_long("data", SIZE_LIMIT));
    }
    validate_type(object, errors);
    if let Some(live) = live {
        validate_change(live, object, errors);
    }
}

/// What is wrong with a key, if anything.
fn wrong_key(key: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.len() > KEY_LIMIT {
        Some("must be no more than 253 bytes")
    } else if key.is_empty() || !key.chars().all(is_plain) {
        Some(KEY_RULE)
    } else if key == "." {
        Some("must not be '.'")
    } else if key == ".." {
        Some("must not be '..'")
    } else if key.starts_with("..") {
        Some("must not start with '..'")
    } else {
        None
    }
}

fn validate_type(object: &Value, errors: &mut Vec<FieldError>) {
    let has = |key: &str| object::map(object, "/data").is_some_and(|data| data.contains_key(key));
    let demanded: &[&str] = match object::text(object, "/type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => &["username", "password"],
        "kubernetes.io/service-account-token" => {
            let account = object.pointer("/metadata/annotations/kubernetes.io~1service-account.name");
            if account.and_then(Value::as_str).unwrap_or_default().is_empty() {
                let field = "metadata.annotations[kubernetes.io/service-account.name]";
                errors.push(FieldError::required(field, ""));
            }
            &[]
        }
        _ => &[],
    };
    for key in demanded.iter().filter(|key| !has(key)) {
        errors.push(FieldError::required(format!("data[{key}]"), ""));
    }
}

fn validate_change(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    if live.get("type") != object.get("type") {
        let type_ = object.get("type").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("type", &type_, "field is immutable"));
    }
    if live.get("immutable") == Some(&Value::Bool(true)) {
        let detail = "field is immutable when `immutable` is set";
        if object.get("immutable") != Some(&Value::Bool(true)) {
            errors.push(FieldError::forbidden("immutable", detail));
        }
        if live.get("data") != object.get("data") {
            errors.push(FieldError::forbidden("data", detail));
        }
    }
}
