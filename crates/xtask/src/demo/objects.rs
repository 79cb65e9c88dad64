//! The objects of the story, as a person would write them.

use serde_json::{Value, json};

/// Where the operator is installed.
pub(super) const SYSTEM: &str = "ferrvault-demo-system";
/// Where the story takes place.
pub(super) const NAMESPACE: &str = "ferrvault-demo";
/// The Helm release.
pub(super) const RELEASE: &str = "ferrvault-operator";
/// The vault. Not one that the README has people make, who may do so on this very server.
pub(super) const VAULT: &str = "demo-shop";
/// The key that is rotated.
pub(super) const ROTATED: &str = "DB_PASSWORD";
/// The key that is not.
pub(super) const STEADY: &str = "DB_USER";
/// The connection.
pub(super) const CONNECTION: &str = "dev";
/// The Secret with the connection's token.
pub(super) const TOKEN_SECRET: &str = "ferrvault-token";
/// The resource.
pub(super) const RESOURCE: &str = "shop";
/// The Secret that the resource keeps.
pub(super) const TARGET: &str = "shop-db";
/// The Deployment that uses it.
pub(super) const WORKLOAD: &str = "web";
/// Its pods.
pub(super) const PODS: usize = 3;
/// How often the operator looks for a rotation: quick enough for somebody who watches, and 20 calls a minute of the 60
/// that FerrVault allows to a token.
pub(super) const REFRESH: &str = "3s";

pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub(super) fn connection(url: &str) -> Value {
    json!({
        "apiVersion": "ferrvault.com/v1alpha1",
        "kind": "FerrVaultConnection",
        "metadata": {"name": CONNECTION, "namespace": NAMESPACE},
        "spec": {"url": url, "tokenSecretRef": {"name": TOKEN_SECRET, "key": "token"}},
    })
}

pub(super) fn resource() -> Value {
    json!({
        "apiVersion": "ferrvault.com/v1alpha1",
        "kind": "FerrVaultSecret",
        "metadata": {"name": RESOURCE, "namespace": NAMESPACE},
        "spec": {
            "connectionRef": {"name": CONNECTION},
            "vault": VAULT,
            "target": {"name": TARGET},
            "refreshInterval": REFRESH,
            "rolloutRestart": [{"kind": "Deployment", "name": WORKLOAD}],
        },
    })
}

/// A Deployment whose pods take their environment from the target. On our own cluster nobody runs the command; on a
/// user's it sleeps and ends when told to.
pub(super) fn workload() -> Value {
    let labels = json!({"app": WORKLOAD});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": WORKLOAD, "namespace": NAMESPACE},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "web",
                        "image": "busybox:1.37",
                        "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"],
                        "envFrom": [{"secretRef": {"name": TARGET}}],
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn the_vaults_that_people_are_told_to_make_are_not_there_already() {
        for guide in ["README.md", "crates/devserver/README.md"] {
            let text = std::fs::read_to_string(repository::root().join(guide)).unwrap();
            let made: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix("ferrvault-dev vault create ")).collect();
            assert!(!made.is_empty(), "{guide}");
            assert!(!made.iter().any(|vault| vault.trim() == VAULT), "{guide}: {made:?}");
        }
    }
}
