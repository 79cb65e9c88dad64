//! What counts as a version, in an annotation, in a status and on workloads.

use ferrvault_api::secret::RolloutState;

use super::*;
use crate::fixtures::{LEGACY_A, rollout, version, workload};

#[test]
fn an_annotation_is_a_version_when_an_operator_wrote_it() {
    let ours = version(1, "A");
    let cases = [
        ("none", None, None),
        ("ours", Some(ours.as_str()), Some(ours.clone())),
        ("the Go operator's", Some(LEGACY_A), Some(Version::parse(LEGACY_A))),
        ("emptied", Some(""), None),
        ("edited", Some("edited"), None),
        ("cut", ours.as_str().get(..60), None),
    ];
    for (case, annotation, expected) in cases {
        assert_eq!(version_on_target(annotation), expected, "{case}");
    }
    let legacy_in_capitals = LEGACY_A.to_uppercase();
    assert_eq!(version_on_target(Some(&legacy_in_capitals)), None);
}

#[test]
fn a_status_is_read_for_every_version_it_knows() {
    let (a, b) = (version(1, "A"), version(2, "B"));
    let status = FerrVaultSecretStatus {
        last_rollout_hash: Some(a.to_string()),
        content_hash: Some(b.to_string()),
        rollouts: vec![
            rollout("api", Some(&b), RolloutState::Restarted),
            rollout("worker", None, RolloutState::Waiting),
            rollout("cron", Some(&a), RolloutState::Failed),
        ],
        ..FerrVaultSecretStatus::default()
    };
    let records = Records::of(Some(&status));
    assert_eq!(records, Records { last_rollout: Some(a.clone()), content: Some(b.clone()), rollouts: vec![b, a] });
    assert!(!records.is_empty());
}

#[test]
fn a_status_without_versions_is_a_resource_that_never_wrote() {
    let emptied = FerrVaultSecretStatus {
        last_rollout_hash: Some(String::new()),
        content_hash: Some(String::new()),
        rollouts: vec![rollout("api", None, RolloutState::Waiting)],
        ..FerrVaultSecretStatus::default()
    };
    for status in [None, Some(FerrVaultSecretStatus::default()), Some(emptied)] {
        let records = Records::of(status.as_ref());
        assert_eq!(records, Records::default());
        assert!(records.is_empty());
    }
}

#[test]
fn any_single_version_is_a_trace() {
    let a = || Some(version(1, "A"));
    let cases = [
        Records { last_rollout: a(), ..Records::default() },
        Records { content: a(), ..Records::default() },
        Records { rollouts: a().into_iter().collect(), ..Records::default() },
    ];
    for records in cases {
        assert!(!records.is_empty(), "{records:?}");
    }
}

#[test]
fn a_record_that_somebody_edited_is_kept_as_evidence() {
    let status = FerrVaultSecretStatus { last_rollout_hash: Some("edited".to_owned()), ..Default::default() };
    assert_eq!(Records::of(Some(&status)).last_rollout, Some(Version::parse("edited")));
}

#[test]
fn a_workload_that_cannot_be_read_counts_as_one_with_a_version_that_nobody_knows() {
    let present =
        |mark: Option<Version>| WorkloadState::Present { resource_version: "1".to_owned(), mark, paused: false };
    let a = version(1, "A");
    let marks = Marks::of(&[
        (workload("api"), present(Some(a.clone()))),
        (workload("worker"), present(None)),
        (workload("cron"), WorkloadState::Missing),
    ]);
    assert_eq!(marks, Marks { seen: vec![a.clone()] });

    let marks = Marks::of(&[
        (workload("api"), present(Some(a.clone()))),
        (workload("worker"), WorkloadState::Unreadable("timed out".to_owned())),
    ]);
    assert_eq!(marks.seen.len(), 2);
    assert_eq!(marks.seen[0], a);
    assert_eq!(marks.seen[1].form(), Form::Foreign);
}
