//! The reveal of mode `cloud`: the vault is found by organization, project and name.

use http::StatusCode;

use super::Service;
use super::access::{authenticate, reaches};
use super::answer::{Answer, Refusal};
use super::call::Call;
use super::operator::select;
use super::wire::{CloudRevealAnswer, CloudVault};
use crate::store::{Scope, Store, Token, Vault};

pub(super) fn reveal(
    service: &Service,
    call: &Call,
    organization: &str,
    project: &str,
    name: &str,
) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    if call.namespace.is_none() {
        return Err(Refusal::bad_request("the header X-FerrVault-Namespace is missing or empty"));
    }
    let vault = find(&service.store, &token, organization, project, name)?;
    let (found, missing) = select(service.store.secrets(&vault.id)?, call.names());
    let answer = CloudRevealAnswer {
        secrets: found.into_iter().map(|(name, _, value)| (name, value)).collect(),
        missing,
        vault: CloudVault { id: vault.id, name: vault.name, environment: vault.environment },
    };
    Ok(Answer::json(StatusCode::OK, &answer))
}

/// Says which part of the way is missing, but only to a token that reaches the organization.
fn find(store: &Store, token: &Token, organization: &str, project: &str, name: &str) -> Result<Vault, Refusal> {
    if let Scope::Organization { organization: own } = &token.scope
        && own != organization
    {
        return Err(Refusal::forbidden(format!("this token does not reach the organization {organization:?}")));
    }
    if let Some(vault) = store.vault_named(organization, project, name)? {
        if reaches(token, &vault) {
            return Ok(vault);
        }
        return Err(Refusal::forbidden(format!("this token does not reach the vault {name:?}")));
    }
    let vaults = store.vaults()?;
    let mut of_organization = vaults.iter().filter(|vault| vault.organization == organization).peekable();
    let what = if of_organization.peek().is_none() {
        format!("there is no organization {organization:?}")
    } else if of_organization.any(|vault| vault.project == project) {
        format!("there is no vault {name:?} in the project {project:?}")
    } else {
        format!("there is no project {project:?} in the organization {organization:?}")
    };
    Err(Refusal::not_found(what))
}
