//! What has to be seen sometimes: a model in which nothing of this ever happens proves nothing.

/// Something worth being seen, counted over all transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sometimes {
    BothInAPass,
    BaselineRecorded,
    DebtRecordedFirst,
    TargetReplaced,
    TargetRepaired,
    CameBackUnderItsVersion,
    CameBackUnderANewVersion,
    TargetWriteRefused,
    StatusWriteRefused,
    StampRefused,
    Stamped,
    DoneByItsMark,
    DoneByItsRecord,
    SecondLookStopped,
    LookAtTheStatusStopped,
    AbsentWaitedFor,
    LatecomerRestarted,
    OtherResourceRestarted,
    CutBetweenStampAndRecord,
    DoneWithoutAnAnswer,
    ReadFromBefore,
    RestInDebt,
    RestInPeace,
}

use Sometimes as S;

/// All of them.
pub(crate) const ALL: [Sometimes; 23] = [
    S::BothInAPass,
    S::BaselineRecorded,
    S::DebtRecordedFirst,
    S::TargetReplaced,
    S::TargetRepaired,
    S::CameBackUnderItsVersion,
    S::CameBackUnderANewVersion,
    S::TargetWriteRefused,
    S::StatusWriteRefused,
    S::StampRefused,
    S::Stamped,
    S::DoneByItsMark,
    S::DoneByItsRecord,
    S::SecondLookStopped,
    S::LookAtTheStatusStopped,
    S::AbsentWaitedFor,
    S::LatecomerRestarted,
    S::OtherResourceRestarted,
    S::CutBetweenStampAndRecord,
    S::DoneWithoutAnAnswer,
    S::ReadFromBefore,
    S::RestInDebt,
    S::RestInPeace,
];

/// How often each was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sightings([u64; ALL.len()]);

impl Sightings {
    pub(crate) fn saw(&mut self, what: Sometimes) {
        self.0[what as usize] += 1;
    }

    pub(crate) fn add(&mut self, others: &Self) {
        for (mine, other) in self.0.iter_mut().zip(others.0) {
            *mine += other;
        }
    }

    pub(crate) fn never(&self) -> Vec<Sometimes> {
        ALL.into_iter().filter(|what| self.0[*what as usize] == 0).collect()
    }
}

impl std::fmt::Display for Sightings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        ALL.into_iter().try_for_each(|what| writeln!(f, "  {:<28} {:>12}x", format!("{what:?}"), self.0[what as usize]))
    }
}
