//! `FerrVaultConnection`: where FerrVault is and who asks.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{null_is_absent, null_is_empty};

/// The 36 characters of a UUID. A rule instead of a pattern, for the message.
const UUID_RULE: &str = "self.matches('^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$')";

/// Which of FerrVault's two API shapes a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The self-hosted server: a token is bound to its vault.
    #[default]
    Ferrvault,
    /// The cloud: organization, project and vault are named in each call.
    Cloud,
}

/// How to reach a FerrVault server and how to prove who is asking.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "ferrvault.com",
    version = "v1alpha1",
    kind = "FerrVaultConnection",
    plural = "ferrvaultconnections",
    singular = "ferrvaultconnection",
    shortname = "fvc",
    namespaced,
    status = "FerrVaultConnectionStatus",
    doc = "Where a FerrVault server is and who asks it.",
    derive = "PartialEq",
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.url"),
    printcolumn(name = "Org", type_ = "string", json_path = ".spec.organization"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Reason", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].reason"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = ("!has(self.mode) || self.mode != 'cloud' || (has(self.organization) && self.organization != '')", "organization is required when mode is cloud"),
    validation = ("has(self.tokenSecretRef) != has(self.oidc)", "set exactly one of tokenSecretRef and oidc")
)]
#[schemars(transform = null_is_absent)]
pub struct FerrVaultConnectionSpec {
    /// Base URL of the server, `http://` or `https://`; a path prefix is kept, a trailing slash is tolerated.
    #[schemars(regex(pattern = r"^https?://"))]
    pub url: String,
    /// `ferrvault` for a self-hosted server, `cloud` for the hosted service.
    #[serde(default)]
    pub mode: Mode,
    /// The organization that owns the project; required in mode `cloud`, ignored otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// A long-lived token in a Secret of the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_secret_ref: Option<SecretKeyRef>,
    /// Workload identity: the operator's own service account token is exchanged for a short-lived bearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<Oidc>,
    /// Allow plain `http://` to a host that is neither loopback nor inside the cluster.
    #[serde(default, rename = "allowInsecureHTTP", skip_serializing_if = "Option::is_none")]
    pub allow_insecure_http: Option<bool>,
}

/// A key of a Secret in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Key inside it.
    #[schemars(length(min = 1))]
    pub key: String,
}

/// Exchange of a projected service account token for a FerrVault bearer.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = null_is_absent)]
pub struct Oidc {
    /// The cluster's UUID as registered with FerrVault.
    #[serde(rename = "clusterID")]
    #[x_kube(validation = (UUID_RULE, "clusterID must be a UUID of 36 characters, such as 6f1c8a52-7d0e-4a55-9c52-3f6b1d2e4f60"))]
    pub cluster_id: String,
    /// File with the projected token, inside the operator's pod.
    #[serde(default = "default_token_path")]
    pub token_path: String,
    /// Audience that the token must carry.
    #[serde(default = "default_audience")]
    pub audience: String,
}

fn default_token_path() -> String {
    "/var/run/secrets/ferrvault/token".to_owned()
}

fn default_audience() -> String {
    "https://ferrflow.com".to_owned()
}

/// What the last probe found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = null_is_absent)]
pub struct FerrVaultConnectionStatus {
    /// `Ready`: FerrVault answers and the token can be read.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// End of the last probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checked_at: Option<Time>,
}
