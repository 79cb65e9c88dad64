//! What a target is while nothing can be written to it, and what that does to an older success.

use ferrvault_api::{FerrVaultSecretStatus, Reason};

use super::*;
use crate::content::Content;
use crate::fixtures::{LEGACY_A, content, key, other_key, resource, version, with_status};
use crate::sync::Ownership;
use crate::version::Version;

fn target(version: Option<Version>, content: Content) -> ObservedTarget {
    ObservedTarget {
        resource_version: "1".to_owned(),
        type_: "Opaque".to_owned(),
        ownership: Ownership::Ours,
        managed_by_us: true,
        immutable: false,
        version,
        content,
    }
}

/// A resource whose generation 3 was synced under version 1 of `A`, whatever generation it has now.
fn synced(generation: i64) -> FerrVaultSecret {
    let mut synced = with_status(FerrVaultSecretStatus {
        content_hash: Some(version(1, "A").as_str().to_owned()),
        observed_generation: Some(3),
        ..FerrVaultSecretStatus::default()
    });
    synced.metadata.generation = Some(generation);
    synced
}

#[test]
fn what_a_target_is_shows_in_its_data_and_in_the_records() {
    let (a, legacy) = (version(1, "A"), Version::parse(LEGACY_A));
    let name = "app-env";
    let cases = [
        ("never made", resource(), None, Fate::NotMade(name)),
        ("made, and gone", synced(3), None, Fate::Gone(name)),
        ("gone under a spec that no pass has synced", synced(4), None, Fate::NotMade(name)),
        ("as its version says", synced(3), Some((Some(a.clone()), "A")), Fate::Kept(name)),
        ("as a newer version says", synced(3), Some((Some(version(2, "B")), "B")), Fate::Kept(name)),
        ("edited", synced(3), Some((Some(a.clone()), "B")), Fate::Edited(name)),
        ("edited before there was a record", resource(), Some((Some(a), "B")), Fate::Edited(name)),
        ("as the Go operator left it", resource(), Some((Some(legacy.clone()), "A")), Fate::Kept(name)),
        ("as the Go operator left it, edited", resource(), Some((Some(legacy), "B")), Fate::Edited(name)),
        ("its annotation stripped", synced(3), Some((None, "A")), Fate::Kept(name)),
        ("its annotation stripped, edited", synced(3), Some((None, "B")), Fate::Edited(name)),
        ("handed over", resource(), Some((None, "B")), Fate::Kept(name)),
    ];
    for (case, resource, found, expected) in cases {
        let found = found.map(|(version, value)| target(version, content(value)));
        assert_eq!(Fate::of(&resource, found.as_ref(), &key()), expected, "{case}");
    }
    let edited = target(Some(version(1, "A")), content("B"));
    assert_eq!(Fate::of(&synced(3), Some(&edited), &other_key()), Fate::Kept(name), "nothing can tell");
}

#[test]
fn only_a_target_that_was_right_and_is_not_makes_an_older_success_untrue() {
    for (fate, is_lost, message) in [
        (Fate::NotMade("x"), false, "away; Secret \"x\" is not made"),
        (Fate::Gone("x"), true, "away; Secret \"x\" was deleted meanwhile and is made again afterwards"),
        (Fate::Edited("x"), true, "away; Secret \"x\" was edited meanwhile and is put right afterwards"),
        (Fate::Kept("x"), false, "away"),
    ] {
        let told = fate.told_in(Refusal::new(Reason::Unreachable, "away"));
        assert_eq!((told.message.as_str(), told.target_is_lost, told.leaves_ready()), (message, is_lost, !is_lost));
    }
}
