//! The verbs about tokens. A token is printed once, when it is made, and alone on standard output so that it can be piped.

use std::io::Write;

use clap::Subcommand;
use jiff::SignedDuration;
use reqwest::Method;

use super::client::Client;
use super::{CliError, PlaceArgs};
use crate::api::wire::{CreateToken, CreatedToken};
use crate::store::{Role, Scope, Token, TokenKind};

#[derive(Subcommand)]
pub(super) enum TokenVerb {
    /// Make a token and print it
    ///
    /// With --vault it reaches that vault only and is a service account's; with --organization alone it reaches the vaults
    /// of that organization and is a cluster's; with neither it reaches everything and is a user's.
    #[command(after_help = "Examples:
  ferrvault-dev token create --vault app --role viewer > token
  kubectl create secret generic ferrvault-token --from-file=token=token")]
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
        #[arg(long, value_name = "DURATION")]
        expires_in: Option<SignedDuration>,
    },
    /// List tokens: identifiers and rights, never the tokens
    List,
    /// Stop accepting a token
    Revoke {
        /// Its identifier, as `token list` shows it
        id: String,
    },
}

pub(super) async fn run(verb: TokenVerb, client: &Client, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let path = ["dev", "v1", "tokens"];
    match verb {
        TokenVerb::Create { vault, place, role, kind, label, expires_in } => {
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
            let expires_in_seconds = expires_in
                .map(|span| {
                    u32::try_from(span.as_secs()).ok().filter(|&seconds| seconds > 0).ok_or_else(|| {
                        CliError::Usage("--expires-in is a positive time of at most 136 years".to_owned())
                    })
                })
                .transpose()?;
            let request = CreateToken { kind: kind.unwrap_or(usual_kind), role, label, scope, expires_in_seconds };
            let created: CreatedToken = client.send_json(Method::POST, &path, &request).await?;
            writeln!(out, "{}", created.token.expose())?;
        }
        TokenVerb::List => {
            let tokens: Vec<Token> = client.get(&path, &[]).await?;
            writeln!(out, "{:36}  {:15}  {:6}  {:20}  SCOPE, LABEL", "ID", "KIND", "ROLE", "EXPIRES")?;
            for token in tokens {
                let kind = match token.kind {
                    TokenKind::User => "user",
                    TokenKind::Cluster => "cluster",
                    TokenKind::ServiceAccount => "service-account",
                };
                let scope = match token.scope {
                    Scope::Server => "everything".to_owned(),
                    Scope::Organization { organization } => format!("organization {organization}"),
                    Scope::Vault { vault_id } => format!("vault {vault_id}"),
                };
                let expires = token.expires_at.map_or_else(|| "never".to_owned(), |end| format!("{end:.0}"));
                let (id, role, label) = (token.id, token.role.name(), token.label);
                writeln!(out, "{id:36}  {kind:15}  {role:6}  {expires:20}  {scope}, {label}")?;
            }
        }
        TokenVerb::Revoke { id } => {
            client.delete(&["dev", "v1", "tokens", &id], &[]).await?;
            writeln!(out, "token {id} revoked")?;
        }
    }
    Ok(())
}
