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

/// Whether a change of condition is as somebody wants it. Its reason tells: a condition that stays True through an outage
/// says so by its reason alone, and one that is False may be what was asked for. A reason that is not listed is not good,
/// so that a new one is rather told too loud than not heard.
pub fn is_good(transition: &Transition) -> bool {
    use Reason::{Current, Reachable, Restarted, Suspended, Synced};
    matches!(transition.reason, Synced | Restarted | Current | Reachable | Suspended)
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

#[cfg(test)]
mod tests {
    use ferrvault_api::condition;
    use ferrvault_core::refusal::Refusal;

    use super::*;

    #[test]
    fn only_what_is_as_it_should_be_is_good_whatever_the_condition_says() {
        for reason in Reason::ALL {
            let good = matches!(reason.as_str(), "Synced" | "Restarted" | "Current" | "Reachable" | "Suspended");
            for is_true in [true, false] {
                let told = Transition { type_: condition::READY, is_true, reason, message: String::new() };
                assert_eq!(is_good(&told), good, "{reason}, {is_true}");
            }
            assert!(!(good && Refusal::new(reason, "").is_transient()), "{reason}: a condition outlives it");
        }
    }
}
