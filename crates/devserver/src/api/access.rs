//! Who calls, and what that token reaches: every rule about 401, 403 and 429 in one place.

use http::StatusCode;

use super::Service;
use super::answer::Refusal;
use super::call::Call;
use crate::store::{DEFAULT_PLACE, Role, Scope, Store, Token, TokenKind, Vault};

/// The token of the call, if it is known, not expired and within its rate.
pub(super) fn authenticate(service: &Service, call: &Call) -> Result<Token, Refusal> {
    let Some(bearer) = &call.bearer else {
        return Err(Refusal::unauthorized("no token; send the header Authorization: Bearer TOKEN"));
    };
    let now = service.clock.now();
    let Some(token) = service.store.token(bearer.expose())? else {
        return Err(Refusal::unauthorized("this token is unknown or was revoked"));
    };
    if token.expires_at.is_some_and(|end| end <= now) {
        return Err(Refusal::unauthorized("this token has expired"));
    }
    if token.kind == TokenKind::ServiceAccount {
        service.limiter.admit(&token.id, now).map_err(Refusal::throttled)?;
    }
    Ok(token)
}

/// Refuses a token of too low a role.
pub(super) fn require_role(token: &Token, role: Role) -> Result<(), Refusal> {
    if token.role >= role {
        return Ok(());
    }
    Err(Refusal::forbidden(format!("this token has role {}, this call takes role {}", token.role.name(), role.name())))
}

/// Refuses whoever may not manage the server.
pub(super) fn require_server_admin(token: &Token) -> Result<(), Refusal> {
    require_role(token, Role::Admin)?;
    if token.scope == Scope::Server {
        return Ok(());
    }
    Err(Refusal::forbidden("this call takes an admin token of the whole server, such as the one in the data directory"))
}

/// Whether the token reaches this vault.
pub(super) fn reaches(token: &Token, vault: &Vault) -> bool {
    match &token.scope {
        Scope::Server => true,
        Scope::Organization { organization } => *organization == vault.organization,
        Scope::Vault { vault_id } => *vault_id == vault.id,
    }
}

/// The vault of a call in mode `ferrvault`, where it is named by itself: by name or identifier, and a token that is bound
/// to one vault may leave it out.
pub(super) fn vault_of(store: &Store, token: &Token, named: Option<&str>) -> Result<Vault, Refusal> {
    if let Scope::Vault { vault_id } = &token.scope {
        let Some(vault) = store.vault(vault_id)? else {
            return Err(Refusal::not_found("the vault of this token does not exist any more"));
        };
        return match named {
            Some(named) if named != vault.name && named != vault.id => {
                Err(Refusal::forbidden(format!("this token is bound to another vault than {named:?}")))
            }
            _ => Ok(vault),
        };
    }
    let Some(named) = named else {
        return Err(Refusal::bad_request("this token is not bound to a vault; name one with vault"));
    };
    let organization = match &token.scope {
        Scope::Organization { organization } => organization,
        _ => DEFAULT_PLACE,
    };
    let found = match store.vault(named)? {
        Some(vault) => Some(vault),
        None => store.vault_named(organization, DEFAULT_PLACE, named)?,
    };
    let vault = found.ok_or_else(|| Refusal::not_found(format!("there is no vault {named:?}")))?;
    if reaches(token, &vault) {
        return Ok(vault);
    }
    Err(Refusal::new(StatusCode::FORBIDDEN, format!("this token does not reach the vault {named:?}")))
}
