//! One row per way in which a resource, a connection or a target is refused, and beside it what is just good enough.

use ferrvault_api::connection::Oidc;
use ferrvault_api::secret::{Selector, Target};

use super::*;
use crate::content::Content;
use crate::fixtures::{connection as a_connection, connection_with_token_in_target, resource as a_resource, workload};

mod connection;
mod target;

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

#[test]
fn lists_beyond_what_a_pass_can_bear_are_refused_and_say_the_limit() {
    fn affix() -> ferrvault_api::secret::Transform {
        ferrvault_api::secret::Transform { type_: "suffix".to_owned(), ..ferrvault_api::secret::Transform::default() }
    }
    let refused = |change: fn(&mut FerrVaultSecret)| {
        let mut long = a_resource();
        change(&mut long);
        super::resource(&long).unwrap_err()
    };
    let transforms = refused(|it| it.spec.transforms = vec![affix(); 65]);
    let workloads = refused(|it| it.spec.rollout_restart = vec![workload("api"); 257]);
    let names = refused(|it| it.spec.selector = Some(Selector { names: vec!["A".to_owned(); 16_385] }));
    for (refusal, said) in [
        (transforms, "spec.transforms has 65 entries, at most 64 are taken; split the resource"),
        (workloads, "spec.rolloutRestart has 257 entries, at most 256 are taken; split the resource"),
        (names, "spec.selector.names has 16385 entries, at most 16384 are taken; split the resource"),
    ] {
        assert_eq!((refusal.reason, refusal.message.as_str()), (Reason::InvalidSpec, said));
    }
    let mut at_the_limit = a_resource();
    at_the_limit.spec.transforms = vec![affix(); 64];
    assert_eq!(super::resource(&at_the_limit), Ok(()));
}

#[test]
fn what_comes_first_is_told_and_what_holds_a_restart_holds_it_wherever_it_comes() {
    let holds = |edit: Edit<FerrVaultSecret>| {
        let mut edited = a_resource();
        edit(&mut edited);
        let refusal = super::resource(&edited).unwrap_err();
        (refusal.message, refusal.holds_restarts)
    };
    let (message, held) = holds(|of| of.spec.vault.clear());
    assert!(message.contains("spec.vault") && !held, "{message}");
    let (message, held) = holds(|of| {
        of.spec.vault.clear();
        of.spec.target = Some(named("a/../x"));
    });
    assert!(message.contains("spec.vault") && held, "{message}");
    let (message, held) = holds(|of| {
        of.spec.transforms = vec![ferrvault_api::secret::Transform::default(); MAX_TRANSFORMS + 1];
        of.spec.rollout_restart = vec![workload("api"); MAX_WORKLOADS + 1];
    });
    assert!(message.contains("spec.transforms") && held, "{message}");
    let (message, held) = holds(|of| {
        of.spec.transforms = vec![ferrvault_api::secret::Transform::default(); MAX_TRANSFORMS + 1];
        of.spec.rollout_restart = vec![workload("api"); MAX_WORKLOADS];
    });
    assert!(message.contains("spec.transforms") && !held, "{message}");
}

#[test]
fn types_that_grant_rights_are_known() {
    for type_ in ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1"] {
        assert!(grants_rights(type_), "{type_}");
    }
    for type_ in ["", "Opaque", "kubernetes.io/tls"] {
        assert!(!grants_rights(type_), "{type_}");
    }
}
