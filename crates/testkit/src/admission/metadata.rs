//! `metadata`, the same for every kind: known fields, names, labels, annotations, owners, finalizers.

use serde_json::Value;

use crate::kind::Kind;
use crate::object;
use crate::refusal::FieldError;

/// Every field of `ObjectMeta`; others are forgotten.
const KNOWN: [&str; 14] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

/// 256 KiB, keys and values together.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;
/// Of the part of a qualified name behind the slash.
const NAME_PART_LIMIT: usize = 63;
/// Of a DNS subdomain: object names and prefixes of qualified names.
const SUBDOMAIN_LIMIT: usize = 253;

const NAME_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
     end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Forgets unknown fields and what is empty.
pub(super) fn decode(object: &mut Value) -> Result<Vec<String>, String> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let Some(fields) = metadata.as_object_mut() else {
        return Err("json: cannot unmarshal into Go struct field .metadata of type v1.ObjectMeta".to_owned());
    };
    let unknown: Vec<String> = fields.keys().filter(|key| !KNOWN.contains(&key.as_str())).cloned().collect();
    for key in &unknown {
        fields.remove(key);
    }
    for field in ["annotations", "labels"] {
        let map = fields.get(field).and_then(Value::as_object);
        if let Some(other) = map.and_then(|map| map.values().find(|value| !value.is_string() && !value.is_null())) {
            let found = object::go_word(other);
            let place = format!("ObjectMeta.metadata.{field}");
            return Err(format!("json: cannot unmarshal {found} into Go struct field {place} of type string"));
        }
    }
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
    Ok(unknown.into_iter().map(|key| format!("metadata.{key}")).collect())
}

pub(super) fn validate(kind: &Kind, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object::name(object);
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else if !is_subdomain(name) {
        errors.push(FieldError::invalid("metadata.name", &name.into(), NAME_RULE));
    } else if kind.id == "namespaces" && (name.contains('.') || name.len() > NAME_PART_LIMIT) {
        errors.push(FieldError::invalid("metadata.name", &name.into(), "a lowercase RFC 1123 label"));
    }
    validate_annotations(object, "/metadata/annotations", "metadata.annotations", &mut errors);
    validate_labels(object, &mut errors);
    validate_owners(object, &mut errors);
    for finalizer in object::finalizers(object) {
        if !finalizer.contains('/') && !matches!(finalizer.as_str(), "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid("metadata.finalizers[0]", &finalizer.into(), detail));
        }
    }
    if let Some(live) = live {
        validate_change(live, object, &mut errors);
    }
    errors
}

fn validate_change(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    if object::uid(live) != object::uid(object) {
        let uid = object::uid(object).into();
        errors.push(FieldError::invalid("metadata.uid", &uid, "field is immutable"));
    }
    if object::is_terminating(live) {
        let held = object::finalizers(live);
        let new: Vec<String> = object::finalizers(object).into_iter().filter(|one| !held.contains(one)).collect();
        if !new.is_empty() {
            let list = new.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{list}}}"
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &detail));
        }
    }
}

/// Annotations at `pointer`, named `path` in messages. Also used for pod templates.
pub(super) fn validate_annotations(object: &Value, pointer: &str, path: &str, errors: &mut Vec<FieldError>) {
    let mut total = 0;
    for (key, value) in object::map(object, pointer).into_iter().flatten() {
        total += key.len() + value.as_str().unwrap_or_default().len();
        if let Some(wrong) = wrong_qualified_name(&key.to_lowercase()) {
            errors.push(FieldError::invalid(path, &key.as_str().into(), wrong));
        }
    }
    if total > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(path, ANNOTATIONS_LIMIT));
    }
}

fn validate_labels(object: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in object::map(object, "/metadata/labels").into_iter().flatten() {
        if let Some(wrong) = wrong_qualified_name(key) {
            errors.push(FieldError::invalid("metadata.labels", &key.as_str().into(), wrong));
        }
        let text = value.as_str().unwrap_or_default();
        if !text.is_empty() && !is_name_part(text) {
            errors.push(FieldError::invalid("metadata.labels", value, LABEL_RULE));
        }
    }
}

fn validate_owners(object: &Value, errors: &mut Vec<FieldError>) {
    let owners = object::list(object, "/metadata/ownerReferences");
    for owner in owners {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if object::text(owner, &format!("/{field}")).is_empty() {
                let path = format!("metadata.ownerReferences.{field}");
                errors.push(FieldError::invalid(path, &"".into(), "must not be empty"));
            }
        }
    }
    let controllers: Vec<&Value> =
        owners.iter().filter(|owner| owner.get("controller") == Some(&Value::Bool(true))).collect();
    if let [first, second, ..] = controllers.as_slice() {
        let called = |owner: &Value| format!("{}/{}", object::text(owner, "/kind"), object::text(owner, "/name"));
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            called(first),
            called(second)
        );
        errors.push(FieldError::invalid("metadata.ownerReferences", &owners.into(), &detail));
    }
}

pub(super) fn is_subdomain(name: &str) -> bool {
    name.len() <= SUBDOMAIN_LIMIT
        && name.split('.').all(|label| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !label.is_empty() && label.chars().all(inner) && !label.starts_with('-') && !label.ends_with('-')
        })
}

fn is_name_part(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= NAME_PART_LIMIT
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// What is wrong with `prefix/name`, if anything.
fn wrong_qualified_name(key: &str) -> Option<&'static str> {
    let name = match key.split_once('/') {
        Some((prefix, _)) if !is_subdomain(prefix) => {
            return Some("prefix part must be a lowercase RFC 1123 subdomain");
        }
        Some((_, name)) => name,
        None => key,
    };
    if name.len() > NAME_PART_LIMIT {
        return Some("name part must be no more than 63 bytes");
    }
    (!is_name_part(name)).then_some(QUALIFIED_RULE)
}
