//! Kubeconfig files: written for one server, one user and one context, and read into clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::credentials::write_private;
use super::{Error, Token};

/// No call of a test or demo takes longer on a machine that works; a server that hangs shall fail the test, not stop it.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The cluster entry of a kubeconfig: a server and the CA that it verifies with.
pub(super) fn cluster_entry(server: &str, ca_pem: &str) -> Value {
    let ca = base64::engine::general_purpose::STANDARD.encode(ca_pem);
    json!({"server": server, "certificate-authority-data": ca})
}

/// Writes `folder/name`: one cluster, one user, one context. JSON is YAML, and needs no quoting rules of ours.
pub(super) fn write(folder: &Path, name: &str, cluster: &Value, user: &str, token: &Token) -> Result<PathBuf, Error> {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "ferrvault", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token.expose()}}],
        "contexts": [{"name": "ferrvault", "context": {"cluster": "ferrvault", "user": user}}],
        "current-context": "ferrvault",
    });
    write_private(folder, name, &Zeroizing::new(format!("{kubeconfig:#}\n")))
}

/// A client for the cluster of the kubeconfig at `path`.
pub async fn client(path: &Path) -> Result<kube::Client, Error> {
    let unusable = |reason: String| Error::Kubeconfig { path: path.to_owned(), reason };
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unusable(error.to_string()))?;
    connect(kubeconfig, None).await.map_err(unusable)
}

/// A client for one context of the user's own kubeconfig, and the cluster entry of that context.
pub async fn users_own(context: &str) -> Result<(kube::Client, Value), Error> {
    let unusable = |reason: String| Error::Kubeconfig { path: PathBuf::from("of this user"), reason };
    let kubeconfig = Kubeconfig::read().map_err(|error| unusable(error.to_string()))?;
    let named = kubeconfig.contexts.iter().find(|entry| entry.name == context);
    let Some(named) = named.and_then(|entry| entry.context.as_ref()) else {
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|entry| entry.name.as_str()).collect();
        return Err(unusable(format!("it has no context {context:?}; it has {}", known.join(", "))));
    };
    let cluster = kubeconfig.clusters.iter().find(|entry| entry.name == named.cluster);
    let Some(cluster) = cluster.and_then(|entry| entry.cluster.as_ref()) else {
        return Err(unusable(format!(
            "its context {context:?} names the cluster {:?}, which is missing",
            named.cluster
        )));
    };
    let entry = serde_json::to_value(cluster).map_err(|error| unusable(error.to_string()))?;
    Ok((connect(kubeconfig, Some(context)).await.map_err(unusable)?, entry))
}

/// The client does not retry by itself: whoever waits for something says how long, and an outage shall be seen at once.
async fn connect(kubeconfig: Kubeconfig, context: Option<&str>) -> Result<kube::Client, String> {
    // Fails only if somebody installed a provider before, and then there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| error.to_string())?;
    config.default_retry = false;
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    kube::Client::try_from(config).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::credentials::Credentials;
    use super::*;

    #[tokio::test]
    async fn what_is_written_can_be_read_and_makes_a_client() {
        let folder = tempfile::tempdir().unwrap();
        let made = Credentials::write(folder.path()).unwrap();
        let user = "system:serviceaccount:a:b";
        let cluster = cluster_entry("https://127.0.0.1:6443", &made.ca_pem);
        let path = write(folder.path(), "kc", &cluster, user, &made.admin).unwrap();
        let read = Kubeconfig::read_from(&path).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("ferrvault"));
        assert_eq!(read.auth_infos[0].name, user);
        client(&path).await.unwrap();
    }

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("kc");
        let error = client(&missing).await.err().unwrap().to_string();
        assert!(error.contains(missing.to_str().unwrap()), "{error}");
    }
}
