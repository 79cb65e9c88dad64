//! Deployments, `StatefulSets` and `DaemonSets`: selector and template belong together, and the template's annotations
//! follow the rules of all annotations.

use serde_json::Value;

use super::metadata;
use crate::object;
use crate::refusal::FieldError;

pub(super) fn validate(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    metadata::validate_annotations(object, "spec.template.metadata", errors);
    let wanted = object::map(object, "/spec/selector/matchLabels");
    let labels = object::map(object, "/spec/template/metadata/labels");
    match wanted {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(wanted) => {
            if wanted.iter().any(|(key, value)| labels.and_then(|labels| labels.get(key)) != Some(value)) {
                let shown = labels.cloned().map_or(Value::Null, Value::Object);
                let detail = "`selector` does not match template `labels`";
                errors.push(FieldError::invalid("spec.template.metadata.labels", &shown, detail));
            }
        }
    }
    if object::list(object, "/spec/template/spec/containers").is_empty() {
        errors.push(FieldError::required("spec.template.spec.containers", ""));
    }
    if let Some(live) = live
        && live.pointer("/spec/selector") != object.pointer("/spec/selector")
    {
        let shown = object.pointer("/spec/selector").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("spec.selector", &shown, "field is immutable"));
    }
}
