//! A change of condition, told as an event: once per change, never once per pass.

use ferrvault_core::status::Transition;
use kube::Resource;

use crate::cluster::events::{EventPublisher, Happening, Severity};

/// Tells that a condition of `object` changed while the operator was doing `action`.
pub fn condition_changed<K: Resource<DynamicType = ()>>(
    events: &EventPublisher,
    object: &K,
    transition: &Transition,
    action: &'static str,
) {
    events.publish(Happening {
        regarding: object.object_ref(&()),
        severity: if transition.is_true { Severity::Normal } else { Severity::Warning },
        reason: transition.reason.to_string(),
        action,
        note: transition.message.clone(),
    });
}
