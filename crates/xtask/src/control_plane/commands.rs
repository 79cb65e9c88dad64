//! The command line of each program of the control plane. Pure: nothing is started here.

use std::path::Path;

use super::credentials::Credentials;
use super::{Binaries, Component, Error};
use crate::process::Launch;

/// What a node of kwok's is called.
pub(super) const NODE: &str = "kwok-node";

/// Audit at the level of metadata: who asked for what and the answer's code, never a body, because bodies hold secrets.
/// The stage of arrival is left out, so that each request counts once, and a watch once more when it ends.
pub(super) const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\n\
    kind: Policy\n\
    omitStages: [RequestReceived]\n\
    rules:\n\
    - level: Metadata\n";

/// The ports of one control plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) etcd_peer: u16,
    pub(super) apiserver: u16,
    pub(super) kwok: u16,
}

impl Ports {
    /// The URL of the API server.
    pub(super) fn server(self) -> String {
        format!("https://127.0.0.1:{}", self.apiserver)
    }
}

/// A launch of `component` with its log in `folder`.
fn launch(binaries: &Binaries, component: Component, folder: &Path) -> Result<Launch, Error> {
    Ok(Launch::new(component.name(), binaries.path(component)?, folder.join(format!("{component}.log"))))
}

pub(super) fn etcd(binaries: &Binaries, folder: &Path, ports: Ports) -> Result<Launch, Error> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    Ok(launch(binaries, Component::Etcd, folder)?
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .arg(format!("--listen-client-urls={client}"))
        .arg(format!("--advertise-client-urls={client}"))
        .arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"))
        .arg(format!("--initial-cluster=default={peer}"))
        .arg("--log-level=warn")
        // The data is thrown away anyway; waiting for the disk would only make everything slower.
        .arg("--unsafe-no-fsync"))
}

pub(super) fn apiserver(
    binaries: &Binaries,
    folder: &Path,
    ports: Ports,
    credentials: &Credentials,
    audit_log: Option<&Path>,
    extra: &[String],
) -> Result<Launch, Error> {
    let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    let mut launch = launch(binaries, Component::KubeApiserver, folder)?
        .arg(format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd))
        .arg("--bind-address=127.0.0.1")
        .arg("--advertise-address=127.0.0.1")
        .arg(format!("--secure-port={}", ports.apiserver))
        .arg(file("tls-cert-file", &credentials.serving_certificate))
        .arg(file("tls-private-key-file", &credentials.serving_key))
        .arg(file("cert-dir", &folder.join("apiserver")))
        .arg(file("token-auth-file", &credentials.tokens))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .arg(file("service-account-key-file", &credentials.service_account_public_key))
        .arg(file("service-account-signing-key-file", &credentials.service_account_key))
        .arg("--authorization-mode=RBAC")
        .arg("--service-cluster-ip-range=10.0.0.0/24")
        // It would put a token volume into every pod; kwok's pods have no use for one.
        .arg("--disable-admission-plugins=ServiceAccount");
    if let Some(log) = audit_log {
        launch =
            launch.arg(file("audit-log-path", log)).arg(file("audit-policy-file", &folder.join("audit-policy.yaml")));
    }
    Ok(launch.args(extra))
}

pub(super) fn controller_manager(
    binaries: &Binaries,
    folder: &Path,
    kubeconfig: &Path,
    credentials: &Credentials,
) -> Result<Launch, Error> {
    Ok(launch(binaries, Component::KubeControllerManager, folder)?
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--service-account-private-key-file={}", credentials.service_account_key.display()))
        // Node lifecycle stays: it takes the not-ready taint off a new node.
        .arg("--controllers=*,-nodeipam")
        .arg("--use-service-account-credentials=false")
        .arg("--leader-elect=false")
        // Its default of 20 requests a second would be what a test of many objects measures.
        .arg("--kube-api-qps=200")
        .arg("--kube-api-burst=400")
        .arg(format!("--cert-dir={}", folder.join("controller-manager").display()))
        .arg("--secure-port=0"))
}

pub(super) fn scheduler(binaries: &Binaries, folder: &Path, kubeconfig: &Path) -> Result<Launch, Error> {
    Ok(launch(binaries, Component::KubeScheduler, folder)?
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg("--leader-elect=false")
        .arg(format!("--cert-dir={}", folder.join("scheduler").display()))
        .arg("--secure-port=0"))
}

pub(super) fn kwok(binaries: &Binaries, folder: &Path, kubeconfig: &Path, ports: Ports) -> Result<Launch, Error> {
    Ok(launch(binaries, Component::Kwok, folder)?
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg("--manage-all-nodes=true")
        .arg("--node-ip=127.0.0.1")
        .arg(format!("--node-port={}", ports.kwok))
        .arg(format!("--server-address=127.0.0.1:{}", ports.kwok))
        // Its own configuration in the user's home must not get in.
        .env("KWOK_WORKDIR", folder.join("kwok")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_policy_never_asks_for_bodies() {
        assert!(AUDIT_POLICY.contains("level: Metadata"));
        assert!(!AUDIT_POLICY.contains("level: Request"));
    }
}
