//! Whose a target is, and what type it has.

use super::connection::with_oidc;
use super::*;
use crate::fixtures::content;
use crate::sync::checks::target;

fn observed(ownership: Ownership, managed_by_us: bool, type_: &str) -> ObservedTarget {
    ObservedTarget {
        resource_version: "1".to_owned(),
        type_: type_.to_owned(),
        ownership,
        managed_by_us,
        immutable: false,
        version: None,
        content: Content::default(),
    }
}

#[test]
fn a_target_is_ours_or_left_alone() {
    use Ownership::{Nobody, Ours};
    use Reason::{InvalidSpec, TargetConflict};
    let another = || Ownership::Another { kind: "Certificate".to_owned(), name: "site".to_owned() };
    let (usual, own) = (a_connection(), connection_with_token_in_target());
    let cases: [(&str, &FerrVaultConnection, Option<ObservedTarget>, Expected); 11] = [
        ("no target", &usual, None, None),
        ("ours", &usual, Some(observed(Ours, true, "Opaque")), None),
        ("ours, its mark stripped", &usual, Some(observed(Ours, false, "Opaque")), None),
        ("handed over by a person", &usual, Some(observed(Nobody, true, "Opaque")), None),
        (
            "nobody's",
            &usual,
            Some(observed(Nobody, false, "Opaque")),
            Some((TargetConflict, "kubectl annotate secret app-env ferrvault.com/managed-by=ferrvault-operator")),
        ),
        (
            "another's",
            &usual,
            Some(observed(another(), false, "Opaque")),
            Some((TargetConflict, "belongs to Certificate \"site\"")),
        ),
        (
            "another's, whatever its mark says",
            &usual,
            Some(observed(another(), true, "Opaque")),
            Some((TargetConflict, "belongs to Certificate \"site\"")),
        ),
        ("the token Secret as a person made it", &own, Some(observed(Nobody, false, "Opaque")), None),
        (
            "the token Secret, another's",
            &own,
            Some(observed(another(), false, "Opaque")),
            Some((TargetConflict, "belongs to")),
        ),
        (
            "ours, of another type",
            &usual,
            Some(observed(Ours, true, "kubernetes.io/tls")),
            Some((InvalidSpec, "set spec.target.type to kubernetes.io/tls")),
        ),
        (
            "another's, of another type: whose it is comes first",
            &usual,
            Some(observed(another(), false, "kubernetes.io/tls")),
            Some((TargetConflict, "belongs to")),
        ),
    ];
    for (case, connection, found, expected) in cases {
        assert_refusal(case, target(&a_resource(), connection, found.as_ref()), expected);
    }
}

#[test]
fn the_token_key_counts_only_where_the_target_is_the_token_secret() {
    assert_eq!(token_key_in_target(&a_resource(), &a_connection()), None);
    assert_eq!(token_key_in_target(&a_resource(), &connection_with_token_in_target()), Some("token"));
    let mut renamed = a_resource();
    renamed.spec.target = Some(named("elsewhere"));
    assert_eq!(token_key_in_target(&renamed, &connection_with_token_in_target()), None);
    let mut identity = connection_with_token_in_target();
    with_oidc(&mut identity, "6f1c8a52-7d0e-4a55-9c52-3f6b1d2e4f60");
    assert_eq!(token_key_in_target(&a_resource(), &identity), None);
}

#[test]
fn of_two_that_keep_one_unowned_secret_the_older_one_keeps_it() {
    let made = |name: &str, at: i64| {
        let mut made = a_resource();
        made.metadata.name = Some(name.to_owned());
        made.metadata.creation_timestamp = Some(crate::fixtures::time(at));
        made
    };
    let unowned = observed(Ownership::Nobody, true, "Opaque");
    let judged = |target: Option<&ObservedTarget>, keepers: &[FerrVaultSecret]| {
        unowned_target(&made("m", 50), target, keepers).map_err(|refusal| {
            assert!(refusal.reason == Reason::TargetConflict && refusal.holds_restarts);
            refusal.message
        })
    };
    let kept_by = |message: Result<(), String>, name: &str| {
        let message = message.unwrap_err();
        assert!(message.contains(&format!("is kept by FerrVaultSecret {name:?}, which is older")), "{message}");
    };
    kept_by(judged(Some(&unowned), &[made("z", 49)]), "z");
    kept_by(judged(Some(&unowned), &[made("b", 49), made("a", 48)]), "a");
    // Made in the same second, the name decides; who is no older than oneself, oneself above all, is no hindrance.
    kept_by(judged(Some(&unowned), &[made("l", 50)]), "l");
    assert_eq!(judged(Some(&unowned), &[made("m", 50), made("n", 50), made("a", 51)]), Ok(()));
    let mut leaving = made("z", 49);
    leaving.metadata.deletion_timestamp = Some(crate::fixtures::time(60));
    assert_eq!(judged(Some(&unowned), &[leaving]), Ok(()));
    // With an owner there is nothing to settle; where there is no Secret, there is.
    assert_eq!(judged(Some(&observed(Ownership::Ours, true, "Opaque")), &[made("z", 49)]), Ok(()));
    kept_by(judged(None, &[made("z", 49)]), "z");
    assert_eq!(judged(None, &[made("n", 50)]), Ok(()));
}

#[test]
fn of_two_that_name_a_missing_secret_the_one_that_kept_it_makes_it_again() {
    let with = |name: &str, at: i64, ready: Option<Reason>| {
        let mut made = a_resource();
        made.metadata.name = Some(name.to_owned());
        made.metadata.creation_timestamp = Some(crate::fixtures::time(at));
        made.spec.target = Some(named("app-env"));
        made.status = ready.map(|reason| {
            let mut status = crate::fixtures::in_order(&crate::fixtures::version(1, "A"));
            for condition in status.conditions.iter_mut().filter(|it| it.type_ == condition::READY) {
                condition.reason = reason.to_string();
            }
            status
        });
        made
    };
    let judged = |resource: &FerrVaultSecret, other: &FerrVaultSecret| {
        let all = [resource.clone(), other.clone()];
        unowned_target(resource, None, &all).map_err(|refusal| refusal.message)
    };
    let cases = [
        ("never written by the older one", with("older", 1, None), false),
        ("kept by the older one, which is suspended", with("older", 1, Some(Reason::Suspended)), true),
        ("kept by the older one, which FerrVault refuses", with("older", 1, Some(Reason::AuthFailed)), true),
        ("the older one was refused it", with("older", 1, Some(Reason::TargetConflict)), false),
    ];
    for (case, older, keeps) in cases {
        let younger = with("younger", 2, Some(if keeps { Reason::TargetConflict } else { Reason::Synced }));
        assert_eq!(judged(&older, &younger).is_ok(), keeps, "{case}");
        let (loser, claim) =
            if keeps { (judged(&younger, &older), "\"older\"") } else { (judged(&older, &younger), "\"younger\"") };
        let message = loser.expect_err(case);
        assert!(message.contains(&format!("{claim}, which has written it before")), "{case}: {message}");
        assert_eq!(judged(&younger, &older).is_ok(), !keeps, "{case}");
    }
    let (mut older, younger) = (with("older", 1, Some(Reason::Synced)), with("younger", 2, Some(Reason::Synced)));
    assert!(judged(&older, &younger).is_ok(), "each says that it has kept it: the older one");
    older.status.as_mut().unwrap().synced_target = Some("another".to_owned());
    assert!(judged(&older, &younger).is_err(), "what it kept was another Secret");
    older.metadata.name = Some("younger".to_owned());
    assert!(judged(&older, &younger).is_ok(), "nobody stands in his own way");

    // Left by the Go operator, which recorded no name: whether this generation was synced, and not refused since.
    let (mut older, mut younger) = (with("older", 1, None), with("younger", 2, Some(Reason::Synced)));
    let status = younger.status.as_mut().unwrap();
    (status.synced_target, status.content_hash) = (None, None);
    assert!(judged(&older, &younger).is_err(), "it has synced, and the older one has not");
    younger.metadata.generation = younger.metadata.generation.map(|generation| generation + 1);
    assert!(judged(&older, &younger).is_ok(), "of which Secret, nobody knows");
    older.status.clone_from(&younger.status);
    assert!(judged(&older, &younger).is_ok());
}

#[test]
fn an_immutable_target_is_refused_only_where_its_content_would_change() {
    let of =
        |immutable| ObservedTarget { immutable, content: content("A"), ..observed(Ownership::Ours, true, "Opaque") };
    let message = "kubectl delete secret app-env -n shop";
    let cases: [(&str, Option<ObservedTarget>, &str, Expected); 4] = [
        ("no target", None, "B", None),
        ("mutable", Some(of(false)), "B", None),
        ("immutable and right", Some(of(true)), "A", None),
        ("immutable and old", Some(of(true)), "B", Some((Reason::SecretWriteFailed, message))),
    ];
    for (case, found, wanted, expected) in cases {
        assert_refusal(case, target_immutable(&a_resource(), found.as_ref(), &content(wanted)), expected);
    }
}
