//! Whether what was counted is what was due. Pure: counts and versions in, faults out.
//!
//! Between two rounds the field is at rest, so each round is one version of each target, and due is exactly one change of
//! each pod template per round, the last of them for the version that the target holds.

use std::collections::BTreeSet;
use std::fmt;

/// What there is of one workload, its resource and its target, when it should be at rest.
#[derive(Clone, Debug, Default)]
pub struct Rested {
    /// How people call the workload.
    pub workload: String,
    /// Its generation: one more than the changes of its spec, and nobody but the operator changes one.
    pub generation: i64,
    /// The mark on each of its templates that the watch saw, from that of its creation on.
    pub marks: Vec<Option<String>>,
    /// The version on the target.
    pub version: Option<String>,
    /// Whether the target holds what FerrVault holds.
    pub current: bool,
    /// What the status has to say against it; nothing when it says that all is done.
    pub unsettled: Option<String>,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Restarted less often than due, or not for the version that the target holds.
    Lost(String),
    /// Restarted more often than due, or twice for one version.
    Doubled(String),
    /// The target does not hold what FerrVault holds.
    Stale(String),
    /// The status does not say that all is done.
    Unsettled(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(what) => write!(f, "lost: {what}"),
            Self::Doubled(what) => write!(f, "doubled: {what}"),
            Self::Stale(what) => write!(f, "stale: {what}"),
            Self::Unsettled(what) => write!(f, "unsettled: {what}"),
        }
    }
}

impl Rested {
    /// How often its template changed. An outage can hide a change from the watch, and never from the generation.
    pub fn changes(&self) -> usize {
        let counted = usize::try_from(self.generation - 1).unwrap_or_default();
        counted.max(self.marks.len().saturating_sub(1))
    }

    /// What is not as it should be after `rounds` rotations.
    pub fn faults(&self, rounds: usize) -> Vec<Fault> {
        let (name, changes) = (&self.workload, self.changes());
        let mut faults = Vec::new();
        if !self.current {
            faults.push(Fault::Stale(format!("the target of {name}")));
        }
        let marks: Vec<&str> = self.marks.iter().skip(1).map(|mark| mark.as_deref().unwrap_or("no mark")).collect();
        let last = self.marks.last().and_then(Option::as_deref);
        if changes < rounds || (rounds > 0 && (last.is_none() || last != self.version.as_deref())) {
            let version = self.version.as_deref().unwrap_or("no version");
            faults.push(Fault::Lost(format!("{name}: {changes} of {rounds}, {marks:?}, target {version}")));
        }
        let distinct = marks.iter().collect::<BTreeSet<_>>().len();
        if changes > rounds || distinct < marks.len() {
            faults.push(Fault::Doubled(format!("{name}: {changes} of {rounds}, {marks:?}")));
        }
        if let Some(why) = &self.unsettled {
            faults.push(Fault::Unsettled(format!("{name}: {why}")));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rested(generation: i64, marks: &[&str], version: &str) -> Rested {
        Rested {
            workload: "w".to_owned(),
            generation,
            marks: std::iter::once(None).chain(marks.iter().map(|mark| Some((*mark).to_owned()))).collect(),
            version: Some(version.to_owned()),
            current: true,
            unsettled: None,
        }
    }

    fn kinds(rested: &Rested, rounds: usize) -> Vec<&'static str> {
        let name = |fault: Fault| match fault {
            Fault::Lost(_) => "lost",
            Fault::Doubled(_) => "doubled",
            Fault::Stale(_) => "stale",
            Fault::Unsettled(_) => "unsettled",
        };
        rested.faults(rounds).into_iter().map(name).collect()
    }

    #[test]
    fn each_way_of_being_wrong_is_told_apart() {
        for (what, rested, rounds, wanted) in [
            ("one change per round, the last for the target's version", rested(3, &["b", "c"], "c"), 2, &[][..]),
            ("untouched before the first rotation", rested(1, &[], "a"), 0, &[]),
            ("none at all", rested(1, &[], "b"), 1, &["lost"]),
            ("one round missed", rested(2, &["b"], "c"), 2, &["lost"]),
            ("restarted, for a version that is gone", rested(2, &["a"], "b"), 1, &["lost"]),
            ("twice for different versions", rested(3, &["b", "c"], "c"), 1, &["doubled"]),
            ("twice for one version", rested(3, &["b", "b"], "b"), 2, &["doubled"]),
            ("twice, and the watch saw one", rested(3, &["b"], "b"), 1, &["doubled"]),
            ("twice for one version and never for the next", rested(3, &["b", "b"], "c"), 2, &["lost", "doubled"]),
            ("restarted without a rotation", rested(2, &["b"], "b"), 0, &["doubled"]),
            ("old content", Rested { current: false, ..rested(2, &["b"], "b") }, 1, &["stale"]),
            (
                "a status that says otherwise",
                Rested { unsettled: Some("owed".to_owned()), ..rested(2, &["b"], "b") },
                1,
                &["unsettled"],
            ),
        ] {
            assert_eq!(kinds(&rested, rounds), wanted, "{what}");
        }
    }

    #[test]
    fn a_mark_that_is_missing_after_a_rotation_is_a_loss() {
        let stripped = Rested { marks: vec![None, None], ..rested(2, &[], "b") };
        assert_eq!(kinds(&stripped, 1), ["lost"]);
    }
}
