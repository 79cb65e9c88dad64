//! Leases: the numbers have to make sense.

use serde_json::Value;

use crate::refusal::FieldError;

pub(super) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let number = |field: &str| object.pointer(&format!("/spec/{field}")).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid("spec.leaseDurationSeconds", &seconds.into(), "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.leaseTransitions", &count.into(), detail));
    }
    for field in ["acquireTime", "renewTime"] {
        let time = object.pointer(&format!("/spec/{field}")).and_then(Value::as_str);
        if let Some(time) = time.filter(|time| time.parse::<jiff::Timestamp>().is_err()) {
            errors.push(FieldError::invalid(format!("spec.{field}"), &time.into(), "must be a time"));
        }
    }
}
