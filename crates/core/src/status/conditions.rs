//! One condition among others: how it is spelled and how it takes the place of an older one. Touches no condition of
//! another type, which may be another writer's.

use ferrvault_api::Reason;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A condition as Kubernetes spells it.
pub fn condition_of(
    type_: &str,
    is_true: bool,
    reason: Reason,
    message: String,
    generation: i64,
    now: Timestamp,
) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: reason.as_str().to_owned(),
        message,
        observed_generation: Some(generation),
        last_transition_time: Time(now),
    }
}

/// Puts `new` in the place of the condition of its type, keeping the transition time while the status is the same.
/// Conditions of other types are other writers' and stay. Returns whether status or reason are another than before.
pub fn merge(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time.clone();
    }
    let changed = old.status != new.status || old.reason != new.reason;
    *old = new;
    changed
}
