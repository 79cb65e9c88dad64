//! What holds for every snapshot, likely or not.

use proptest::prelude::*;

use super::*;
use crate::fixtures::resource;
use crate::version::{Form, Verdict as Match};

/// A few versions that fit A, fit B or fit nothing, made by this key, by a lost one, by the Go operator and by nobody.
fn any_version() -> impl Strategy<Value = Version> {
    prop_oneof![
        4 => (1_u8..5, prop::sample::select(vec!["A", "B"])).prop_map(|(serial, value)| version(serial, value)),
        1 => prop::sample::select(vec!["A", "B"]).prop_map(of_the_old_key),
        1 => Just(legacy()),
        1 => Just(Version::parse("edited")),
    ]
}

fn any_value() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["A", "B", "C"])
}

fn any_target() -> impl Strategy<Value = ObservedTarget> {
    let ownership = prop::sample::select(vec![Ownership::Ours, Ownership::Nobody]);
    // The annotation is read by `version_on_target`, which gives no foreign version.
    let version = prop::option::weighted(0.7, any_version())
        .prop_map(|version| version.filter(|version| version.form() != Form::Foreign));
    (version, any_value(), ownership, any::<bool>()).prop_map(|(version, value, ownership, managed_by_us)| {
        ObservedTarget { ownership, managed_by_us, ..target(version, value) }
    })
}

fn any_records() -> impl Strategy<Value = Records> {
    let versions = || prop::option::of(any_version());
    (versions(), versions(), prop::collection::vec(any_version(), 0..3))
        .prop_map(|(last_rollout, content, rollouts)| Records { last_rollout, content, rollouts })
}

#[derive(Clone, Debug)]
struct Snapshot {
    target: Option<ObservedTarget>,
    wanted: &'static str,
    records: Records,
    marks: Vec<Version>,
    unowned: bool,
}

impl Snapshot {
    fn decide(&self) -> SyncPlan {
        decide(Question {
            target: self.target.as_ref(),
            wanted: &content(self.wanted),
            records: &self.records,
            marks: &Marks { seen: self.marks.clone() },
            unowned: self.unowned,
            key: &key(),
            nonces: [[NEW; 8], [NAMING; 8]],
        })
    }

    /// The same, once the plan is carried out as far as the debt, or whole.
    fn after(&self, plan: &SyncPlan, whole: bool) -> Self {
        let mut after = self.clone();
        if let Some(debt) = &plan.debt {
            after.records.last_rollout = Some(debt.clone());
        }
        if whole {
            after.target = Some(match (&plan.write, &self.target) {
                (None, Some(target)) => target.clone(),
                (_, before) => {
                    let ownership = if self.unowned { Ownership::Nobody } else { Ownership::Ours };
                    let before = before.clone().unwrap_or_else(|| target(None, ""));
                    let version = Some(plan.version.clone());
                    ObservedTarget { ownership, version, managed_by_us: true, content: content(self.wanted), ..before }
                }
            });
        }
        after
    }
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let marks = prop::collection::vec(any_version(), 0..3);
    (prop::option::weighted(0.8, any_target()), any_value(), any_records(), marks, any::<bool>())
        .prop_map(|(target, wanted, records, marks, unowned)| Snapshot { target, wanted, records, marks, unowned })
}

proptest! {
    #[test]
    fn after_its_own_plan_nothing_is_left_to_do(snapshot in any_snapshot()) {
        let plan = snapshot.decide();
        let (debt, written, version, change) = summary(&snapshot.after(&plan, true).decide());
        prop_assert_eq!((debt, written, version, change), (None, Written::Nothing, plan.version, Change::Unchanged));
    }

    #[test]
    fn a_plan_cut_after_its_debt_is_made_again_without_one(snapshot in any_snapshot()) {
        let plan = snapshot.decide();
        let again = snapshot.after(&plan, false).decide();
        prop_assert!(again.debt.is_none());
        prop_assert_eq!(summary(&again).1, summary(&plan).1);
        // What came before a debt is a change of content, and that must not turn into anything less.
        prop_assert!(plan.debt.is_none() || again.change == Change::Replaced, "{:?}", again.change);
    }

    #[test]
    fn the_version_of_a_plan_is_that_of_the_wanted_content(snapshot in any_snapshot()) {
        let plan = snapshot.decide();
        let wanted = content(snapshot.wanted);
        match plan.version.verify(&key(), &wanted) {
            Match::Matches => {}
            Match::Differs => prop_assert!(false, "{plan:?}"),
            // Only a version that the target has already, whose key is gone, and whose bytes are right.
            Match::KeyGone => {
                let target = snapshot.target.expect("a version out of nowhere");
                prop_assert_eq!(target.version.as_ref(), Some(&plan.version));
                prop_assert_eq!(target.content, wanted);
            }
        }
    }

    #[test]
    fn a_debt_is_planned_exactly_when_a_target_gets_new_content_and_none_is_on_record(snapshot in any_snapshot()) {
        let plan = snapshot.decide();
        let is_new = snapshot.target.is_some() && plan.change == Change::Replaced;
        prop_assert_eq!(plan.debt.is_some(), is_new && snapshot.records.last_rollout.is_none());
        if let (Some(debt), Some(target)) = (&plan.debt, &snapshot.target) {
            prop_assert_ne!(debt, &plan.version);
            prop_assert!(target.version.as_ref().is_none_or(|version| debt == version));
            // What never had a name gets one that is its own.
            prop_assert!(target.version.is_some() || debt.verify(&key(), &target.content) == Match::Matches);
        }
    }

    #[test]
    fn a_version_that_is_new_was_never_seen_and_an_old_one_was(snapshot in any_snapshot()) {
        let plan = snapshot.decide();
        let records = &snapshot.records;
        let on_target = snapshot.target.iter().filter_map(|target| target.version.as_ref());
        let mut seen = on_target
            .chain(&snapshot.marks)
            .chain(&records.rollouts)
            .chain(&records.content)
            .chain(&records.last_rollout);
        let is_new = matches!(plan.change, Change::Created | Change::Replaced | Change::Adopted);
        prop_assert_eq!(seen.all(|version| *version != plan.version), is_new, "{:?}", plan);
    }

    #[test]
    fn what_is_written_follows_from_what_is_there(snapshot in any_snapshot()) {
        let plan = snapshot.decide();
        match (&snapshot.target, &plan.write) {
            (None, Some(TargetWrite::Create)) => {}
            (Some(target), Some(TargetWrite::Patch { resource_version, data })) => {
                prop_assert_eq!(resource_version, &target.resource_version);
                prop_assert_eq!(data, &data_patch(&target.content, &content(snapshot.wanted)));
            }
            (Some(target), None) => {
                prop_assert_eq!(plan.change, Change::Unchanged);
                prop_assert_eq!(&target.content, &content(snapshot.wanted));
                prop_assert!(target.managed_by_us);
            }
            (target, write) => prop_assert!(false, "{target:?} {write:?}"),
        }
    }

    #[test]
    fn marks_only_matter_to_a_target_that_lost_its_version(snapshot in any_snapshot()) {
        if snapshot.target.as_ref().is_some_and(|target| target.version.is_some()) {
            let unmarked = Snapshot { marks: Vec::new(), ..snapshot.clone() };
            prop_assert_eq!(summary(&snapshot.decide()), summary(&unmarked.decide()));
        }
    }
}

#[test]
fn the_pieces_of_these_tests_fit_the_resource_they_stand_for() {
    assert_eq!(legacy().verify(&key(), &content("A")), Match::Matches);
    assert_eq!(resource().target_name(), "app-env");
}
