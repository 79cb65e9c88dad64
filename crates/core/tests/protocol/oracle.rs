//! The real decisions, asked in the words of the world.
//!
//! Every answer comes from `ferrvault_core`, with real keys, real hashes and real versions. The same questions come up a
//! hundred thousand times, so each is put once and its answer is kept: the functions are pure.

mod translate;

use std::collections::HashMap;
use std::hash::Hash;

use ferrvault_api::FerrVaultSecretStatus;
use ferrvault_core::restart::{self, Debt, Step, WorkloadOutcome};
use ferrvault_core::status::{RestartReport, SyncReport, Write, render};
use ferrvault_core::sync::{self, Change, Marks, Question, Records};
use ferrvault_core::version::{OperatorKey, Version};

use crate::world::{Content, Mark, Name, Outcome, Restart, Status, Target, TargetWrite, WORKLOADS};
use translate::{content_of, named, now, observed, resource, state_of, status_of, version_of, workloads};

/// The serial numbers of the two nonces that a decision is given; the asker puts the next free ones in their place.
const FRESH: u8 = 90;
const NAMING: u8 = 91;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SyncQuestion {
    pub(crate) target: Option<Target>,
    pub(crate) wanted: Content,
    pub(crate) status: Status,
    /// `None`: the workloads were not read.
    pub(crate) marks: Option<[Mark; WORKLOADS]>,
}

/// A plan in the words of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) debt: Option<Name>,
    pub(crate) write: Option<TargetWrite>,
    pub(crate) version: Name,
    pub(crate) change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ReportQuestion {
    status: Status,
    /// The version that the sync stage ended with; `None`: it was not due or refused.
    synced: Option<(Name, bool)>,
    restart: Restart,
    current: Option<Name>,
}

/// Asks and remembers.
pub(crate) struct Oracle {
    key: OperatorKey,
    /// How many workloads the resource lists.
    listed: usize,
    needs_workloads: HashMap<SyncQuestion, bool>,
    plans: HashMap<SyncQuestion, Plan>,
    debts: HashMap<(Option<Name>, Name), Debt>,
    stamps: HashMap<(Name, Status, [Mark; WORKLOADS]), [StepTaken; WORKLOADS]>,
    reports: HashMap<ReportQuestion, Status>,
}

/// What is to be done about one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepTaken {
    Done,
    Stamp,
    Wait,
    Fail,
}

impl Oracle {
    pub(crate) fn new(listed: usize) -> Self {
        Self {
            listed,
            key: OperatorKey::from_bytes(&[7; OperatorKey::BYTES]).expect("a key"),
            needs_workloads: HashMap::new(),
            plans: HashMap::new(),
            debts: HashMap::new(),
            stamps: HashMap::new(),
            reports: HashMap::new(),
        }
    }

    pub(crate) fn asked(&self) -> usize {
        self.needs_workloads.len() + self.plans.len() + self.debts.len() + self.stamps.len() + self.reports.len()
    }

    /// Whether the workloads have to be read before the target is written.
    pub(crate) fn needs_workloads(&mut self, question: SyncQuestion) -> bool {
        let key = &self.key;
        remembered(&mut self.needs_workloads, question, || {
            let target = question.target.map(|target| observed(key, target));
            let verdict = sync::judge(target.as_ref(), &content_of(question.wanted), key);
            verdict.needs_workloads(&Records::of(Some(&status_of(key, question.status))))
        })
    }

    /// The plan, whose new versions get the serial number `next` and the one after.
    pub(crate) fn plan(&mut self, question: SyncQuestion, next: u8) -> Plan {
        let (key, listed) = (&self.key, self.listed);
        let plan = remembered(&mut self.plans, question, || plan(key, listed, question));
        let numbered = |name: Name| match name.serial {
            FRESH => Name { serial: next, ..name },
            NAMING => Name { serial: next + 1, ..name },
            _ => name,
        };
        Plan { debt: plan.debt.map(numbered), version: numbered(plan.version), ..plan }
    }

    /// Whether a restart is owed.
    pub(crate) fn debt(&mut self, last_rollout: Option<Name>, current: Name) -> Debt {
        let key = &self.key;
        remembered(&mut self.debts, (last_rollout, current), || {
            restart::debt(last_rollout.map(|name| version_of(key, name)).as_ref(), &version_of(key, current))
        })
    }

    /// What is to be done about each workload.
    pub(crate) fn steps(&mut self, current: Name, status: Status, marks: [Mark; WORKLOADS]) -> [StepTaken; WORKLOADS] {
        let (key, listed) = (&self.key, self.listed);
        remembered(&mut self.stamps, (current, status, marks), || {
            let recorded = status_of(key, status).rollouts;
            let observed = workloads().into_iter().zip(marks.map(|mark| state_of(key, mark))).take(listed).collect();
            let steps = restart::steps(&version_of(key, current), &recorded, observed);
            std::array::from_fn(|index| match steps.get(index).map(|(_, step)| step) {
                // What is not listed needs nothing.
                None | Some(Step::Done { .. }) => StepTaken::Done,
                Some(Step::Stamp { .. }) => StepTaken::Stamp,
                Some(Step::Wait) => StepTaken::Wait,
                Some(Step::Fail(_)) => StepTaken::Fail,
            })
        })
    }

    /// The status that a pass leaves.
    pub(crate) fn report(
        &mut self,
        status: Status,
        synced: Option<(Name, bool)>,
        restart: Restart,
        current: Option<Name>,
    ) -> Status {
        let question = ReportQuestion { status, synced, restart, current };
        let (key, listed) = (&self.key, self.listed);
        remembered(&mut self.reports, question, || report(key, listed, question))
    }
}

fn remembered<Q: Copy + Eq + Hash, A: Copy>(answers: &mut HashMap<Q, A>, question: Q, ask: impl FnOnce() -> A) -> A {
    *answers.entry(question).or_insert_with(ask)
}

fn plan(key: &OperatorKey, listed: usize, question: SyncQuestion) -> Plan {
    let wanted = content_of(question.wanted);
    let target = question.target.map(|target| observed(key, target));
    let states =
        question.marks.map(|marks| workloads().into_iter().zip(marks.map(|mark| state_of(key, mark))).take(listed));
    let marks = Marks::of(&states.into_iter().flatten().collect::<Vec<_>>());
    let plan = sync::decide(Question {
        target: target.as_ref(),
        wanted: &wanted,
        records: &Records::of(Some(&status_of(key, question.status))),
        marks: &marks,
        unowned: false,
        key,
        nonces: [[FRESH; 8], [NAMING; 8]],
    });
    // A version is recognised among all that the question can have brought into play.
    let held = question.target.map_or(Content::Forgotten, |target| target.content);
    let mut known = vec![Name::new(FRESH, question.wanted), Name::new(NAMING, held)];
    known.extend(question.target.and_then(|target| target.version));
    known.extend([question.status.last_rollout, question.status.content].into_iter().flatten());
    known.extend(question.status.rollouts.iter().filter_map(|entry| entry.version));
    known.extend(question.marks.into_iter().flatten().filter_map(|mark| match mark {
        Mark::Readable(mark) => mark,
        Mark::Absent | Mark::Unreadable => None,
    }));
    let name = |version: &Version| {
        let found = known.iter().find(|name| version_of(key, **name) == *version);
        *found.expect("a version that was in the question")
    };
    Plan {
        debt: plan.debt.as_ref().map(name),
        write: plan.write.map(|write| match write {
            sync::TargetWrite::Create => TargetWrite::Create,
            sync::TargetWrite::Patch { .. } => TargetWrite::Patch,
        }),
        version: name(&plan.version),
        change: plan.change,
    }
}

fn report(key: &OperatorKey, listed: usize, question: ReportQuestion) -> Status {
    let ReportQuestion { status, synced, restart, current } = question;
    let before = status_of(key, status);
    let current = current.map(|name| version_of(key, name));
    let sync = match synced {
        None => SyncReport::NotDue,
        Some((version, is_new_content)) => SyncReport::Synced {
            version: version_of(key, version),
            keys: vec!["KEY".to_owned()],
            change: if is_new_content { Change::Replaced } else { Change::Unchanged },
        },
    };
    let restart = match (restart, current) {
        (Restart::NotDue, _) | (_, None) => RestartReport::NotDue,
        (Restart::Nothing, _) => RestartReport::Nothing,
        (Restart::Baseline, Some(version)) => RestartReport::Baseline(version),
        (Restart::Owed(outcomes), Some(current)) => {
            let outcomes: Vec<_> = workloads()
                .into_iter()
                .zip(outcomes)
                .take(listed)
                .map(|(workload, outcome)| {
                    let outcome = match outcome.expect("an outcome for each workload") {
                        Outcome::Restarted => WorkloadOutcome::Restarted { paused: false },
                        Outcome::Missing => WorkloadOutcome::Missing,
                        Outcome::Overtaken => WorkloadOutcome::Overtaken,
                        Outcome::Failed => WorkloadOutcome::Failed("refused".to_owned()),
                    };
                    (workload, outcome)
                })
                .collect();
            let settled = restart::settle(&current, &before.rollouts, &outcomes, now());
            RestartReport::Owed { current, settled }
        }
    };
    let resource = resource(before.clone());
    let rendered = render(&resource, &sync, &restart, now());
    if rendered.write == Write::Heartbeat {
        let without_times = |status: &FerrVaultSecretStatus| FerrVaultSecretStatus {
            last_attempted_at: None,
            last_synced_at: None,
            ..status.clone()
        };
        assert_eq!(without_times(&before), without_times(&rendered.status), "a heartbeat carries times only");
    }
    let names: Vec<Name> = [status.last_rollout, status.content, question.current, synced.map(|(name, _)| name)]
        .into_iter()
        .chain(status.rollouts.iter().map(|entry| entry.version))
        .flatten()
        .collect();
    named(key, &rendered.status, &names)
}
