//! The two doors of an object: everything but status, and status. What is written through one leaves the other's half
//! alone, both ways.

use serde_json::Value;

use crate::kind::Kind;
use crate::object;

/// The door through which an object is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Everything but status, where status is a subresource.
    Main,
    /// Status alone.
    Status,
}

impl Door {
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
        }
    }
}

/// Puts back what cannot be written through `door`.
pub(super) fn keep_other_half(kind: &Kind, door: Door, live: &Value, object: &mut Value) {
    if !kind.status {
        return;
    }
    match door {
        Door::Main => object::copy_field(object, live, "status"),
        Door::Status => {
            let mut kept = live.clone();
            object::copy_field(&mut kept, object, "status");
            object::copy_metadata(&mut kept, object, "managedFields");
            *object = kept;
        }
    }
}

/// Leaves of an applied object only what can be claimed through `door`.
pub(super) fn claim_half(kind: &Kind, door: Door, wanted: &mut Value) {
    if !kind.status {
        return;
    }
    let fields = object::fields_mut(wanted);
    match door {
        Door::Main => {
            fields.remove("status");
        }
        Door::Status => {
            fields.retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        }
    }
    if door == Door::Status {
        object::map_mut(wanted, "metadata")
            .retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
    }
}
