//! What an object has to satisfy to be stored, kind by kind: decoding, defaults, immutable fields, validation.
//!
//! Three steps, in the order of the real server: `decode` normalises what came in (or calls it no object of the kind),
//! `prepare` takes what the client may not set, `validate` lists everything wrong with the result.

mod event;
mod lease;
mod metadata;
mod secret;
mod workload;

use serde_json::{Value, json};

use crate::kind::Kind;
use crate::object;
use crate::refusal::FieldError;

/// Normalises `object` in place. `Err` says why it cannot be read as the kind at all.
///
/// Returns the paths of fields that were forgotten because the kind does not know them.
pub(crate) fn decode(kind: &Kind, object: &mut Value) -> Result<Vec<String>, String> {
    let mut forgotten = metadata::decode(object)?;
    if let Some(schema) = &kind.schema {
        forgotten.extend(schema.prune(object));
        schema.fill_defaults(object);
    }
    if kind.id == "secrets" {
        secret::decode(object)?;
    }
    Ok(forgotten)
}

/// As `decode`, for what somebody applies: defaults are not claimed, and nothing is added that was not said.
pub(crate) fn decode_applied(kind: &Kind, object: &mut Value) -> Result<Vec<String>, String> {
    let mut forgotten = metadata::decode(object)?;
    if let Some(schema) = &kind.schema {
        forgotten.extend(schema.prune(object));
    }
    if kind.id == "secrets" {
        let typed = object.get("type").is_some();
        secret::decode(object)?;
        if !typed {
            object::fields_mut(object).remove("type");
        }
    }
    Ok(forgotten)
}

/// Fields that a new object of the kind starts with, whatever the client said.
pub(crate) fn prepare_create(kind: &Kind, object: &mut Value) {
    if kind.status {
        object::fields_mut(object).remove("status");
    }
    match kind.id.as_str() {
        "namespaces" => {
            object::map_mut(object, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
            object::map_mut(object, "status").insert("phase".to_owned(), "Active".into());
            let name = object::name(object).to_owned();
            let metadata = object::map_mut(object, "metadata");
            object::fields_mut(metadata.entry("labels").or_insert(Value::Null))
                .insert("kubernetes.io/metadata.name".to_owned(), name.into());
        }
        "deployments.apps" | "statefulsets.apps" | "daemonsets.apps" => workload::prepare_create(kind, object),
        _ => {}
    }
}

/// Fields that the server itself changes with an object.
pub(crate) fn prepare_update(kind: &Kind, live: &Value, object: &mut Value) {
    if kind.id == "daemonsets.apps" {
        workload::count_templates(live, object);
    }
}

/// Everything wrong with `object`, compared with what is stored.
pub(crate) fn validate(kind: &Kind, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = metadata::validate(kind, live, object);
    if let Some(schema) = &kind.schema {
        errors.extend(schema.validate(object));
    }
    match kind.id.as_str() {
        "secrets" => secret::validate(live, object, &mut errors),
        "leases.coordination.k8s.io" => lease::validate(object, &mut errors),
        "events.events.k8s.io" => event::validate(object, &mut errors),
        "deployments.apps" | "statefulsets.apps" | "daemonsets.apps" => workload::validate(live, object, &mut errors),
        _ => {}
    }
    errors
}
