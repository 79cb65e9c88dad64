//! Kubeconfig files: written for one server, one user and one context, and read into clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use zeroize::Zeroizing;

use super::credentials::write_private;
use super::{Error, Token};

/// No call of a test or demo takes longer on a machine that works; a server that hangs shall fail the test, not stop it.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Writes `folder/name` for `user` with `token` at `server`, verified by `ca_pem`.
pub(super) fn write(
    folder: &Path,
    name: &str,
    server: &str,
    ca_pem: &str,
    user: &str,
    token: &Token,
) -> Result<PathBuf, Error> {
    let ca = base64::engine::general_purpose::STANDARD.encode(ca_pem);
    let text = Zeroizing::new(format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: ferrvault\n  cluster:\n    server: {server}\n    certificate-authority-data: {ca}\n\
         users:\n\
         - name: {user:?}\n  user:\n    token: {token}\n\
         contexts:\n\
         - name: ferrvault\n  context:\n    cluster: ferrvault\n    user: {user:?}\n\
         current-context: ferrvault\n",
        token = token.expose(),
    ));
    write_private(folder, name, &text)
}

/// A client for the cluster of a kubeconfig, in one of its contexts or in the current one.
///
/// It does not retry by itself: whoever waits for something says how long, and an outage shall be seen at once.
pub async fn client(path: &Path, context: Option<&str>) -> Result<kube::Client, Error> {
    // Fails only if somebody installed a provider before, and then there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let unusable = |reason: String| Error::Kubeconfig { path: path.to_owned(), reason };
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unusable(error.to_string()))?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| unusable(error.to_string()))?;
    config.default_retry = false;
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    kube::Client::try_from(config).map_err(|error| unusable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_can_be_read_and_makes_a_client() {
        let folder = tempfile::tempdir().unwrap();
        let made = super::super::credentials::Credentials::write(folder.path()).unwrap();
        let user = "system:serviceaccount:a:b";
        let path = write(folder.path(), "kc", "https://127.0.0.1:6443", &made.ca_pem, user, &made.admin).unwrap();
        let read = Kubeconfig::read_from(&path).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("ferrvault"));
        assert_eq!(read.auth_infos[0].name, user);
        client(&path, None).await.unwrap();
        let error = client(&path, Some("elsewhere")).await.err().unwrap().to_string();
        assert!(error.contains("elsewhere"), "{error}");
    }
}
