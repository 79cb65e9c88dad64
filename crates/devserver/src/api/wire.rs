//! The bodies of all calls, as the server reads and writes them and the client verbs write and read them.
//!
//! Field names and types are the contract: times in RFC 3339, versions of 32 bits, `hits` and `missing` always there.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use crate::secret_text::{SecretText, serialize_exposed};
use crate::store::{KeySource, Role, Scope, Token, TokenKind};

/// Asks for values: `POST /v1/operator/secrets/reveal`.
#[derive(Debug, Serialize, Deserialize)]
pub struct RevealRequest {
    /// Name or identifier of the vault.
    pub vault: String,
    /// Names wanted; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
}

/// Answers a reveal.
#[derive(Debug, Serialize, Deserialize)]
pub struct RevealAnswer {
    /// What was found.
    pub hits: Vec<Hit>,
    /// What was asked for and is not there.
    pub missing: Vec<String>,
}

/// One value found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hit {
    /// Its name.
    pub name: String,
    /// The value.
    #[serde(serialize_with = "serialize_exposed")]
    pub value: SecretText,
    /// Its version.
    pub version: i32,
    /// When it was read.
    pub fetched_at: Timestamp,
}

/// Answers a cloud reveal.
#[derive(Debug, Serialize, Deserialize)]
pub struct CloudRevealAnswer {
    /// What was found.
    #[serde(serialize_with = "values_exposed")]
    pub secrets: BTreeMap<String, SecretText>,
    /// What was asked for and is not there.
    pub missing: Vec<String>,
    /// Where it was found.
    pub vault: CloudVault,
}

/// The vault a cloud reveal read.
#[derive(Debug, Serialize, Deserialize)]
pub struct CloudVault {
    /// Identifier.
    pub id: String,
    /// Name.
    pub name: String,
    /// Environment.
    pub environment: String,
}

/// One secret without its value; also what a write answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct SecretSummary {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: i32,
    /// When that version was written.
    pub updated_at: Timestamp,
}

/// Answers `GET /v1/operator/me`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Me {
    /// Identifier of the token.
    pub token_id: String,
    /// Identifier of its vault.
    pub vault_id: String,
    /// Name of its vault.
    pub vault_slug: String,
    /// What it may do.
    pub role: Role,
    /// What a person called it.
    pub token_label: String,
    /// When it stops being accepted.
    pub expires_at: Option<Timestamp>,
}

/// Creates a secret: `POST /v1/operator/secrets`.
#[derive(Debug, Serialize, Deserialize)]
pub struct CreateSecret {
    /// Name or identifier of the vault.
    pub vault: String,
    /// Name of the secret.
    pub name: String,
    /// The value.
    #[serde(serialize_with = "serialize_exposed")]
    pub value: SecretText,
}

/// Writes a new version: `PUT /v1/operator/secrets/{name}`.
#[derive(Debug, Serialize, Deserialize)]
pub struct UpdateSecret {
    /// Name or identifier of the vault.
    pub vault: String,
    /// The value.
    #[serde(serialize_with = "serialize_exposed")]
    pub value: SecretText,
}

/// Trades the JWT of a service account for a bearer.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExchangeRequest {
    /// Identifier of the registered cluster.
    pub cluster_id: String,
    /// The JWT.
    #[serde(serialize_with = "serialize_exposed")]
    pub token: SecretText,
}

/// The bearer.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExchangeAnswer {
    /// The bearer itself.
    #[serde(serialize_with = "serialize_exposed")]
    pub access_token: SecretText,
    /// When it stops being accepted.
    pub expires_at: Timestamp,
    /// `Bearer`.
    pub token_type: String,
}

/// Creates a vault: `POST /dev/v1/vaults`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateVault {
    /// Name.
    pub name: String,
    /// Organization; `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// Project; `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Environment; `development` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

/// Writes several secrets in one transaction: `PUT /dev/v1/vaults/{id}/secrets`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteSecrets {
    /// Name -> value; whatever else the vault holds is kept.
    #[serde(serialize_with = "values_exposed")]
    pub values: BTreeMap<String, SecretText>,
}

/// Makes a token: `POST /dev/v1/tokens`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Whose.
    pub kind: TokenKind,
    /// What it may do.
    pub role: Role,
    /// What to call it.
    #[serde(default)]
    pub label: String,
    /// How far it reaches.
    pub scope: Scope,
    /// Seconds until it is no longer accepted; absent means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u32>,
}

/// A token just made; the only answer that ever holds one.
#[derive(Debug, Serialize, Deserialize)]
pub struct CreatedToken {
    /// The token itself.
    #[serde(serialize_with = "serialize_exposed")]
    pub token: SecretText,
    /// What is kept about it.
    pub record: Token,
}

/// Registers a cluster: `POST /dev/v1/clusters`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterCluster {
    /// UUID; a new one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Organization that its bearers reach; `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// Name for people.
    #[serde(default)]
    pub label: String,
    /// `iss` of its JWTs.
    pub issuer: String,
    /// `aud` of its JWTs; the usual one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Where its public keys come from.
    pub keys: KeySource,
}

/// The body of a refusal, in either of its shapes.
#[derive(Debug, Deserialize)]
pub struct ErrorBody {
    /// What happened, as `/v1/operator` says it.
    pub error: Option<String>,
    /// What happened, as `/api/v1` says it.
    pub message: Option<String>,
}

fn values_exposed<S: Serializer>(values: &BTreeMap<String, SecretText>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value.expose())))
}
