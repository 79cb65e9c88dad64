//! Events of `events.k8s.io`: the fields that the API demands and the lengths that it allows.

use serde_json::Value;

use crate::object;
use crate::refusal::FieldError;

/// Of a note.
const NOTE_LIMIT: usize = 1024;
/// Of a reason, an action and the name of an instance.
const NAME_LIMIT: usize = 128;

pub(super) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    if object.get("eventTime").is_none_or(Value::is_null) {
        errors.push(FieldError::required("eventTime", ""));
    }
    for (field, required, limit) in [
        ("reportingController", true, 253),
        ("reportingInstance", true, NAME_LIMIT),
        ("action", true, NAME_LIMIT),
        ("reason", true, NAME_LIMIT),
        ("note", false, NOTE_LIMIT),
    ] {
        let text = object::text(object, &format!("/{field}"));
        if required && text.is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        if text.len() > limit {
            let detail = format!("can have at most {limit} characters");
            errors.push(FieldError::invalid(field, &"".into(), &detail));
        }
    }
    let kind = object.get("type").cloned().unwrap_or_default();
    if !matches!(kind.as_str(), Some("Normal" | "Warning")) {
        errors.push(FieldError::invalid("type", &kind, "has invalid value"));
    }
}
