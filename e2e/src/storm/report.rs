//! What came of a storm, as a table and as a verdict.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Options;
use super::blows::Dealt;
use super::verdict::Fault;

/// Faults that are shown one by one; the table counts them all.
const SHOWN: usize = 10;

/// What came of one rotation.
#[derive(Clone, Debug)]
pub struct Round {
    /// Counts from 1.
    pub number: usize,
    /// What was done to the operator.
    pub dealt: Dealt,
    /// Template changes that the watch and the API server counted in this round.
    pub restarts: usize,
    /// What was wrong at its end.
    pub found: Vec<Fault>,
    /// Operators that ended without having been told to.
    pub ended: Vec<String>,
    /// From the change of the value until all was at rest.
    pub took: Duration,
}

/// What came of a storm.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was let loose.
    pub options: Options,
    /// One entry per rotation.
    pub rounds: Vec<Round>,
    /// What was wrong after one more pass over everything.
    pub at_rest: Vec<Fault>,
    /// Operators that ended by themselves meanwhile.
    pub ended_at_rest: Vec<String>,
    /// Which value or token got into a log, without showing it.
    pub leaked: Option<String>,
    /// Connections that a rough wire ended on purpose, and what it has to say.
    pub wire: Option<(usize, String)>,
    /// Where the logs are, if something is wrong.
    pub kept: Option<PathBuf>,
    /// All in all.
    pub took: Duration,
}

impl Report {
    /// Of a storm that has not begun.
    pub fn new(options: &Options) -> Self {
        Self {
            options: options.clone(),
            rounds: Vec::new(),
            at_rest: Vec::new(),
            ended_at_rest: Vec::new(),
            leaked: None,
            wire: None,
            kept: None,
            took: Duration::ZERO,
        }
    }

    /// Whether everything was dealt that was asked for, and nothing is wrong.
    pub fn exact(&self) -> bool {
        self.complaints().is_empty()
    }

    /// Everything that is wrong, one line each.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for round in &self.rounds {
            complaints.extend(round.found.iter().map(|fault| format!("round {}: {fault}", round.number)));
            let ended = round.ended.iter().map(|who| format!("round {}: ended by itself: {who}", round.number));
            complaints.extend(ended);
        }
        complaints.extend(self.at_rest.iter().map(|fault| format!("at rest: {fault}")));
        complaints.extend(self.ended_at_rest.iter().map(|who| format!("at rest: ended by itself: {who}")));
        complaints.extend(self.leaked.iter().map(|which| format!("in a log: {which}")));
        let dealt = |what: fn(&Dealt) -> usize| self.rounds.iter().map(|round| what(&round.dealt)).sum::<usize>();
        for (what, dealt, wanted) in [
            ("kills", dealt(|it| it.kills), self.options.kills),
            ("freezes", dealt(|it| it.freezes), self.options.freezes),
            ("outages", dealt(|it| it.outages), self.options.outages),
        ] {
            // One that found something ends early.
            if dealt < wanted && complaints.is_empty() {
                complaints.push(format!("{dealt} {what} instead of {wanted}: the storm itself did not happen"));
            }
        }
        if self.options.wire && self.wire.as_ref().is_none_or(|(ended, _)| *ended == 0) {
            complaints.push("no connection was cut: the storm itself did not happen".to_owned());
        }
        let restarts: usize = self.rounds.iter().map(|round| round.restarts).sum();
        let due = self.options.resources * self.options.rounds;
        if restarts != due && complaints.is_empty() {
            complaints.push(format!("{restarts} restarts seen where {due} were due"));
        }
        complaints
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { resources, replicas, seed, .. } = &self.options;
        writeln!(f, "storm over {resources} resources, {replicas} at work, seed {seed}")?;
        writeln!(
            f,
            "{:>6} {:>6} {:>11} {:>8} {:>8} {:>9} {:>14} {:>6} {:>8} {:>6} {:>10} {:>8}",
            "round",
            "kills",
            "in midway",
            "freezes",
            "outages",
            "take-over",
            "restarts seen",
            "lost",
            "doubled",
            "stale",
            "unsettled",
            "seconds"
        )?;
        let mut all = Row { name: "all".to_owned(), ..Row::default() };
        for round in &self.rounds {
            let row = Row::of(round);
            writeln!(f, "{row}")?;
            all.add(&row);
        }
        let mut rest = Row { name: "rest".to_owned(), ..Row::default() };
        rest.count(&self.at_rest);
        writeln!(f, "{rest}")?;
        all.add(&rest);
        all.took = self.took;
        writeln!(f, "{all}")?;
        if let Some((_, wire)) = &self.wire {
            writeln!(f, "wire: {wire}")?;
        }
        let complaints = self.complaints();
        for complaint in complaints.iter().take(SHOWN) {
            writeln!(f, "{complaint}")?;
        }
        if complaints.len() > SHOWN {
            writeln!(f, "and {} more", complaints.len() - SHOWN)?;
        }
        if let Some(kept) = &self.kept {
            writeln!(f, "logs and audit log: {}", kept.display())?;
        }
        let due = resources * self.options.rounds;
        if complaints.is_empty() {
            write!(f, "exact: {due} restarts due, {due} seen, none lost, none doubled")
        } else {
            write!(f, "NOT exact")
        }
    }
}

#[derive(Default)]
struct Row {
    name: String,
    dealt: Dealt,
    restarts: usize,
    lost: usize,
    doubled: usize,
    stale: usize,
    unsettled: usize,
    took: Duration,
}

impl Row {
    fn of(round: &Round) -> Self {
        let (dealt, restarts, took) = (round.dealt, round.restarts, round.took);
        let mut row = Self { name: round.number.to_string(), dealt, restarts, took, ..Self::default() };
        row.count(&round.found);
        row
    }

    fn count(&mut self, faults: &[Fault]) {
        for fault in faults {
            match fault {
                Fault::Lost(_) => self.lost += 1,
                Fault::Doubled(_) => self.doubled += 1,
                Fault::Stale(_) => self.stale += 1,
                Fault::Unsettled(_) => self.unsettled += 1,
            }
        }
    }

    fn add(&mut self, other: &Self) {
        self.dealt.kills += other.dealt.kills;
        self.dealt.in_the_middle += other.dealt.in_the_middle;
        self.dealt.freezes += other.dealt.freezes;
        self.dealt.outages += other.dealt.outages;
        self.dealt.take_over = self.dealt.take_over.max(other.dealt.take_over);
        self.restarts += other.restarts;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.stale += other.stale;
        self.unsettled += other.unsettled;
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dealt, restarts, lost, doubled, stale, unsettled, took } = self;
        let take_over = dealt.take_over.map_or_else(|| "-".to_owned(), |it| format!("{:.1} s", it.as_secs_f64()));
        write!(
            f,
            "{name:>6} {:>6} {:>11} {:>8} {:>8} {take_over:>9} {restarts:>14} {lost:>6} {doubled:>8} {stale:>6} \
             {unsettled:>10} {:>8.1}",
            dealt.kills,
            dealt.in_the_middle,
            dealt.freezes,
            dealt.outages,
            took.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let options = Options {
            resources: 10,
            rounds: 1,
            kills: 2,
            outages: 0,
            freezes: 0,
            replicas: 1,
            wire: false,
            seed: 1,
            values: serde_json::Value::Null,
        };
        let dealt = Dealt { kills: 2, in_the_middle: 1, ..Dealt::default() };
        let round =
            Round { number: 1, dealt, restarts: 10, found: Vec::new(), ended: Vec::new(), took: Duration::ZERO };
        Report { rounds: vec![round], ..Report::new(&options) }
    }

    #[test]
    fn a_storm_that_found_nothing_is_exact_only_if_it_happened() {
        assert!(report().exact());
        let mut calm = report();
        calm.rounds[0].dealt.kills = 1;
        assert!(calm.complaints()[0].contains("1 kills instead of 2"), "{:?}", calm.complaints());
    }

    #[test]
    fn a_wire_that_cut_nothing_was_none() {
        let mut calm = report();
        calm.options.wire = true;
        for wire in [None, Some((0, "0 connections".to_owned()))] {
            calm.wire = wire;
            assert!(!calm.exact());
        }
        calm.wire = Some((1, "1 connection".to_owned()));
        assert!(calm.exact());
    }

    #[test]
    fn whatever_is_wrong_makes_it_inexact_and_is_said() {
        type Spoil = fn(&mut Report);
        let spoil: [(Spoil, &str); 6] = [
            (|it| it.rounds[0].found.push(Fault::Lost("web".to_owned())), "round 1: lost: web"),
            (|it| it.at_rest.push(Fault::Doubled("web".to_owned())), "at rest: doubled: web"),
            (|it| it.rounds[0].ended.push("storm-3".to_owned()), "ended by itself: storm-3"),
            (|it| it.ended_at_rest.push("storm-4".to_owned()), "ended by itself: storm-4"),
            (|it| it.leaked = Some("a.log: line 3".to_owned()), "in a log: a.log: line 3"),
            (|it| it.rounds[0].restarts = 9, "9 restarts seen where 10 were due"),
        ];
        for (spoil, said) in spoil {
            let mut report = report();
            spoil(&mut report);
            assert!(!report.exact(), "{said}");
            let text = report.to_string();
            assert!(text.contains(said) && text.ends_with("NOT exact"), "{text}");
        }
    }
}
