//! Whose a target is, and what type it has.

use super::connection::with_oidc;
use super::*;
use crate::sync::checks::target;

fn observed(ownership: Ownership, managed_by_us: bool, type_: &str) -> ObservedTarget {
    ObservedTarget {
        resource_version: "1".to_owned(),
        type_: type_.to_owned(),
        ownership,
        managed_by_us,
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
