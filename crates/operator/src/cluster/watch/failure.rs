//! How a round of listing and following can end, and what each way says about the watch, its place in the history, and
//! whether the API server is there.

use super::kinds::Watched;
use crate::cluster::answers::is_answer;
use crate::cluster::error::CallError;

/// How one round of listing and following came to its end.
pub(super) enum Ended {
    /// The server ended the watch as it was asked to.
    InGoodTime,
    /// Something is wrong.
    Failed(Failure),
}

pub(super) struct Failure {
    /// What, naming verb and resource.
    pub(super) error: String,
    /// Whether the place in the history still counts.
    pub(super) place: Place,
    /// Whether the watch had stood before.
    pub(super) stood: bool,
    /// Whether the server itself said so.
    pub(super) answered: bool,
    pub(super) kind: Kind,
}

/// What a failure says about the watch itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It stood and said nothing until it was given up.
    Silence,
    /// It came to an end, or was ended, before it had said anything. Somebody was there to end it.
    Wordless,
    /// The place to follow from is no longer in the history: what becomes of one that was silent for too long.
    History,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Kept,
    Refused,
    Lost,
}

pub(super) fn place_after(error: &CallError) -> Place {
    match error {
        CallError::Gone => Place::Lost,
        CallError::Refused { .. } | CallError::Invalid { .. } | CallError::NotFound => Place::Refused,
        // Nothing was said about the place: a transport failure, a missing permission, a busy server.
        _ => Place::Kept,
    }
}

pub(super) fn failure<W: Watched>(verb: &str, error: &CallError, place: Place, stood: bool) -> Failure {
    let name = resource_name::<W>();
    let answered = is_answer(error);
    let kind = if matches!(error, CallError::Gone) { Kind::History } else { Kind::Other };
    let error = match error {
        CallError::NotFound | CallError::Refused { code: 404, .. } => {
            format!("{verb} {name}: the API server does not serve it; is the CRD installed?")
        }
        other => other.user_message_for(&format!("{verb} {name}")),
    };
    Failure { error, place, stood, answered, kind }
}

pub(super) fn broken<W: Watched>(what: &str) -> Ended {
    ended::<W>(what, Kind::Other)
}

pub(super) fn silent<W: Watched>() -> Ended {
    ended::<W>("neither an event nor a bookmark came in its time", Kind::Silence)
}

pub(super) fn wordless<W: Watched>() -> Ended {
    ended::<W>("ended before an event or a bookmark came", Kind::Wordless)
}

fn ended<W: Watched>(what: &str, kind: Kind) -> Ended {
    let error = format!("watch {}: {what}", resource_name::<W>());
    // Where it came to an end, that was an answer to its opening, which is noted.
    Ended::Failed(Failure { error, place: Place::Kept, stood: true, answered: false, kind })
}

/// `plural.group`, as people type it behind `kubectl get`.
pub(super) fn resource_name<W: Watched>() -> String {
    let (plural, group) = (W::plural(&()), W::group(&()));
    if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") }
}
