//! What the store keeps, as plain records.
//!
//! The file holds values of secrets as they are and of tokens only the hash: this is a server for trying out, not a vault.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::secret_text::{SecretText, serialize_exposed};

/// The organization, and the project in it, of a vault that was created without naming one.
pub const DEFAULT_PLACE: &str = "default";

/// What a token may do; each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reveals and lists.
    Viewer,
    /// Writes secrets.
    Writer,
    /// Manages vaults, tokens and clusters.
    Admin,
}

impl Role {
    /// The role as it is written on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Writer => "writer",
            Self::Admin => "admin",
        }
    }
}

/// Whose token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TokenKind {
    /// A person's.
    User,
    /// A cluster's: long-lived, or the bearer that an OIDC exchange returns.
    Cluster,
    /// A service account's: bound to one vault and limited in its rate.
    ServiceAccount,
}

impl TokenKind {
    /// What a token of this kind starts with.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::User => "fft_",
            Self::Cluster => "ffclust_",
            Self::ServiceAccount => "fvsat_",
        }
    }
}

/// How far a token reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Scope {
    /// Every vault.
    Server,
    /// The vaults of one organization.
    Organization {
        /// Its name.
        organization: String,
    },
    /// One vault.
    Vault {
        /// Its identifier.
        vault_id: String,
    },
}

/// A vault; its name is unique within organization and project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vault {
    /// UUID.
    pub id: String,
    /// Name, also called slug.
    pub name: String,
    /// Organization it belongs to.
    pub organization: String,
    /// Project within the organization.
    pub project: String,
    /// Environment; told with a reveal and used for nothing.
    pub environment: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A token, without the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// UUID.
    pub id: String,
    /// Whose it is.
    pub kind: TokenKind,
    /// What it may do.
    pub role: Role,
    /// What a person called it.
    pub label: String,
    /// How far it reaches.
    pub scope: Scope,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops being accepted; `None` is never.
    pub expires_at: Option<Timestamp>,
}

/// One secret. A deleted one stays as a record without a value, so that its versions go on and never repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// 1 for the first value, then one more with every write and every deletion.
    pub version: i32,
    /// The value; `None` after a deletion.
    #[serde(serialize_with = "value_exposed")]
    pub value: Option<SecretText>,
    /// When this version was written.
    pub updated_at: Timestamp,
}

/// A cluster whose service accounts may exchange their JWTs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// UUID, chosen by whoever registers it.
    pub id: String,
    /// Organization that its bearers reach.
    pub organization: String,
    /// Name for people.
    pub label: String,
    /// `iss` of its JWTs.
    pub issuer: String,
    /// `aud` that its JWTs must carry.
    pub audience: String,
    /// Where its public keys come from.
    pub keys: KeySource,
}

/// Where the public keys of a cluster come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// A JWKS document, handed over at registration.
    Document(serde_json::Value),
    /// A URL that answers with one, asked at every exchange, so that rotated keys are seen at once.
    Url {
        /// The URL.
        url: String,
        /// PEM certificates that its server is trusted by; none means the roots of the machine.
        ca_pem: Option<String>,
    },
}

// The signature is the one serde asks of `serialize_with`.
#[allow(clippy::ref_option)]
fn value_exposed<S: serde::Serializer>(value: &Option<SecretText>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serialize_exposed(value, serializer),
        None => serializer.serialize_none(),
    }
}
