//! What is wrong with one field, in the words of the real server.

use serde_json::Value;

/// One wrong field, as `details.causes` lists it.
#[derive(Clone, Debug)]
pub(crate) struct FieldError {
    pub(super) reason: &'static str,
    pub(super) field: String,
    pub(super) message: String,
}

impl FieldError {
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self::new("FieldValueRequired", field, message)
    }

    /// `value` is shown as the server shows it: quoted when it is text.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {detail}"))
    }

    pub(crate) fn type_invalid(field: impl Into<String>, found: &str, wanted: &str) -> Self {
        let field = field.into();
        let message = format!("Invalid value: \"{found}\": {field} in body must be of type {wanted}: \"{found}\"");
        Self::new("FieldValueTypeInvalid", field, message)
    }

    /// Names the field by its last part, as the validator of formats does.
    pub(crate) fn not_a_time(field: &str, value: &Value) -> Self {
        let last = field.rsplit('.').next().unwrap_or_default();
        let message = format!("Invalid value: {value}: {last} in body must be of type date-time: {value}");
        Self::new("FieldValueTypeInvalid", field, message)
    }

    /// Said when errors of the schema kept CEL rules from being checked.
    pub(crate) fn rules_unchecked() -> Self {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                      errors to complete validation";
        Self::invalid("<nil>", &Value::Null, detail)
    }

    /// Whether it keeps CEL rules from being checked.
    pub(crate) fn hides_rules(&self) -> bool {
        matches!(
            self.reason,
            "FieldValueRequired" | "FieldValueTypeInvalid" | "FieldValueNotSupported" | "FieldValueTooLong"
        )
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[Value]) -> Self {
        let list = supported.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        let message = format!("Unsupported value: {value}: supported values: {list}");
        Self::new("FieldValueNotSupported", field, message)
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {detail}"))
    }

    pub(crate) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let message = format!("Too long: may not be more than {limit} bytes");
        Self::new("FieldValueTooLong", field, message)
    }

    fn new(reason: &'static str, field: impl Into<String>, message: String) -> Self {
        let field = field.into();
        Self { reason, field, message }
    }
}
