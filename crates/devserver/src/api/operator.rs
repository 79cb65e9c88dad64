//! The calls of mode `ferrvault`: `/v1/operator/...`.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;

use super::Service;
use super::access::{authenticate, require_role, vault_of};
use super::answer::{Answer, Refusal};
use super::call::Call;
use super::wire::{CreateSecret, Hit, Me, RevealAnswer, RevealRequest, SecretSummary, UpdateSecret};
use crate::secret_text::SecretText;
use crate::store::{Role, Scope, Secret, StoreError, WriteMode};

/// The longest name of a secret: the longest key that a Kubernetes Secret takes.
const MAX_NAME: usize = 253;

pub(super) fn reveal(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    let request: RevealRequest = call.read_json(r#"{"vault":"NAME","names":["KEY"]} with names left out for all"#)?;
    let vault = vault_of(&service.store, &token, Some(&request.vault))?;
    let (found, missing) = select(service.store.secrets(&vault.id)?, request.names);
    let fetched_at = service.clock.now();
    let hits = found.into_iter().map(|(name, version, value)| Hit { name, value, version, fetched_at }).collect();
    Ok(Answer::json(StatusCode::OK, &RevealAnswer { hits, missing }))
}

/// Splits what a vault holds into what was asked for and the names that are not there, both sorted. A name asked for
/// twice is answered once.
pub(super) fn select(
    secrets: BTreeMap<String, Secret>,
    names: Option<Vec<String>>,
) -> (Vec<(String, i32, SecretText)>, Vec<String>) {
    let wanted: Option<BTreeSet<String>> = names.map(|names| names.into_iter().collect());
    let missing = wanted.iter().flatten().filter(|name| !secrets.contains_key(*name)).cloned().collect();
    let found = secrets
        .into_iter()
        .filter(|(name, _)| wanted.as_ref().is_none_or(|wanted| wanted.contains(name)))
        .filter_map(|(name, secret)| secret.value.map(|value| (name, secret.version, value)))
        .collect();
    (found, missing)
}

pub(super) fn list(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    let vault = vault_of(&service.store, &token, call.parameter("vault"))?;
    let summaries: Vec<SecretSummary> = service
        .store
        .secrets(&vault.id)?
        .into_iter()
        .map(|(name, secret)| SecretSummary { name, version: secret.version, updated_at: secret.updated_at })
        .collect();
    Ok(Answer::json(StatusCode::OK, &summaries))
}

pub(super) fn me(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    // The answer names a vault; about a token without one there is nothing of that shape to say.
    if !matches!(token.scope, Scope::Vault { .. }) {
        return Err(Refusal::forbidden("this call is for tokens that are bound to a vault"));
    }
    let vault = vault_of(&service.store, &token, None)?;
    let me = Me {
        token_id: token.id,
        vault_id: vault.id,
        vault_slug: vault.name,
        role: token.role,
        token_label: token.label,
        expires_at: token.expires_at,
    };
    Ok(Answer::json(StatusCode::OK, &me))
}

pub(super) fn create(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    require_role(&token, Role::Writer)?;
    let request: CreateSecret = call.read_json(r#"{"vault":"NAME","name":"KEY","value":"TEXT"}"#)?;
    let vault = vault_of(&service.store, &token, Some(&request.vault))?;
    let summary = write_one(service, &vault.id, request.name, request.value, WriteMode::Create)?;
    Ok(Answer::json(StatusCode::CREATED, &summary))
}

pub(super) fn update(service: &Service, call: &Call, name: &str) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    require_role(&token, Role::Writer)?;
    let request: UpdateSecret = call.read_json(r#"{"vault":"NAME","value":"TEXT"}"#)?;
    let vault = vault_of(&service.store, &token, Some(&request.vault))?;
    let summary = write_one(service, &vault.id, name.to_owned(), request.value, WriteMode::Update)?;
    Ok(Answer::json(StatusCode::OK, &summary))
}

pub(super) fn delete(service: &Service, call: &Call, name: &str) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    require_role(&token, Role::Writer)?;
    let vault = vault_of(&service.store, &token, call.parameter("vault"))?;
    match service.store.delete_secret(&vault.id, name, service.clock.now()) {
        Ok(()) => Ok(Answer::no_content()),
        Err(StoreError::Missing) => Err(not_in_vault(name)),
        Err(other) => Err(other.into()),
    }
}

fn write_one(
    service: &Service,
    vault_id: &str,
    name: String,
    value: SecretText,
    mode: WriteMode,
) -> Result<SecretSummary, Refusal> {
    check_name(&name)?;
    let updated_at = service.clock.now();
    let values = BTreeMap::from([(name.clone(), value)]);
    match service.store.write_secrets(vault_id, &values, mode, updated_at) {
        Ok(versions) => {
            let version = versions.get(&name).copied().unwrap_or_default();
            Ok(SecretSummary { name, version, updated_at })
        }
        Err(StoreError::Exists) => Err(Refusal::conflict(format!(
            "SECRET_EXISTS: the secret {name:?} exists; write a new version of it with PUT"
        ))),
        Err(StoreError::Missing) => Err(not_in_vault(&name)),
        Err(other) => Err(other.into()),
    }
}

/// Refuses names that no client could ask for again.
pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    // The dots: clients take them out of a URL, so such a name could be neither updated nor deleted.
    let dots = matches!(name, "." | "..");
    if name.is_empty() || name.len() > MAX_NAME || dots || name.chars().any(char::is_control) {
        return Err(Refusal::bad_request(format!(
            "the name of a secret has 1 to {MAX_NAME} bytes, no control characters, and is not . or .."
        )));
    }
    Ok(())
}

fn not_in_vault(name: &str) -> Refusal {
    Refusal::not_found(format!("there is no secret {name:?} in this vault"))
}
