//! A change of condition, told as an event: once per change, never once per pass.

use ferrvault_api::Reason;
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
        severity: if is_good(transition) { Severity::Normal } else { Severity::Warning },
        reason: transition.reason.to_string(),
        action,
        note: transition.message.clone(),
    });
}

/// Whether a change of condition is as somebody wants it: True, or what was asked for.
pub fn is_good(transition: &Transition) -> bool {
    transition.is_true || transition.reason == Reason::Suspended
}

/// Tells of trouble with `object` that no condition can show.
pub fn trouble<K: Resource<DynamicType = ()>>(
    events: &EventPublisher,
    object: &K,
    reason: Reason,
    note: String,
    action: &'static str,
) {
    events.publish(Happening {
        regarding: object.object_ref(&()),
        severity: Severity::Warning,
        reason: reason.to_string(),
        action,
        note,
    });
}
