//! When a write raises `metadata.generation`.

use serde_json::Value;

use crate::kind::{Generation, Kind};
use crate::object;

/// Whether `object` asks for something else than `live` did.
pub(super) fn raises_generation(kind: &Kind, live: &Value, object: &Value) -> bool {
    match kind.generation {
        Generation::Absent => false,
        Generation::Spec => live.get("spec") != object.get("spec"),
        Generation::SpecAndAnnotations => {
            let annotations = |object: &Value| object.pointer("/metadata/annotations").cloned();
            live.get("spec") != object.get("spec") || annotations(live) != annotations(object)
        }
        Generation::AllButMetadata => {
            let mut before = live.clone();
            copy_ungenerated(kind, &mut before, object);
            before != *object
        }
    }
}

/// Makes the parts equal whose change does not count.
fn copy_ungenerated(kind: &Kind, before: &mut Value, object: &Value) {
    object::copy_field(before, object, "metadata");
    if kind.status {
        object::copy_field(before, object, "status");
    }
}
