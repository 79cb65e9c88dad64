//! What can go wrong, as data: faults of a call, of a watch event, of a watch stream.
//!
//! A plan puts faults on calls by number; a hook may decide by anything it sees. Nothing here is random.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::call::Call;

/// What happens to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing unusual.
    #[default]
    None,
    /// Answered with this code and never carried out.
    Refuse(u16),
    /// As `Refuse`, telling the client to come back after so many seconds.
    RefuseFor(u16, u32),
    /// Answered with this code and this body, as some proxy in between would; never carried out.
    Nonsense(u16, String),
    /// Lost on the way: never carried out, never answered.
    LostRequest,
    /// Carried out; the answer is lost and the client waits for ever.
    LostAnswer,
    /// The connection breaks before the request arrives: an error, never carried out.
    ResetBefore,
    /// The connection breaks after the request was carried out, before the answer: an error.
    ResetAfter,
    /// Carried out; the answer breaks off in the middle of its body.
    ResetMidBody,
    /// The client's process ends before the request leaves: nothing is carried out and none of its calls returns.
    CutBefore,
    /// The client's process ends once the request was carried out: none of its calls returns any more.
    CutAfter,
    /// A read is answered from so many revisions ago.
    Stale(u64),
    /// A read is answered as of this resourceVersion.
    StaleAt(u64),
    /// The request arrives late, and is carried out even if its client has given up by then.
    Late(Duration),
    /// Carried out at once; the answer takes this long.
    Slow(Duration),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Refuse(code) => write!(f, "refused with {code}"),
            Self::RefuseFor(code, seconds) => write!(f, "refused with {code} for {seconds} s"),
            Self::Nonsense(code, _) => write!(f, "answered {code} with nonsense"),
            Self::LostRequest => write!(f, "request lost"),
            Self::LostAnswer => write!(f, "carried out, answer lost"),
            Self::ResetBefore => write!(f, "connection reset before the request"),
            Self::ResetAfter => write!(f, "carried out, connection reset before the answer"),
            Self::ResetMidBody => write!(f, "carried out, connection reset within the answer"),
            Self::CutBefore => write!(f, "process ended before the request"),
            Self::CutAfter => write!(f, "carried out, process ended before the answer"),
            Self::Stale(back) => write!(f, "answered from {back} revisions ago"),
            Self::StaleAt(revision) => write!(f, "answered as of revision {revision}"),
            Self::Late(by) => write!(f, "request late by {by:?}"),
            Self::Slow(by) => write!(f, "answer late by {by:?}"),
        }
    }
}

impl Fault {
    /// Every code worth refusing with: each stands for another way in which a server says no.
    pub const CODES: [u16; 12] = [400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 503, 504];

    /// One of each fault that makes sense on any call, for exhaustive runs.
    pub fn every() -> Vec<Self> {
        let mut all: Vec<Self> = Self::CODES.into_iter().map(Self::Refuse).collect();
        all.extend([
            Self::LostRequest,
            Self::LostAnswer,
            Self::ResetBefore,
            Self::ResetAfter,
            Self::ResetMidBody,
            Self::CutBefore,
            Self::CutAfter,
            Self::Stale(1),
        ]);
        all
    }
}

/// Faults by number of call.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    faults: BTreeMap<usize, Fault>,
}

impl Plan {
    /// No fault at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `fault` on call number `number`.
    #[must_use]
    pub fn at(mut self, number: usize, fault: Fault) -> Self {
        self.faults.insert(number, fault);
        self
    }

    /// The fault for `call`.
    pub fn fault_for(&self, call: &Call) -> Fault {
        self.faults.get(&call.number).cloned().unwrap_or_default()
    }
}

/// What happens to one event on its way to one watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventFault {
    /// It arrives.
    #[default]
    None,
    /// It arrives this much later, and everything behind it with it.
    Late(Duration),
    /// It arrives twice.
    Twice,
    /// It never arrives; the stream goes on.
    Dropped,
}

/// What happens to open watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Nothing comes any more, and nobody says so.
    Silent,
    /// The stream ends as it does at its timeout.
    Close,
    /// The connection breaks.
    Reset,
    /// An `ERROR` event with code 410, then the end.
    Expire,
}
