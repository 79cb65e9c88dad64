//! What becomes of the target while there is no content for it, and whether that makes an older success untrue.
//!
//! A transient failure leaves `Ready` as it was, because the Secret still holds what the last success put there. Where the
//! pass has seen that it does not, `Ready` may not go on saying so (I5).

use std::fmt;

use ferrvault_api::FerrVaultSecret;

use crate::refusal::Refusal;
use crate::sync::{ObservedTarget, Records};
use crate::version::{OperatorKey, Verdict as Match};

/// What the target is, where nothing can be written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<'r> {
    /// It was not made for the resource as it is now.
    NotMade(&'r str),
    /// It was there after the last success and is gone.
    Gone(&'r str),
    /// It holds other data than its version says: somebody edited it.
    Edited(&'r str),
    /// It holds what it held.
    Kept(&'r str),
}

impl<'r> Fate<'r> {
    /// The fate of the target of `resource` as it was read. Where its version cannot be told from its data (the operator's
    /// key was lost), it counts as kept.
    pub fn of(resource: &'r FerrVaultSecret, target: Option<&ObservedTarget>, key: &OperatorKey) -> Self {
        let (name, status) = (resource.target_name(), resource.status.as_ref());
        let records = Records::of(status);
        let Some(target) = target else {
            // An edit may have given it another name, under which it never was.
            let covered = status.and_then(|status| status.observed_generation) == resource.metadata.generation;
            let was_made = records.content.is_some() || status.is_some_and(|status| status.last_synced_at.is_some());
            return if covered && was_made { Self::Gone(name) } else { Self::NotMade(name) };
        };
        // Without its annotation, what the last success recorded is what its data should be.
        match target.version.as_ref().or(records.content.as_ref()).map(|version| version.verify(key, &target.content)) {
            Some(Match::Differs) => Self::Edited(name),
            Some(Match::Matches | Match::KeyGone) | None => Self::Kept(name),
        }
    }

    /// Whether an older success no longer holds.
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Gone(_) | Self::Edited(_))
    }

    /// Says in `refusal`, whose message does not speak of the target, what becomes of it where that is not as expected.
    #[must_use]
    pub fn told_in(self, mut refusal: Refusal) -> Refusal {
        if !matches!(self, Self::Kept(_)) {
            refusal.message = format!("{}; {self}", refusal.message);
        }
        refusal.target_is_lost = self.is_lost();
        refusal
    }
}

impl fmt::Display for Fate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMade(name) => write!(f, "Secret {name:?} is not made"),
            Self::Gone(name) => {
                write!(f, "Secret {name:?} was deleted meanwhile and is made again afterwards")
            }
            Self::Edited(name) => {
                write!(f, "Secret {name:?} was edited meanwhile and is put right afterwards")
            }
            Self::Kept(name) => write!(f, "Secret {name:?} keeps its last content"),
        }
    }
}

#[cfg(test)]
mod tests;
