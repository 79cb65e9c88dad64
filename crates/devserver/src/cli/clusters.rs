//! The verbs about clusters: whose JWTs may be exchanged for a bearer.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use reqwest::Method;

use super::CliError;
use super::client::Client;
use crate::api::wire::RegisterCluster;
use crate::data_dir::{FileError, read};
use crate::store::KeySource;

#[derive(Subcommand)]
pub(super) enum ClusterVerb {
    /// Register a cluster, or register it anew
    ///
    /// Its service accounts can then exchange a JWT for a bearer that reads the vaults of the organization. Use the printed
    /// identifier as spec.oidc.clusterID of a FerrVaultConnection.
    #[command(after_help = "Example:
  kubectl get --raw /openid/v1/jwks > jwks.json
  ferrvault-dev cluster register --issuer https://kubernetes.default.svc --jwks-file jwks.json")]
    Register {
        /// UUID of the cluster; a new one is made without
        #[arg(long, value_name = "UUID")]
        id: Option<String>,
        /// The `iss` of its JWTs: the --service-account-issuer of its API server
        #[arg(long, value_name = "URL")]
        issuer: String,
        /// The `aud` that its JWTs must carry; `https://ferrflow.com` without
        #[arg(long, value_name = "AUDIENCE")]
        audience: Option<String>,
        /// Organization whose vaults its bearers read; `default` without
        #[arg(long, value_name = "NAME")]
        organization: Option<String>,
        /// Name for people
        #[arg(long, default_value = "")]
        label: String,
        /// JWKS document with its public keys
        #[arg(long, value_name = "FILE", required_unless_present = "jwks_url", conflicts_with = "jwks_url")]
        jwks_file: Option<PathBuf>,
        /// URL of its JWKS document, asked at every exchange
        #[arg(long, value_name = "URL")]
        jwks_url: Option<String>,
        /// PEM file with the certificates that the server of --jwks-url is trusted by; needed for https
        #[arg(long, value_name = "FILE", requires = "jwks_url")]
        jwks_ca: Option<PathBuf>,
    },
    /// List the clusters
    List,
    /// Forget a cluster
    Remove {
        /// Its UUID
        id: String,
    },
}

pub(super) async fn run(verb: ClusterVerb, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let path = ["dev", "v1", "clusters"];
    match verb {
        ClusterVerb::Register { id, issuer, audience, organization, label, jwks_file, jwks_url, jwks_ca } => {
            let keys = match (jwks_file, jwks_url) {
                (Some(file), _) => KeySource::Document(document(&file)?),
                (None, Some(url)) => KeySource::Url { url, ca_pem: jwks_ca.as_deref().map(existing).transpose()? },
                (None, None) => return Err(CliError::Usage("give --jwks-file or --jwks-url".to_owned())),
            };
            let request = RegisterCluster { id, organization, label, issuer, audience, keys };
            let registered: BTreeMap<String, String> = client.send_json(Method::POST, &path, &request).await?;
            let field = |name: &str| registered.get(name).map(String::as_str).unwrap_or_default();
            writeln!(out, "cluster {} registered for the audience {}", field("id"), field("audience"))?;
        }
        ClusterVerb::List => {
            let clusters: Vec<BTreeMap<String, String>> = client.get(&path, &[]).await?;
            writeln!(out, "{:36}  ORGANIZATION, ISSUER, AUDIENCE, LABEL", "ID")?;
            for cluster in clusters {
                let field = |name: &str| cluster.get(name).map(String::as_str).unwrap_or_default();
                let rest = ["organization", "issuer", "audience", "label"].map(field).join(", ");
                writeln!(out, "{:36}  {rest}", field("id"))?;
            }
        }
        ClusterVerb::Remove { id } => {
            client.delete(&["dev", "v1", "clusters", &id], &[]).await?;
            writeln!(out, "cluster {id} removed")?;
        }
    }
    Ok(())
}

fn existing(file: &Path) -> Result<String, CliError> {
    read(file)?.ok_or_else(|| FileError::new("cannot read", file, std::io::ErrorKind::NotFound.into()).into())
}

fn document(file: &Path) -> Result<serde_json::Value, CliError> {
    serde_json::from_str(&existing(file)?)
        .map_err(|error| CliError::Usage(format!("{} is not JSON: {error}", file.display())))
}
