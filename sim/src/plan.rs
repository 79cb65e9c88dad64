//! What goes wrong in a run, as data: faults by place, and the text that people type to see one again.
//!
//! A place is counted from the beginning of a scenario's script: the twelfth call to the API server is `#12`, the third
//! to FerrVault `F3`, the fifth event on its way to a watch `e5`. Nothing here is random and nothing is carried out.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Where something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A call of an operator to the API server.
    Call(usize),
    /// A call of an operator to FerrVault.
    Vault(usize),
    /// An event on its way to a watch of an operator.
    Event(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(number) => write!(f, "#{number}"),
            Self::Vault(number) => write!(f, "F{number}"),
            Self::Event(number) => write!(f, "e{number}"),
        }
    }
}

impl FromStr for Place {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let unknown = || PlanError(text.to_owned());
        let mut characters = text.chars();
        let kind = characters.next().ok_or_else(unknown)?;
        let number = characters.as_str().parse().map_err(|_| unknown())?;
        match kind {
            '#' => Ok(Self::Call(number)),
            'F' => Ok(Self::Vault(number)),
            'e' => Ok(Self::Event(number)),
            _ => Err(unknown()),
        }
    }
}

/// What goes wrong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// Answered with this status and never carried out.
    Refuse(u16),
    /// Lost on the way: never carried out, never answered.
    LostRequest,
    /// Carried out, never answered.
    LostAnswer,
    /// The connection breaks before the request arrives.
    ResetBefore,
    /// The connection breaks after the request was carried out.
    ResetAfter,
    /// Carried out; the answer breaks off in the middle.
    ResetMidBody,
    /// The process ends before the request leaves.
    CutBefore,
    /// The process ends once the request was carried out.
    CutAfter,
    /// Answered from before the last change of what is read.
    Stale,
    /// Arrives after so many seconds, whether or not anybody still waits.
    Late(u32),
    /// Carried out at once; the answer takes so many seconds.
    Slow(u32),
    /// FerrVault: not even the client's own deadline ends the call; the deadline of the pass has to.
    Hang,
    /// FerrVault: 200 with a body that is no JSON.
    Nonsense,
    /// FerrVault: 200 with no key at all.
    Empty,
    /// FerrVault: an answer beyond the limit.
    TooLarge,
    /// An event arrives twice.
    Twice,
    /// An event never arrives, and the stream goes on.
    Dropped,
    /// Nothing comes on this watch any more, and nobody says so.
    Silent,
    /// The watch ends.
    Closed,
    /// The watch says that its place in the history is gone.
    Expired,
}

/// Codes that a call is refused with.
pub const CODES: [u16; 12] = [400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 503, 504];

/// Later than every deadline of a call (10 s), and than the retry that follows.
const LATE: u32 = 25;
/// Within the deadline of a call, and long enough for another process to do a whole pass.
const SLOW: u32 = 5;

impl Trouble {
    /// Everything that can happen to a call that may change something.
    pub fn of_writes() -> Vec<Self> {
        let mut all = Self::of_reads();
        all.retain(|trouble| *trouble != Self::Stale);
        all.extend([Self::LostAnswer, Self::ResetAfter, Self::CutAfter, Self::Late(SLOW), Self::Late(LATE)]);
        all
    }

    /// Everything that can happen to a call that changes nothing: whether it was carried out makes no difference.
    pub fn of_reads() -> Vec<Self> {
        let mut all: Vec<Self> = CODES.into_iter().map(Self::Refuse).collect();
        all.extend([
            Self::LostRequest,
            Self::ResetBefore,
            Self::ResetMidBody,
            Self::CutBefore,
            Self::Stale,
            Self::Slow(SLOW),
        ]);
        all
    }

    /// Everything that can happen to a call to FerrVault.
    pub fn of_vault() -> Vec<Self> {
        let codes = [401, 403, 404, 429, 500].into_iter().map(Self::Refuse);
        let mut all: Vec<Self> = codes.collect();
        all.extend([
            Self::LostRequest,
            Self::ResetBefore,
            Self::CutBefore,
            Self::Late(SLOW),
            Self::Slow(SLOW),
            Self::Hang,
            Self::Nonsense,
            Self::Empty,
            Self::TooLarge,
        ]);
        all
    }

    /// Everything that can happen to an event.
    pub fn of_events() -> Vec<Self> {
        vec![Self::Late(SLOW), Self::Twice, Self::Dropped, Self::Silent, Self::Closed, Self::Expired]
    }

    /// Whether the process does not survive it.
    pub const fn ends_process(self) -> bool {
        matches!(self, Self::CutBefore | Self::CutAfter)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse(code) => write!(f, "{code}"),
            Self::Late(seconds) => write!(f, "Late{seconds}"),
            Self::Slow(seconds) => write!(f, "Slow{seconds}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl FromStr for Trouble {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        const NAMED: [Trouble; 17] = [
            Trouble::LostRequest,
            Trouble::LostAnswer,
            Trouble::ResetBefore,
            Trouble::ResetAfter,
            Trouble::ResetMidBody,
            Trouble::CutBefore,
            Trouble::CutAfter,
            Trouble::Stale,
            Trouble::Hang,
            Trouble::Nonsense,
            Trouble::Empty,
            Trouble::TooLarge,
            Trouble::Twice,
            Trouble::Dropped,
            Trouble::Silent,
            Trouble::Closed,
            Trouble::Expired,
        ];
        let seconds = |name| text.strip_prefix(name).and_then(|rest| rest.parse().ok());
        NAMED
            .into_iter()
            .find(|named| named.to_string() == text)
            .or_else(|| text.parse().ok().map(Self::Refuse))
            .or_else(|| seconds("Late").map(Self::Late))
            .or_else(|| seconds("Slow").map(Self::Slow))
            .ok_or_else(|| PlanError(text.to_owned()))
    }
}

/// A text that is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fault; faults look like #12=CutAfter, F3=500 or e5=Dropped, with commas between them")]
pub struct PlanError(String);

/// Faults by place.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plan(BTreeMap<Place, Trouble>);

impl Plan {
    /// Nothing goes wrong.
    pub fn clean() -> Self {
        Self::default()
    }

    /// The same, and this goes wrong as well.
    #[must_use]
    pub fn with(mut self, place: Place, trouble: Trouble) -> Self {
        self.0.insert(place, trouble);
        self
    }

    /// What goes wrong at `place`.
    pub fn at(&self, place: Place) -> Option<Trouble> {
        self.0.get(&place).copied()
    }

    /// Everything that goes wrong.
    pub fn iter(&self) -> impl Iterator<Item = (Place, Trouble)> {
        self.0.iter().map(|(place, trouble)| (*place, *trouble))
    }

    /// How much goes wrong.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing goes wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (place, trouble)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{place}={trouble}")?;
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut plan = Self::clean();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (place, trouble) = part.split_once('=').ok_or_else(|| PlanError(part.to_owned()))?;
            plan = plan.with(place.trim().parse()?, trouble.trim().parse()?);
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_can_be_typed_as_it_is_printed() {
        let all = [Trouble::of_writes(), Trouble::of_reads(), Trouble::of_vault(), Trouble::of_events()].concat();
        for (index, trouble) in all.into_iter().enumerate() {
            for place in [Place::Call(index), Place::Vault(index), Place::Event(index)] {
                let plan = Plan::clean().with(place, trouble).with(Place::Call(1000), Trouble::CutAfter);
                assert_eq!(plan.to_string().parse(), Ok(plan));
            }
        }
    }

    #[test]
    fn what_is_no_fault_is_refused_by_name() {
        for text in ["12=CutAfter", "#12", "#12=Nothing", "#x=500", "e5=Late", "#=500"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
        assert_eq!("".parse(), Ok(Plan::clean()));
    }
}
