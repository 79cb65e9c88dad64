//! Deployments, `StatefulSets` and `DaemonSets`: selector and template belong together, and the template's annotations
//! follow the rules of all annotations.

use serde_json::{Value, json};

use super::metadata;
use crate::kind::Kind;
use crate::object;
use crate::refusal::FieldError;

/// Which template of a `DaemonSet` this is, counted from 1.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn prepare_create(kind: &Kind, object: &mut Value) {
    let status = match kind.kind.as_str() {
        "StatefulSet" => json!({ "availableReplicas": 0, "replicas": 0 }),
        "DaemonSet" => json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        }),
        _ => json!({}),
    };
    object::fields_mut(object).insert("status".to_owned(), status);
    if kind.kind == "DaemonSet" {
        annotate(object, 1);
    } else {
        object::map_mut(object, "spec").entry("replicas").or_insert(1.into());
    }
}

pub(super) fn count_templates(live: &Value, object: &mut Value) {
    let annotations = object::map(live, "/metadata/annotations");
    let before = annotations.and_then(|annotations| annotations.get(TEMPLATE_GENERATION)?.as_str()?.parse().ok());
    let is_changed = live.pointer("/spec/template") != object.pointer("/spec/template");
    annotate(object, before.unwrap_or(0_i64) + i64::from(is_changed));
}

fn annotate(object: &mut Value, generation: i64) {
    let annotations = object::map_mut(object, "metadata").entry("annotations").or_insert(Value::Null);
    object::fields_mut(annotations).insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
}

pub(super) fn validate(live: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    metadata::validate_annotations(object, "/spec/template/metadata/annotations", "spec.template.annotations", errors);
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
