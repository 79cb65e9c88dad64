//! The dev server of FerrVault, spoken to over HTTP: what a person sets there, what a test makes go wrong, and what the
//! server was asked. Every value and token that passes through here is noted as a canary.

use std::path::Path;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use xtask::programs::DevServer;

use crate::canaries::Canaries;

/// The name of organization and project where nobody names one.
pub const DEFAULT_PLACE: &str = "default";

/// A running dev server.
pub struct Dev {
    server: DevServer,
    http: reqwest::Client,
    canaries: Canaries,
}

/// A token as it was made.
#[derive(Clone)]
pub struct MadeToken {
    /// Names it, for revoking.
    pub id: String,
    /// The token.
    pub token: String,
}

/// One request that the server was asked, as it remembers it.
#[derive(Clone, Debug, Deserialize)]
pub struct Asked {
    /// Counts up from 1.
    pub seq: u64,
    /// HTTP method.
    pub method: String,
    /// Path with its variable parts named.
    pub route: String,
    /// The vault concerned.
    pub vault: Option<String>,
    /// The names that a reveal asked for.
    pub names: Option<Vec<String>>,
    /// The header `X-FerrVault-Namespace`.
    pub namespace: Option<String>,
    /// Whether a token came with it.
    pub bearer: bool,
    /// The answer.
    pub status: Option<u16>,
}

impl Dev {
    /// Starts one with its data below `folder` and `args` besides. Its rate limit is off unless they say otherwise.
    pub async fn start(folder: &Path, args: &[&str], canaries: &Canaries) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let args = [&["--admin", "127.0.0.1:0", "--rate-limit", "0"], args].concat();
        let server = DevServer::start(folder, &args).await.unwrap();
        canaries.note(server.admin_token());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { server, http, canaries: canaries.clone() }
    }

    /// Base URL of its API.
    pub fn url(&self) -> &str {
        self.server.url()
    }

    /// Ends the process at once: its port refuses connections from now on.
    pub async fn kill(&self) {
        self.server.process().kill().await;
    }

    /// Makes a vault in organization and project `default`; its identifier.
    pub async fn vault(&self, name: &str) -> String {
        self.vault_in(DEFAULT_PLACE, DEFAULT_PLACE, name).await
    }

    /// Makes a vault; its identifier.
    pub async fn vault_in(&self, organization: &str, project: &str, name: &str) -> String {
        let vault = json!({"name": name, "organization": organization, "project": project});
        let made = self.api(Method::POST, "/dev/v1/vaults", Some(vault)).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// Sets several keys of a vault at once.
    pub async fn set(&self, vault_id: &str, values: &[(&str, &str)]) {
        for (_, value) in values {
            self.canaries.note(value);
        }
        let values: serde_json::Map<_, _> =
            values.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        self.api(Method::PUT, &format!("/dev/v1/vaults/{vault_id}/secrets"), Some(json!({"values": values}))).await;
    }

    /// Deletes a key.
    pub async fn unset(&self, vault_id: &str, key: &str) {
        self.api(Method::DELETE, &format!("/v1/operator/secrets/{key}?vault={vault_id}"), None).await;
    }

    /// A service account's token for one vault.
    pub async fn token(&self, vault_id: &str) -> MadeToken {
        self.make_token(json!({"kind": "service-account", "role": "viewer",
                               "scope": {"kind": "vault", "vault_id": vault_id}}))
            .await
    }

    /// A cluster's token for the vaults of one organization.
    pub async fn organization_token(&self, organization: &str) -> MadeToken {
        self.make_token(json!({"kind": "cluster", "role": "viewer",
                               "scope": {"kind": "organization", "organization": organization}}))
            .await
    }

    async fn make_token(&self, request: Value) -> MadeToken {
        let made = self.api(Method::POST, "/dev/v1/tokens", Some(request)).await;
        let token = made["token"].as_str().unwrap().to_owned();
        self.canaries.note(&token);
        MadeToken { id: made["record"]["id"].as_str().unwrap().to_owned(), token }
    }

    /// Stops accepting a token.
    pub async fn revoke(&self, token: &MadeToken) {
        self.api(Method::DELETE, &format!("/dev/v1/tokens/{}", token.id), None).await;
    }

    /// Stops accepting every bearer that an exchange gave out; how many there were.
    pub async fn revoke_bearers(&self, subject: &str) -> usize {
        let tokens = self.api(Method::GET, "/dev/v1/tokens", None).await;
        let of_subject = tokens.as_array().unwrap().iter().filter(|token| token["label"] == subject);
        let mut revoked = 0;
        for token in of_subject {
            self.api(Method::DELETE, &format!("/dev/v1/tokens/{}", token["id"].as_str().unwrap()), None).await;
            revoked += 1;
        }
        revoked
    }

    /// Registers a cluster by its public keys; its identifier.
    pub async fn register_cluster(&self, audience: &str, keys: &Value) -> String {
        let cluster = json!({"issuer": "https://kubernetes.default.svc", "audience": audience,
                             "keys": {"document": keys}});
        let made = self.api(Method::POST, "/dev/v1/clusters", Some(cluster)).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// Makes calls about the vault called `vault` go wrong, until [`Dev::heal`]. `action` is a rule's action.
    pub async fn spoil(&self, vault: &str, action: Value) {
        self.rule(json!({"match": {"vault": vault}, "action": action})).await;
    }

    /// Adds a rule.
    pub async fn rule(&self, rule: Value) {
        self.admin(Method::POST, "/rules", Some(rule)).await;
    }

    /// Takes away what makes calls about this vault go wrong.
    pub async fn heal(&self, vault: &str) {
        let rules = self.admin(Method::GET, "/rules", None).await;
        for rule in rules.as_array().unwrap().iter().filter(|rule| rule["rule"]["match"]["vault"] == vault) {
            self.admin(Method::DELETE, &format!("/rules/{}", rule["id"]), None).await;
        }
    }

    /// What it was asked after request number `after`, as far as it remembers (1,000 requests).
    pub async fn asked(&self, after: u64) -> Vec<Asked> {
        serde_json::from_value(self.admin(Method::GET, &format!("/requests?after={after}"), None).await).unwrap()
    }

    async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        self.call(method, format!("{}{path}", self.server.admin_url().unwrap()), None, body).await
    }

    async fn api(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        self.call(method, format!("{}{path}", self.url()), Some(self.server.admin_token()), body).await
    }

    async fn call(&self, method: Method, url: String, token: Option<&str>, body: Option<Value>) -> Value {
        let mut request = self.http.request(method.clone(), &url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{method} {url}: {status} {text}");
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
    }
}
