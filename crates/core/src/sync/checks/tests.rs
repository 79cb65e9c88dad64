//! One row per way in which a resource, a connection or a target is refused, and beside it what is just good enough.

use ferrvault_api::connection::Oidc;
use ferrvault_api::secret::{Selector, Target};

use super::*;
use crate::content::Content;
use crate::fixtures::{connection as a_connection, connection_with_token_in_target, resource as a_resource, workload};

type Edit<T> = fn(&mut T);

/// What a refusal has to say; `None` stands for no refusal.
type Expected = Option<(Reason, &'static str)>;

#[track_caller]
fn assert_refusal<T>(case: &str, found: Result<T, Refusal>, expected: Expected) {
    match (found, expected) {
        (Ok(_), None) => {}
        (Ok(_), Some(_)) => panic!("{case}: not refused"),
        (Err(refusal), None) => panic!("{case}: refused: {refusal:?}"),
        (Err(refusal), Some((reason, fragment))) => {
            assert_eq!(refusal.reason, reason, "{case}");
            assert!(refusal.message.contains(fragment), "{case}: {}", refusal.message);
            assert!(!refusal.message.contains('\n'), "{case}: one line: {}", refusal.message);
            assert!(refusal.missing_keys.is_empty(), "{case}");
        }
    }
}

fn named(name: impl Into<String>) -> Target {
    Target { name: Some(name.into()), type_: None }
}

fn typed(type_: &str) -> Target {
    Target { name: None, type_: Some(type_.to_owned()) }
}

fn selecting(names: &[&str]) -> Selector {
    Selector { names: names.iter().map(|name| (*name).to_owned()).collect() }
}

#[test]
fn a_resource_is_refused_for_what_it_cannot_mean() {
    use Reason::InvalidSpec;
    let cases: [(&str, Edit<FerrVaultSecret>, Expected); 33] = [
        ("nothing but what is required", |_| {}, None),
        ("no connection named", |r| r.spec.connection_ref.name.clear(), Some((InvalidSpec, "spec.connectionRef.name"))),
        ("no vault named", |r| r.spec.vault.clear(), Some((InvalidSpec, "spec.vault"))),
        ("an interval", |r| r.spec.refresh_interval = Some("1h30m".to_owned()), None),
        ("no scheduled refresh", |r| r.spec.refresh_interval = Some("0s".to_owned()), None),
        (
            "a negative interval",
            |r| r.spec.refresh_interval = Some("-1s".to_owned()),
            Some((InvalidSpec, "spec.refreshInterval: \"-1s\" is negative")),
        ),
        (
            "an interval that is none",
            |r| r.spec.refresh_interval = Some("abc".to_owned()),
            Some((InvalidSpec, "spec.refreshInterval: \"abc\"")),
        ),
        (
            "an empty interval",
            |r| r.spec.refresh_interval = Some(String::new()),
            Some((InvalidSpec, "spec.refreshInterval")),
        ),
        ("no names selected", |r| r.spec.selector = Some(selecting(&[])), None),
        ("a name selected twice", |r| r.spec.selector = Some(selecting(&["A", "A"])), None),
        (
            "an empty name selected",
            |r| r.spec.selector = Some(selecting(&["A", ""])),
            Some((InvalidSpec, "spec.selector.names[1]")),
        ),
        ("a blank name selected", |r| r.spec.selector = Some(selecting(&[" \t"])), Some((InvalidSpec, "names[0]"))),
        ("a target with a name of its own", |r| r.spec.target = Some(named("a.b-c.1")), None),
        ("an empty target name means the resource's own", |r| r.spec.target = Some(named("")), None),
        (
            "a target name in capitals",
            |r| r.spec.target = Some(named("App")),
            Some((InvalidSpec, "spec.target.name \"App\"")),
        ),
        (
            "a target name with an underscore",
            |r| r.spec.target = Some(named("a_b")),
            Some((InvalidSpec, "spec.target.name")),
        ),
        ("a target name that begins with a dash", |r| r.spec.target = Some(named("-a")), Some((InvalidSpec, "\"-a\""))),
        ("a target name that ends with a dash", |r| r.spec.target = Some(named("a-")), Some((InvalidSpec, "\"a-\""))),
        (
            "a target name with a dash beside a dot",
            |r| r.spec.target = Some(named("a-.b")),
            Some((InvalidSpec, "\"a-.b\"")),
        ),
        ("a target name with two dots", |r| r.spec.target = Some(named("a..b")), Some((InvalidSpec, "\"a..b\""))),
        ("a target name with a line break", |r| r.spec.target = Some(named("a\nb")), Some((InvalidSpec, "\"a\\nb\""))),
        ("a target name of 253 characters", |r| r.spec.target = Some(named("a".repeat(253))), None),
        (
            "a target name of 254 characters",
            |r| r.spec.target = Some(named("a".repeat(254))),
            Some((InvalidSpec, "at most 253 characters")),
        ),
        ("a type that is anybody's", |r| r.spec.target = Some(typed("kubernetes.io/tls")), None),
        ("an empty type means Opaque", |r| r.spec.target = Some(typed("")), None),
        (
            "a type that is a service account's token",
            |r| r.spec.target = Some(typed("kubernetes.io/service-account-token")),
            Some((InvalidSpec, "kubernetes.io/service-account-token is refused")),
        ),
        (
            "a type that lets nodes join",
            |r| r.spec.target = Some(typed("bootstrap.kubernetes.io/token")),
            Some((InvalidSpec, "bootstrap.kubernetes.io/token is refused")),
        ),
        (
            "a type that is a Helm release",
            |r| r.spec.target = Some(typed("helm.sh/release.v1")),
            Some((InvalidSpec, "helm.sh/release.v1 is refused")),
        ),
        ("a workload", |r| r.spec.rollout_restart = vec![workload("api")], None),
        ("a workload listed twice", |r| r.spec.rollout_restart = vec![workload("api"), workload("api")], None),
        (
            "a workload without a name",
            |r| r.spec.rollout_restart = vec![workload("api"), workload("")],
            Some((InvalidSpec, "spec.rolloutRestart[1].name")),
        ),
        (
            "a workload whose name would be another path",
            |r| r.spec.rollout_restart = vec![workload("api/status")],
            Some((InvalidSpec, "spec.rolloutRestart[0].name")),
        ),
        (
            "several faults: the first of the list is told",
            |r| {
                r.spec.vault.clear();
                r.spec.target = Some(named("App"));
                r.spec.rollout_restart = vec![workload("")];
            },
            Some((InvalidSpec, "spec.vault")),
        ),
    ];
    for (case, edit, expected) in cases {
        let mut edited = a_resource();
        edit(&mut edited);
        assert_refusal(case, resource(&edited), expected);
    }
}

#[test]
fn only_a_resource_that_says_so_is_suspended() {
    let suspended_as = |suspend| {
        let mut edited = a_resource();
        edited.spec.suspend = suspend;
        suspended(&edited).map(|refusal| refusal.reason)
    };
    assert_eq!([None, Some(false)].map(suspended_as), [None, None]);
    assert_eq!(suspended_as(Some(true)), Some(Reason::Suspended));
}

fn oidc(cluster_id: &str) -> Oidc {
    Oidc {
        cluster_id: cluster_id.to_owned(),
        token_path: "/var/run/secrets/ferrvault/token".to_owned(),
        audience: "https://ferrflow.com".to_owned(),
    }
}

fn with_oidc(connection: &mut FerrVaultConnection, cluster_id: &str) {
    connection.spec.token_secret_ref = None;
    connection.spec.oidc = Some(oidc(cluster_id));
}

#[test]
fn a_connection_is_refused_for_what_it_cannot_mean() {
    use Reason::{InvalidConnection, MissingCloudScope};
    const ID: &str = "6f1c8a52-7d0e-4a55-9c52-3f6b1d2e4f60";
    type Both = (FerrVaultSecret, FerrVaultConnection);
    let cases: [(&str, Edit<Both>, Expected); 17] = [
        ("a token", |_| {}, None),
        ("an identity", |(_, c)| with_oidc(c, ID), None),
        ("an identity in capitals", |(_, c)| with_oidc(c, &ID.to_uppercase()), None),
        ("both", |(_, c)| c.spec.oidc = Some(oidc(ID)), Some((InvalidConnection, "both tokenSecretRef and oidc"))),
        (
            "neither",
            |(_, c)| c.spec.token_secret_ref = None,
            Some((InvalidConnection, "neither tokenSecretRef nor oidc")),
        ),
        ("a cluster id of 35 characters", |(_, c)| with_oidc(c, &ID[1..]), Some((InvalidConnection, "clusterID"))),
        (
            "a cluster id of 37 characters",
            |(_, c)| with_oidc(c, &format!("{ID}0")),
            Some((InvalidConnection, "36 characters")),
        ),
        (
            "a cluster id with another letter",
            |(_, c)| with_oidc(c, &ID.replace('f', "g")),
            Some((InvalidConnection, "clusterID")),
        ),
        ("36 dashes", |(_, c)| with_oidc(c, &"-".repeat(36)), Some((InvalidConnection, "clusterID"))),
        ("36 digits", |(_, c)| with_oidc(c, &"0".repeat(36)), Some((InvalidConnection, "clusterID"))),
        (
            "cloud with everything",
            |(r, c)| {
                c.spec.mode = Mode::Cloud;
                c.spec.organization = Some("acme".to_owned());
                r.spec.project = Some("web".to_owned());
            },
            None,
        ),
        (
            "cloud without an organization",
            |(r, c)| {
                c.spec.mode = Mode::Cloud;
                r.spec.project = Some("web".to_owned());
            },
            Some((MissingCloudScope, "spec.organization of the connection")),
        ),
        (
            "cloud with an empty organization",
            |(r, c)| {
                c.spec.mode = Mode::Cloud;
                c.spec.organization = Some(String::new());
                r.spec.project = Some("web".to_owned());
            },
            Some((MissingCloudScope, "spec.organization of the connection")),
        ),
        (
            "cloud without a project",
            |(_, c)| {
                c.spec.mode = Mode::Cloud;
                c.spec.organization = Some("acme".to_owned());
            },
            Some((MissingCloudScope, "so spec.project is required")),
        ),
        (
            "cloud with an empty project",
            |(r, c)| {
                c.spec.mode = Mode::Cloud;
                c.spec.organization = Some("acme".to_owned());
                r.spec.project = Some(String::new());
            },
            Some((MissingCloudScope, "so spec.project is required")),
        ),
        (
            "self-hosted, with a scope that is ignored",
            |(r, c)| {
                c.spec.organization = Some(String::new());
                r.spec.project = Some(String::new());
            },
            None,
        ),
        (
            "several faults: what nobody can use comes first",
            |(_, c)| {
                c.spec.mode = Mode::Cloud;
                c.spec.token_secret_ref = None;
            },
            Some((InvalidConnection, "neither")),
        ),
    ];
    for (case, edit, expected) in cases {
        let mut both = (a_resource(), a_connection());
        edit(&mut both);
        let (resource, found) = both;
        assert_refusal(case, connection(&resource, Some(&found)), expected);
    }
}

#[test]
fn a_connection_that_is_not_there_is_named_with_its_namespace() {
    let expected = Some((Reason::ConnectionNotFound, "no FerrVaultConnection \"main\" in namespace \"shop\""));
    assert_refusal("not there", connection(&a_resource(), None), expected);
}

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
