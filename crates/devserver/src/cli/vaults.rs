//! The verbs about vaults.

use std::io::Write;

use clap::Subcommand;
use reqwest::Method;

use super::client::Client;
use super::{CliError, PlaceArgs, VaultArgs};
use crate::api::wire::CreateVault;
use crate::store::Vault;

#[derive(Subcommand)]
pub(super) enum VaultVerb {
    /// Create a vault
    ///
    /// Without --organization and --project it is in default/default. Both modes reach every vault: mode ferrvault by its
    /// name, mode cloud by organization, project and name.
    Create {
        #[command(flatten)]
        vault: VaultArgs,
        /// Environment; told with every reveal, used for nothing
        #[arg(long, default_value = "development")]
        environment: String,
    },
    /// List the vaults
    List,
    /// Delete a vault with everything in it
    Delete {
        #[command(flatten)]
        vault: VaultArgs,
    },
}

pub(super) async fn run(verb: VaultVerb, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let vaults = ["dev", "v1", "vaults"];
    match verb {
        VaultVerb::Create { vault, environment } => {
            let PlaceArgs { organization, project } = vault.place;
            let request = CreateVault { name: vault.vault, organization, project, environment: Some(environment) };
            let vault: Vault = client.send_json(Method::POST, &vaults, &request).await?;
            writeln!(out, "vault {} created in {}/{} ({})", vault.name, vault.organization, vault.project, vault.id)?;
        }
        VaultVerb::List => {
            let vaults: Vec<Vault> = client.get(&vaults, &[]).await?;
            let header = ["ORGANIZATION", "PROJECT", "NAME"].map(str::to_owned);
            let rows: Vec<[String; 3]> = std::iter::once(header)
                .chain(vaults.into_iter().map(|vault| [vault.organization, vault.project, vault.name]))
                .collect();
            let width = |pick: fn(&[String; 3]) -> &String| {
                rows.iter().map(|row| pick(row).chars().count()).max().unwrap_or_default()
            };
            let (first, second) = (width(|[organization, ..]| organization), width(|[_, project, _]| project));
            for [organization, project, name] in &rows {
                writeln!(out, "{organization:first$}  {project:second$}  {name}")?;
            }
        }
        VaultVerb::Delete { vault } => {
            let found = client.find_vault(&vault.vault, &vault.place).await?;
            client.delete(&["dev", "v1", "vaults", &found.id], &[]).await?;
            writeln!(out, "vault {} deleted", found.name)?;
        }
    }
    Ok(())
}
