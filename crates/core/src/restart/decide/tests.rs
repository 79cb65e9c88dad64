//! Rules 2 and 5: what is owed, and what is done about each workload.

use ferrvault_api::secret::{RolloutState, WorkloadKind};
use proptest::prelude::*;

use super::*;
use crate::fixtures::{LEGACY_A, rollout, version, workload};

#[test]
fn a_restart_is_owed_while_another_version_is_on_record() {
    let legacy = Version::parse(LEGACY_A);
    let cases = [
        ("nothing on record", None, version(1, "A"), Debt::Baseline),
        ("this version", Some(version(1, "A")), version(1, "A"), Debt::Nothing),
        ("another content", Some(version(1, "A")), version(2, "B"), Debt::Owed),
        ("the same content under another version: there and back", Some(version(1, "A")), version(3, "A"), Debt::Owed),
        ("the Go operator's, nothing on record", None, legacy.clone(), Debt::Baseline),
        ("the Go operator's, restarted for", Some(legacy.clone()), legacy.clone(), Debt::Nothing),
        ("the Go operator's, restarted for another", Some(Version::parse("0".repeat(64))), legacy.clone(), Debt::Owed),
        ("the first change after the Go operator", Some(legacy), version(1, "B"), Debt::Owed),
        ("a record that somebody edited", Some(Version::parse("edited")), version(1, "A"), Debt::Owed),
    ];
    for (case, last_rollout, current, expected) in cases {
        assert_eq!(debt(last_rollout.as_ref(), &current), expected, "{case}");
    }
}

#[test]
fn a_debt_on_record_is_not_given_up_for_one_read_of_the_target() {
    let (a, b) = (version(1, "A"), version(2, "B"));
    let status = |says: Option<&str>, paid: &Version, synced: &Version| FerrVaultSecretStatus {
        last_rollout_hash: Some(paid.as_str().to_owned()),
        content_hash: Some(synced.as_str().to_owned()),
        conditions: says.into_iter().map(restarted).collect(),
        ..FerrVaultSecretStatus::default()
    };
    let owing = || status(Some("False"), &a, &b);
    let cases = [
        ("no status", None, Some(&a), false),
        ("owed, and the target is seen", Some(owing()), Some(&b), false),
        ("owed, and the target looks paid for", Some(owing()), Some(&a), true),
        ("owed, and there is no target", Some(owing()), None, true),
        ("owed, and a sync has found the paid version", Some(status(Some("False"), &a, &a)), Some(&a), false),
        ("paid", Some(status(Some("True"), &b, &b)), Some(&b), false),
        (
            "paid while FerrVault was away, so that no sync has said so",
            Some(status(Some("True"), &b, &a)),
            Some(&b),
            false,
        ),
        ("paid, and there is no target", Some(status(Some("True"), &b, &b)), None, false),
        ("nothing said yet", Some(status(None, &a, &b)), Some(&a), false),
    ];
    for (case, status, read, expected) in cases {
        assert_eq!(contradicted(status.as_ref(), read), expected, "{case}");
    }
}

fn restarted(status: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let is_true = status == "True";
    let reason = if is_true { ferrvault_api::Reason::Restarted } else { ferrvault_api::Reason::RolloutPending };
    crate::status::condition_of(condition::ROLLOUT_RESTARTED, is_true, reason, String::new(), 1, now)
}

fn present(mark: Option<Version>, paused: bool) -> WorkloadState {
    WorkloadState::Present { resource_version: "7".to_owned(), mark, paused }
}

#[test]
fn a_workload_is_stamped_when_neither_its_mark_nor_its_record_carries_the_version() {
    use RolloutState::{Failed, Restarted, Waiting};
    let (a, b) = (version(1, "A"), version(2, "B"));
    let stamp = |paused| Step::Stamp { resource_version: "7".to_owned(), paused };
    let done = |paused| Step::Done { paused };
    let unreadable = || WorkloadState::Unreadable("timed out".to_owned());
    let record = |name: &str, version: &Version, state| rollout(name, Some(version), state);
    let cases = [
        ("never restarted", vec![], present(None, false), stamp(false)),
        ("marked with it", vec![], present(Some(b.clone()), false), done(false)),
        (
            "marked with it, recorded for an older one",
            vec![record("api", &a, Restarted)],
            present(Some(b.clone()), false),
            done(false),
        ),
        ("marked with an older one", vec![record("api", &a, Restarted)], present(Some(a.clone()), false), stamp(false)),
        ("its mark stripped, recorded", vec![record("api", &b, Restarted)], present(None, false), done(false)),
        (
            "its mark rolled back, recorded",
            vec![record("api", &b, Restarted)],
            present(Some(a.clone()), false),
            done(false),
        ),
        ("its mark stripped, not recorded", vec![record("api", &a, Restarted)], present(None, false), stamp(false)),
        ("refused last time", vec![record("api", &a, Failed)], present(None, false), stamp(false)),
        ("waited for last time", vec![rollout("api", None, Waiting)], present(None, false), stamp(false)),
        ("the record of another workload", vec![record("worker", &b, Restarted)], present(None, false), stamp(false)),
        (
            "the record of another kind of the same name",
            vec![Rollout { kind: WorkloadKind::StatefulSet, ..record("api", &b, Restarted) }],
            present(None, false),
            stamp(false),
        ),
        ("a mark that somebody edited", vec![], present(Some(Version::parse("edited")), false), stamp(false)),
        ("paused: stamped now, rolled out on resume", vec![], present(None, true), stamp(true)),
        ("paused and stamped", vec![], present(Some(b.clone()), true), done(true)),
        ("not there", vec![], WorkloadState::Missing, Step::Wait),
        ("not there any more, recorded", vec![record("api", &b, Restarted)], WorkloadState::Missing, done(false)),
        (
            "not there any more, recorded for an older one",
            vec![record("api", &a, Restarted)],
            WorkloadState::Missing,
            Step::Wait,
        ),
        ("unreadable", vec![], unreadable(), Step::Fail("timed out".to_owned())),
        ("unreadable, recorded", vec![record("api", &b, Restarted)], unreadable(), done(false)),
        (
            "unreadable, recorded for an older one",
            vec![record("api", &a, Restarted)],
            unreadable(),
            Step::Fail("timed out".to_owned()),
        ),
    ];
    for (case, recorded, state, expected) in cases {
        let found = steps(&b, &recorded, vec![(workload("api"), state)]);
        assert_eq!(found, [(workload("api"), expected)], "{case}");
    }
}

#[test]
fn one_workload_that_fails_stops_no_other() {
    let b = version(2, "B");
    let states = vec![
        (workload("api"), WorkloadState::Unreadable("forbidden".to_owned())),
        (workload("worker"), WorkloadState::Missing),
        (workload("cron"), present(None, false)),
    ];
    let expected = vec![
        (workload("api"), Step::Fail("forbidden".to_owned())),
        (workload("worker"), Step::Wait),
        (workload("cron"), Step::Stamp { resource_version: "7".to_owned(), paused: false }),
    ];
    assert_eq!(steps(&b, &[], states), expected);
}

#[test]
fn a_workload_listed_twice_is_one_workload_where_it_was_listed_first() {
    use WorkloadKind::{Deployment, StatefulSet};
    let of = |kind, name: &str| WorkloadRef { kind, name: name.to_owned() };
    let listed =
        [of(Deployment, "b"), of(StatefulSet, "b"), of(Deployment, "a"), of(Deployment, "b"), of(StatefulSet, "b")];
    assert_eq!(distinct(&listed), [of(Deployment, "b"), of(StatefulSet, "b"), of(Deployment, "a")]);
    assert_eq!(distinct(&[]), []);
}

#[test]
fn a_mark_is_seen_only_on_a_workload_that_was_read() {
    let a = version(1, "A");
    assert_eq!(present(Some(a.clone()), true).mark(), Some(&a));
    assert_eq!(present(None, false).mark(), None);
    assert_eq!(WorkloadState::Missing.mark(), None);
    assert_eq!(WorkloadState::Unreadable("timed out".to_owned()).mark(), None);
}

fn any_version() -> impl Strategy<Value = Version> {
    (1_u8..4, prop::sample::select(vec!["A", "B"])).prop_map(|(serial, value)| version(serial, value))
}

fn any_workload() -> impl Strategy<Value = WorkloadRef> {
    let kinds = vec![WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet];
    (prop::sample::select(kinds), "[ab]").prop_map(|(kind, name)| WorkloadRef { kind, name })
}

fn any_state() -> impl Strategy<Value = WorkloadState> {
    prop_oneof![
        3 => (prop::option::of(any_version()), any::<bool>()).prop_map(|(mark, paused)| present(mark, paused)),
        1 => Just(WorkloadState::Missing),
        1 => Just(WorkloadState::Unreadable("refused".to_owned())),
    ]
}

/// At most one record per workload, as the schema has it.
fn any_records() -> impl Strategy<Value = Vec<Rollout>> {
    let states = vec![RolloutState::Restarted, RolloutState::Waiting, RolloutState::Failed];
    let entry = (prop::option::of(any_version()), prop::sample::select(states));
    prop::collection::btree_map(any_workload(), entry, 0..4).prop_map(|entries| {
        let record = |(of, (version, state)): (WorkloadRef, (Option<Version>, _))| Rollout {
            kind: of.kind,
            ..rollout(&of.name, version.as_ref(), state)
        };
        entries.into_iter().map(record).collect()
    })
}

proptest! {
    #[test]
    fn no_workload_is_stamped_twice_or_for_a_version_it_carries(
        current in any_version(),
        recorded in any_records(),
        listed in prop::collection::vec(any_workload(), 0..8),
        states in prop::collection::vec(any_state(), 8),
    ) {
        let observed: Vec<_> = distinct(&listed).into_iter().zip(states).collect();
        let planned = steps(&current, &recorded, observed.clone());

        prop_assert_eq!(planned.len(), observed.len());
        let mut names: Vec<_> = planned.iter().map(|(workload, _)| workload.clone()).collect();
        names.sort();
        let mut wanted = listed.clone();
        wanted.sort();
        wanted.dedup();
        prop_assert_eq!(names, wanted, "each listed workload, once");

        for ((workload, step), (_, state)) in planned.iter().zip(&observed) {
            let record = recorded.iter().find(|entry| entry.kind == workload.kind && entry.name == workload.name);
            let carries = state.mark() == Some(&current) || record.is_some_and(|entry| entry.hash == current.as_str());
            let is_there = matches!(state, WorkloadState::Present { .. });
            prop_assert_eq!(matches!(step, Step::Done { .. }), carries);
            prop_assert_eq!(matches!(step, Step::Stamp { .. }), is_there && !carries);
        }
    }
}
