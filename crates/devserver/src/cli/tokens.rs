//! The verbs about tokens. A token is printed once, when it is made, and alone on standard output so that it can be piped;
//! what else there is to say about it goes to standard error.

use std::io::Write;

use clap::Subcommand;
use reqwest::Method;

use super::client::Client;
use super::span::read_span;
use super::{CliError, PlaceArgs};
use crate::api::wire::{CreateToken, CreatedToken};
use crate::credential::is_uuid;
use crate::store::{Role, Scope, Token, TokenKind, Vault};

const TOKENS: [&str; 3] = ["dev", "v1", "tokens"];

#[derive(Subcommand)]
pub(super) enum TokenVerb {
    /// Make a token and print it, alone on standard output; its identifier is told on standard error
    ///
    /// With --vault it reaches that vault only and is a service account's; with --organization alone it reaches the vaults
    /// of that organization and is a cluster's; with neither it reaches everything and is a user's.
    #[command(after_help = "Examples:
  ferrvault-dev token create --vault app --role viewer > token
  kubectl create secret generic ferrvault-token --from-file=token=token
  ferrvault-dev token create --vault app --role writer --label ci --expires-in 24h")]
    Create {
        /// Vault that the token is bound to
        #[arg(long, value_name = "NAME")]
        vault: Option<String>,
        #[command(flatten)]
        place: PlaceArgs,
        /// What it may do
        #[arg(long, value_enum, default_value_t = Role::Viewer)]
        role: Role,
        /// Whose token it is, if not as said above
        #[arg(long, value_enum)]
        kind: Option<TokenKind>,
        /// What to call it
        #[arg(long, default_value = "made with ferrvault-dev")]
        label: String,
        /// How long it is accepted, such as 90s, 15m or 24h; forever without
        #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
        expires_in: Option<String>,
    },
    /// List tokens: identifiers, rights and what they reach, never the tokens
    List,
    /// Stop accepting a token
    #[command(after_help = "Example:
  ferrvault-dev token list
  ferrvault-dev token revoke 1b4e28ba-2fa1-41d2-883f-0016d3cca427")]
    Revoke {
        /// Its identifier, as `token list` and `token create` tell it; never the token itself
        id: String,
    },
}

pub(super) async fn run(verb: TokenVerb, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    match verb {
        TokenVerb::Create { vault, place, role, kind, label, expires_in } => {
            let expires_in_seconds = expires_in.as_deref().map(seconds).transpose()?;
            if kind == Some(TokenKind::ServiceAccount) && vault.is_none() {
                return Err(CliError::Usage(
                    "--kind service-account needs --vault NAME: such a token is bound to one vault".to_owned(),
                ));
            }
            let (scope, usual_kind) = match (vault, &place.organization) {
                (Some(name), _) => {
                    let vault_id = client.find_vault(&name, &place).await?.id;
                    (Scope::Vault { vault_id }, TokenKind::ServiceAccount)
                }
                (None, Some(organization)) => {
                    (Scope::Organization { organization: organization.clone() }, TokenKind::Cluster)
                }
                (None, None) => (Scope::Server, TokenKind::User),
            };
            let request = CreateToken { kind: kind.unwrap_or(usual_kind), role, label, scope, expires_in_seconds };
            let created: CreatedToken = client.send_json(Method::POST, &TOKENS, &request).await?;
            writeln!(out, "{}", created.token.expose())?;
            let id = created.record.id;
            // The token is made and printed: that this line finds no reader is no failure.
            let _ = writeln!(
                std::io::stderr(),
                "its identifier is {id}; to stop accepting it: ferrvault-dev token revoke {id}"
            );
        }
        TokenVerb::List => {
            let (tokens, vaults) = (tokens(client).await?, vaults(client).await?);
            writeln!(out, "{:36}  {:15}  {:6}  {:20}  REACHES, LABEL", "ID", "KIND", "ROLE", "EXPIRES")?;
            for token in tokens {
                let kind = match token.kind {
                    TokenKind::User => "user",
                    TokenKind::Cluster => "cluster",
                    TokenKind::ServiceAccount => "service-account",
                };
                let expires = token.expires_at.map_or_else(|| "never".to_owned(), |end| format!("{end:.0}"));
                let reaches = reaches(&token.scope, &vaults);
                let (id, role, label) = (token.id, token.role.name(), token.label);
                writeln!(out, "{id:36}  {kind:15}  {role:6}  {expires:20}  {reaches}, {label}")?;
            }
        }
        TokenVerb::Revoke { id } => {
            // Not quoted: what is no identifier may well be the token.
            if !is_uuid(&id) {
                return Err(CliError::Usage(
                    "a token is revoked by its identifier: the 36 characters in the first column of `token list`, not the \
                     token itself and not its label"
                        .to_owned(),
                ));
            }
            let id = id.to_ascii_lowercase();
            let Some(token) = tokens(client).await?.into_iter().find(|token| token.id == id) else {
                return Err(CliError::Usage(format!(
                    "there is no token {id}: it was revoked already, or has expired, or belongs to another server; \
                     `token list` shows those that are accepted"
                )));
            };
            let reached = reaches(&token.scope, &vaults(client).await?);
            client.delete(&["dev", "v1", "tokens", &id], &[]).await?;
            writeln!(out, "token {id} revoked: {} of {reached}, {}", token.role.name(), token.label)?;
        }
    }
    Ok(())
}

async fn tokens(client: &Client) -> Result<Vec<Token>, CliError> {
    client.get(&TOKENS, &[]).await
}

async fn vaults(client: &Client) -> Result<Vec<Vault>, CliError> {
    client.get(&["dev", "v1", "vaults"], &[]).await
}

/// What a token reaches, in the words of `vault list`, with the identifier where there is one.
fn reaches(scope: &Scope, vaults: &[Vault]) -> String {
    match scope {
        Scope::Server => "everything".to_owned(),
        Scope::Organization { organization } => format!("organization {organization}"),
        Scope::Vault { vault_id } => match vaults.iter().find(|vault| vault.id == *vault_id) {
            Some(vault) => format!("vault {}/{}/{} ({vault_id})", vault.organization, vault.project, vault.name),
            None => format!("a vault that was deleted ({vault_id})"),
        },
    }
}

/// Whole seconds, as the call carries them.
fn seconds(text: &str) -> Result<u32, CliError> {
    let span = read_span("--expires-in", text)?;
    u32::try_from(span.as_secs()).ok().filter(|&seconds| seconds > 0).ok_or_else(|| {
        CliError::Usage(format!(
            "--expires-in {text} cannot be used: it is a time from 1s to 136 years, such as 15m or 24h"
        ))
    })
}
