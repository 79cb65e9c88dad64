//! Identities other than the administrator's: tokens of service accounts, and kubeconfigs that hold them.

use std::path::{Path, PathBuf};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;

use super::{ControlPlane, Error, Token, client, kubeconfig};

/// A day: longer than any demo that somebody leaves running.
const TOKEN_SECONDS: i64 = 24 * 60 * 60;

/// Asks the API server for a token of a service account. No audience means the API server itself.
pub async fn service_account_token(
    client: &kube::Client,
    namespace: &str,
    name: &str,
    audiences: &[&str],
) -> Result<Token, Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: audiences.iter().map(|&audience| audience.to_owned()).collect(),
            expiration_seconds: Some(TOKEN_SECONDS),
            bound_object_ref: None,
        },
        ..TokenRequest::default()
    };
    let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
    let failed = |source| Error::Api {
        doing: format!("requesting a token of the service account {namespace}/{name}"),
        source: Box::new(source),
    };
    // Taken over and not copied, so that no second one stays in memory.
    let token = answer.map_err(failed)?.status.map(|status| status.token).unwrap_or_default();
    Ok(Token::new(token))
}

/// Writes a kubeconfig into `folder` that holds a new token of a service account, for the cluster that `cluster` is the
/// entry of.
pub async fn kubeconfig_for_service_account(
    client: &kube::Client,
    cluster: &serde_json::Value,
    folder: &Path,
    namespace: &str,
    name: &str,
) -> Result<PathBuf, Error> {
    let token = service_account_token(client, namespace, name, &[]).await?;
    let user = format!("system:serviceaccount:{namespace}:{name}");
    let file = format!("{namespace}-{name}-{:08x}.kubeconfig", fastrand::u32(..));
    kubeconfig::write(folder, &file, cluster, &user, &token)
}

impl ControlPlane {
    /// A token of a service account, for the API server (no audiences) or for somebody else.
    pub async fn service_account_token(&self, namespace: &str, name: &str, audiences: &[&str]) -> Result<Token, Error> {
        service_account_token(&client(self.kubeconfig()).await?, namespace, name, audiences).await
    }

    /// Writes a kubeconfig that holds a new token of a service account, and nothing more than that account may do.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        self.kubeconfig_for_service_account_at(namespace, name, &self.server()).await
    }

    /// The same for a server at another URL, such as a proxy on 127.0.0.1 in front of the API server.
    pub async fn kubeconfig_for_service_account_at(
        &self,
        namespace: &str,
        name: &str,
        server: &str,
    ) -> Result<PathBuf, Error> {
        let cluster = kubeconfig::cluster_entry(server, self.ca_pem());
        let client = client(self.kubeconfig()).await?;
        kubeconfig_for_service_account(&client, &cluster, self.folder(), namespace, name).await
    }

    /// The administrator's kubeconfig for a server at another URL, such as a proxy in front of the API server.
    pub fn admin_kubeconfig_at(&self, server: &str) -> Result<PathBuf, Error> {
        let text = std::fs::read_to_string(self.kubeconfig())
            .map_err(|source| Error::File { path: self.kubeconfig().to_owned(), source })?;
        let name = format!("admin-{:08x}.kubeconfig", fastrand::u32(..));
        super::credentials::write_private(self.folder(), &name, &text.replace(&self.server(), server))
    }
}
