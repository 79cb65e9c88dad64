//! Whether somebody still looks after a resource: the decisions behind the condition `Fresh`.
//!
//! `Ready` tells what the last pass found, and goes on telling it when there are no passes any more. This condition tells
//! whether there are any. Ages come in and no points in time: whoever asks measures them with a clock that does not jump.

use std::time::Duration;

use ferrvault_api::{FerrVaultSecret, FerrVaultSecretStatus, Reason, condition};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::duration::GoDuration;
use crate::status::{Transition, condition_of, merge};

/// What any pass may be late by. The longest that a pass takes by default is 2 min, and a pass that was cut is tried
/// again after seconds: five minutes hold two in a row that fail.
pub const GRACE: Duration = Duration::from_mins(5);

/// How long a resource with this interval may be without the end of a pass: one that comes at the very end of its
/// interval after one that came at the very beginning of its own are two apart.
pub fn limit(interval: Duration) -> Duration {
    interval.saturating_mul(2).saturating_add(GRACE)
}

/// What is known of the passes over a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ages {
    /// Since the end of the last completed pass; where there was none, since the resource was created.
    pub attempted: Duration,
    /// Since a pass was asked for that has not ended: by an edit, a new token, an annotation, a retry that fell due.
    pub awaited: Option<Duration>,
}

/// What `Fresh` has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Passes end as often as they should.
    Current,
    /// Nothing is expected.
    Suspended,
    /// No pass has ended for too long.
    Stale,
    /// A pass that was asked for has not ended.
    Overdue,
}

impl Freshness {
    /// The reason of the condition.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Current => Reason::Current,
            Self::Suspended => Reason::Suspended,
            Self::Stale => Reason::Stale,
            Self::Overdue => Reason::Overdue,
        }
    }

    /// The status of the condition.
    pub const fn is_true(self) -> bool {
        matches!(self, Self::Current | Self::Suspended)
    }
}

/// Judges a resource that is looked at every `interval`; zero means that no look is scheduled.
///
/// A pass that somebody waits for goes before one that is merely late: it says more, and does not depend on the interval.
pub fn judge(suspended: bool, interval: Duration, ages: Ages) -> Freshness {
    if suspended {
        Freshness::Suspended
    } else if ages.awaited.is_some_and(|age| age > GRACE) {
        Freshness::Overdue
    } else if !interval.is_zero() && ages.attempted > limit(interval) {
        Freshness::Stale
    } else {
        Freshness::Current
    }
}

/// The status that says so, and what people are to be told; `None` where it is said already.
///
/// The message names when it began, so it is composed once and not again each time that somebody looks.
pub fn render(
    resource: &FerrVaultSecret,
    freshness: Freshness,
    interval: Duration,
    ages: Ages,
    now: Timestamp,
) -> Option<(FerrVaultSecretStatus, Option<Transition>)> {
    let before = said(resource.status.as_ref());
    if before.is_some_and(|before| before.reason == freshness.reason().as_str()) {
        return None;
    }
    let message = match freshness {
        Freshness::Stale => format!(
            "no pass has ended since {}; with this refresh interval the limit is {}",
            ago(now, ages.attempted),
            GoDuration::from(limit(interval))
        ),
        Freshness::Overdue => format!(
            "a pass was asked for at {} and has not ended; the limit is {}",
            ago(now, ages.awaited.unwrap_or_default()),
            GoDuration::from(GRACE)
        ),
        Freshness::Current | Freshness::Suspended => settled(freshness).to_owned(),
    };
    // That all is well is news only after it was not.
    let was_false = before.is_some_and(|before| before.status == "False");
    let is_news = !freshness.is_true() || was_false;
    let new = of(resource, freshness, message, now);
    let told = Transition {
        type_: condition::FRESH,
        is_true: freshness.is_true(),
        reason: freshness.reason(),
        message: new.message.clone(),
    };
    let mut status = resource.status.clone().unwrap_or_default();
    merge(&mut status.conditions, new);
    Some((status, is_news.then_some(told)))
}

/// What the condition says of a resource whose pass has just ended: [`Freshness::Current`] or [`Freshness::Suspended`].
/// No time is in it, so that a pass which changed nothing leaves it as it is.
pub(crate) fn ended(resource: &FerrVaultSecret, freshness: Freshness, now: Timestamp) -> Condition {
    of(resource, freshness, settled(freshness).to_owned(), now)
}

/// The condition as it stands.
pub fn said(status: Option<&FerrVaultSecretStatus>) -> Option<&Condition> {
    status?.conditions.iter().find(|found| found.type_ == condition::FRESH)
}

fn of(resource: &FerrVaultSecret, freshness: Freshness, message: String, now: Timestamp) -> Condition {
    let generation = resource.metadata.generation.unwrap_or_default();
    condition_of(condition::FRESH, freshness.is_true(), freshness.reason(), message, generation, now)
}

const fn settled(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Suspended => "spec.suspend is true, so no pass is expected",
        _ => "passes end as often as they should",
    }
}

/// The moment that was `age` ago, in whole seconds.
fn ago(now: Timestamp, age: Duration) -> Timestamp {
    let then = SignedDuration::try_from(age).ok().and_then(|age| now.checked_sub(age).ok()).unwrap_or(Timestamp::MIN);
    Timestamp::from_second(then.as_second()).unwrap_or(then)
}

#[cfg(test)]
mod tests;
