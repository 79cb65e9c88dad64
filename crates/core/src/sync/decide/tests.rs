//! Rules 1 and 3: what counts as a change, which write follows and which debt comes before it. Rule 7 and the properties
//! have files of their own.

use super::*;
use crate::fixtures::{LEGACY_A, content, key, other_key, pairs, version};
use crate::sync::version_on_target;

mod lost;
mod plan;
mod properties;

/// The nonces of every decision here: the version `NEW` and the name `NAMING` for what never had one.
const NEW: u8 = 200;
const NAMING: u8 = 201;

fn target(version: Option<Version>, value: &str) -> ObservedTarget {
    ObservedTarget {
        resource_version: "41".to_owned(),
        type_: "Opaque".to_owned(),
        ownership: Ownership::Ours,
        managed_by_us: true,
        immutable: false,
        version,
        content: content(value),
    }
}

fn legacy() -> Version {
    Version::parse(LEGACY_A)
}

/// A version that was made with a key that is gone.
fn of_the_old_key(value: &str) -> Version {
    Version::make(&other_key(), [1; 8], &content(value))
}

fn last_rollout(version: Version) -> Records {
    Records { last_rollout: Some(version), ..Records::default() }
}

fn decided(target: Option<&ObservedTarget>, wanted: &str, records: &Records, seen: &[Version]) -> SyncPlan {
    decide(Question {
        target,
        wanted: &content(wanted),
        records,
        marks: &Marks { seen: seen.to_vec() },
        unowned: false,
        key: &key(),
        nonces: [[NEW; 8], [NAMING; 8]],
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Nothing,
    Made,
    Patched,
}

/// What a plan comes down to.
fn summary(plan: &SyncPlan) -> (Option<Version>, Written, Version, Change) {
    let written = match plan.write {
        None => Written::Nothing,
        Some(TargetWrite::Create) => Written::Made,
        Some(TargetWrite::Patch { .. }) => Written::Patched,
    };
    (plan.debt.clone(), written, plan.version.clone(), plan.change)
}

#[test]
fn the_wanted_content_is_held_against_the_version_and_not_against_the_bytes() {
    let cases = [
        ("no target", None, "A", Verdict::Missing),
        ("no version", Some(target(None, "A")), "A", Verdict::Unversioned),
        ("the version's content", Some(target(Some(version(1, "A")), "A")), "A", Verdict::Same),
        ("another content", Some(target(Some(version(1, "A")), "A")), "B", Verdict::Changed),
        ("edited by hand", Some(target(Some(version(1, "A")), "B")), "A", Verdict::Same),
        ("edited by hand to what comes next", Some(target(Some(version(1, "A")), "B")), "B", Verdict::Changed),
        ("the Go operator's content", Some(target(Some(legacy()), "A")), "A", Verdict::Same),
        ("another content than the Go operator's", Some(target(Some(legacy()), "A")), "B", Verdict::Changed),
        ("the Go operator's, edited", Some(target(Some(legacy()), "B")), "A", Verdict::Same),
        ("the Go operator's, edited to what comes next", Some(target(Some(legacy()), "B")), "B", Verdict::Changed),
        ("key gone, same bytes", Some(target(Some(of_the_old_key("A")), "A")), "A", Verdict::Same),
        ("key gone, other bytes", Some(target(Some(of_the_old_key("A")), "A")), "B", Verdict::Changed),
        ("key gone, edited", Some(target(Some(of_the_old_key("A")), "B")), "A", Verdict::Changed),
    ];
    for (case, target, wanted, expected) in cases {
        assert_eq!(judge(target.as_ref(), &content(wanted), &key()), expected, "{case}");
    }
}

#[test]
fn a_verdict_says_whether_workloads_are_read_first() {
    let known = last_rollout(version(1, "A"));
    let cases = [
        (Verdict::Same, Records::default(), false),
        (Verdict::Same, known.clone(), false),
        (Verdict::Changed, Records::default(), true),
        (Verdict::Changed, known.clone(), true),
        (Verdict::Missing, Records::default(), false),
        (Verdict::Missing, known.clone(), true),
        (Verdict::Unversioned, Records::default(), false),
        (Verdict::Unversioned, known, true),
    ];
    for (verdict, records, expected) in cases {
        assert_eq!(verdict.needs_workloads(&records), expected, "{verdict:?} {records:?}");
    }
}

#[test]
fn the_go_operators_annotation_reads_as_a_version_and_text_of_nobody_as_none() {
    assert_eq!(version_on_target(Some(LEGACY_A)), Some(legacy()));
    let edited = target(version_on_target(Some("edited")), "A");
    let plan = decided(Some(&edited), "A", &last_rollout(version(1, "A")), &[]);
    assert_eq!(summary(&plan), (None, Written::Patched, version(1, "A"), Change::Repaired));
}

#[test]
fn a_patch_follows_from_the_read_and_makes_the_wanted_content_of_what_was_there() {
    let mut found = target(Some(version(1, "A")), "A");
    found.content = pairs(&[("KEY", "A"), ("STALE", "x")]);
    let plan = decided(Some(&found), "B", &Records::default(), &[]);
    let Some(TargetWrite::Patch { resource_version, data }) = plan.write else { panic!("{plan:?}") };
    assert_eq!(resource_version, "41");
    assert_eq!(data, data_patch(&found.content, &content("B")));
}

#[test]
fn right_content_is_still_written_where_the_marks_around_it_are_wrong() {
    let a = version(1, "A");
    let another = Ownership::Another { kind: "Certificate".to_owned(), name: "site".to_owned() };
    let cases = [
        ("ours and marked", Ownership::Ours, true, false, false),
        ("its mark stripped", Ownership::Ours, false, false, true),
        ("its owner stripped", Ownership::Nobody, true, false, true),
        ("another's by now", another.clone(), true, false, true),
        ("kept without an owner", Ownership::Nobody, true, true, false),
        ("kept without an owner, from before it was the token Secret", Ownership::Ours, true, true, true),
        ("kept without an owner, not marked yet", Ownership::Nobody, false, true, true),
        ("kept without an owner of ours beside another", another, true, true, false),
    ];
    for (case, ownership, managed_by_us, unowned, is_written) in cases {
        let found = ObservedTarget { ownership, managed_by_us, ..target(Some(a.clone()), "A") };
        let plan = decide(Question {
            target: Some(&found),
            wanted: &content("A"),
            records: &last_rollout(a.clone()),
            marks: &Marks::default(),
            unowned,
            key: &key(),
            nonces: [[NEW; 8], [NAMING; 8]],
        });
        let expected = if is_written {
            (None, Written::Patched, a.clone(), Change::Repaired)
        } else {
            (None, Written::Nothing, a.clone(), Change::Unchanged)
        };
        assert_eq!(summary(&plan), expected, "{case}");
    }
}

#[test]
fn only_another_content_counts_as_new() {
    let new = [Change::Created, Change::Replaced];
    let old = [Change::Unchanged, Change::Repaired, Change::Adopted, Change::Recreated];
    assert!(new.into_iter().all(Change::is_new_content));
    assert!(!old.into_iter().any(Change::is_new_content));
}

#[test]
fn no_plan_prints_a_value() {
    let found = ObservedTarget { content: content("canary-old"), ..target(Some(version(1, "A")), "A") };
    let plan = decided(Some(&found), "canary-new", &Records::default(), &[]);
    assert!(!format!("{plan:?} {found:?}").contains("canary"));
}
