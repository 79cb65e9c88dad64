//! The verbs about secrets: `set`, `rotate`, `unset`, `list`, `get`.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use reqwest::Method;

use super::client::Client;
use super::values::read_values;
use super::{CliError, VaultArgs};
use crate::api::wire::{RevealAnswer, RevealRequest, SecretSummary, WriteSecrets};
use crate::credential::random_text;
use crate::secret_text::SecretText;
use crate::store::Vault;

#[derive(Args)]
#[command(after_help = "Examples:
  ferrvault-dev set app USER=shop PASSWORD=s3cret
  ferrvault-dev set app CERT=@tls.crt              the content of a file, as it is
  printf %s \"$PW\" | ferrvault-dev set app PASSWORD=-   standard input, seen by no one else
  ferrvault-dev set app HANDLE=@@shop              a value that begins with @")]
pub(super) struct SetArgs {
    #[command(flatten)]
    vault: VaultArgs,
    /// What to write; other secrets of the vault stay
    #[arg(required = true, value_name = "KEY=VALUE")]
    values: Vec<String>,
}

#[derive(Args)]
pub(super) struct RotateArgs {
    #[command(flatten)]
    vault: VaultArgs,
    /// The secret, which has to be there: `set` makes one
    key: String,
    /// Random bytes in the new value, which is written in base64url
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=4096))]
    bytes: u16,
}

#[derive(Args)]
pub(super) struct UnsetArgs {
    #[command(flatten)]
    vault: VaultArgs,
    /// The secrets
    #[arg(required = true)]
    keys: Vec<String>,
}

#[derive(Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    vault: VaultArgs,
}

#[derive(Args)]
pub(super) struct GetArgs {
    #[command(flatten)]
    vault: VaultArgs,
    /// The secret
    key: String,
    /// Print the value, and nothing else
    #[arg(long)]
    show: bool,
}

pub(super) async fn set(args: SetArgs, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let values = read_values(args.values, &mut std::io::stdin().lock())?;
    let newline: Vec<&String> =
        values.iter().filter(|(_, value)| value.expose().ends_with('\n')).map(|(key, _)| key).collect();
    for key in newline {
        writeln!(out, "note: the value of {key} ends with a newline, which is stored too")?;
    }
    let vault = client.find_vault(&args.vault.vault, &args.vault.place).await?;
    write(&vault, values, client, out).await
}

pub(super) async fn rotate(args: RotateArgs, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let vault = client.find_vault(&args.vault.vault, &args.vault.place).await?;
    // A mistyped name would otherwise become a second secret, and the one that was meant would stay as it is.
    if !summaries(&vault, client).await?.iter().any(|secret| secret.name == args.key) {
        return Err(CliError::Usage(format!(
            "there is no secret {:?} in {} to rotate; see `list`, or make it with `set`",
            args.key, vault.name
        )));
    }
    let values = BTreeMap::from([(args.key, random_text(usize::from(args.bytes))?)]);
    write(&vault, values, client, out).await
}

/// What is in a vault, without values.
async fn summaries(vault: &Vault, client: &Client) -> Result<Vec<SecretSummary>, CliError> {
    client.get(&["v1", "operator", "secrets", "list"], &[("vault", &vault.id)]).await
}

async fn write(
    vault: &Vault,
    values: BTreeMap<String, SecretText>,
    client: &Client,
    out: &mut (dyn Write + Send),
) -> Result<(), CliError> {
    let path = ["dev", "v1", "vaults", &vault.id, "secrets"];
    let written: Vec<SecretSummary> = client.send_json(Method::PUT, &path, &WriteSecrets { values }).await?;
    for secret in written {
        writeln!(out, "{}: {} is at version {}", vault.name, secret.name, secret.version)?;
    }
    Ok(())
}

pub(super) async fn unset(args: UnsetArgs, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let vault = client.find_vault(&args.vault.vault, &args.vault.place).await?;
    for key in &args.keys {
        client.delete(&["v1", "operator", "secrets", key], &[("vault", &vault.id)]).await?;
        writeln!(out, "{}: {key} is deleted", vault.name)?;
    }
    Ok(())
}

pub(super) async fn list(args: ListArgs, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let vault = client.find_vault(&args.vault.vault, &args.vault.place).await?;
    let secrets = summaries(&vault, client).await?;
    let width = secrets.iter().map(|secret| secret.name.chars().count()).max().unwrap_or_default().max(4);
    writeln!(out, "{:width$}  {:>7}  UPDATED", "NAME", "VERSION")?;
    for secret in secrets {
        writeln!(out, "{:width$}  {:>7}  {}", secret.name, secret.version, secret.updated_at)?;
    }
    Ok(())
}

pub(super) async fn get(args: GetArgs, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let vault = client.find_vault(&args.vault.vault, &args.vault.place).await?;
    let missing = || CliError::Usage(format!("there is no secret {:?} in {}; see `list`", args.key, vault.name));
    if !args.show {
        let secrets = summaries(&vault, client).await?;
        let secret = secrets.into_iter().find(|secret| secret.name == args.key).ok_or_else(missing)?;
        writeln!(out, "{}: {} is at version {} since {}", vault.name, secret.name, secret.version, secret.updated_at)?;
        writeln!(out, "add --show to print its value")?;
        return Ok(());
    }
    let request = RevealRequest { vault: vault.id.clone(), names: Some(vec![args.key.clone()]) };
    let answer: RevealAnswer =
        client.send_json(Method::POST, &["v1", "operator", "secrets", "reveal"], &request).await?;
    let hit = answer.hits.into_iter().next().ok_or_else(missing)?;
    writeln!(out, "{}", hit.value.expose())?;
    Ok(())
}
