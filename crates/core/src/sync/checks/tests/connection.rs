//! What a connection cannot mean, and what its mode asks of the resource.

use super::*;
use crate::sync::checks::connection;

fn oidc(cluster_id: &str) -> Oidc {
    Oidc {
        cluster_id: cluster_id.to_owned(),
        token_path: "/var/run/secrets/ferrvault/token".to_owned(),
        audience: "https://ferrflow.com".to_owned(),
    }
}

pub(super) fn with_oidc(connection: &mut FerrVaultConnection, cluster_id: &str) {
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
