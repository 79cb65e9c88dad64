//! The calls behind the client verbs: vaults, tokens and clusters, under `/dev/v1/`. FerrVault has a web console there.

use std::collections::BTreeMap;

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};

use super::Service;
use super::access::{authenticate, reaches, require_role, require_server_admin, vault_of};
use super::answer::{Answer, Refusal};
use super::call::Call;
use super::operator::check_name;
use super::wire::{CreateToken, CreateVault, CreatedToken, RegisterCluster, SecretSummary, WriteSecrets};
use crate::credential::{is_uuid, mint_token, new_uuid};
use crate::oidc;
use crate::store::{Cluster, DEFAULT_PLACE, KeySource, Role, Scope, StoreError, Token, TokenKind, Vault, WriteMode};

/// The longest name of a vault, an organization or a project: 255 bytes, as for a file name.
const MAX_PLACE: usize = 255;

pub(super) fn list_vaults(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    let vaults: Vec<Vault> = service.store.vaults()?.into_iter().filter(|vault| reaches(&token, vault)).collect();
    Ok(Answer::json(StatusCode::OK, &vaults))
}

pub(super) fn create_vault(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    require_server_admin(&authenticate(service, call)?)?;
    let request: CreateVault =
        call.read_json(r#"{"name":"NAME"} with organization, project and environment if wanted"#)?;
    let vault = Vault {
        id: new_uuid()?,
        name: checked_place("vault", request.name)?,
        organization: checked_place("organization", request.organization.unwrap_or_else(default_place))?,
        project: checked_place("project", request.project.unwrap_or_else(default_place))?,
        environment: request.environment.unwrap_or_else(|| "development".to_owned()),
        created_at: service.clock.now(),
    };
    match service.store.create_vault(&vault) {
        Ok(()) => Ok(Answer::json(StatusCode::CREATED, &vault)),
        Err(StoreError::Exists) => Err(Refusal::conflict(format!(
            "there is a vault {:?} in {}/{} already",
            vault.name, vault.organization, vault.project
        ))),
        Err(other) => Err(other.into()),
    }
}

pub(super) fn delete_vault(service: &Service, call: &Call, id: &str) -> Result<Answer, Refusal> {
    require_server_admin(&authenticate(service, call)?)?;
    service.store.delete_vault(id).map_err(|error| unknown("vault", error))?;
    Ok(Answer::no_content())
}

pub(super) fn write_secrets(service: &Service, call: &Call, vault_id: &str) -> Result<Answer, Refusal> {
    let token = authenticate(service, call)?;
    require_role(&token, Role::Writer)?;
    let vault = vault_of(&service.store, &token, Some(vault_id))?;
    let request: WriteSecrets = call.read_json(r#"{"values":{"KEY":"TEXT"}}"#)?;
    for name in request.values.keys() {
        check_name(name)?;
    }
    let updated_at = service.clock.now();
    let versions = service.store.write_secrets(&vault.id, &request.values, WriteMode::Upsert, updated_at)?;
    let written: Vec<SecretSummary> =
        versions.into_iter().map(|(name, version)| SecretSummary { name, version, updated_at }).collect();
    Ok(Answer::json(StatusCode::OK, &written))
}

pub(super) fn list_tokens(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    require_server_admin(&authenticate(service, call)?)?;
    Ok(Answer::json(StatusCode::OK, &service.store.tokens()?))
}

pub(super) fn create_token(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    require_server_admin(&authenticate(service, call)?)?;
    let request: CreateToken =
        call.read_json(r#"{"kind":"service-account","role":"viewer","scope":{"kind":"vault","vault_id":"ID"}}"#)?;
    match (&request.kind, &request.scope) {
        (_, Scope::Vault { vault_id }) if service.store.vault(vault_id)?.is_none() => {
            return Err(Refusal::not_found(format!("there is no vault with the identifier {vault_id:?}")));
        }
        (TokenKind::ServiceAccount, Scope::Server | Scope::Organization { .. }) => {
            return Err(Refusal::bad_request("a service-account token is bound to one vault; name it"));
        }
        _ => {}
    }
    let now = service.clock.now();
    let expires_at = request
        .expires_in_seconds
        .map(|seconds| later(now, SignedDuration::from_secs(i64::from(seconds))))
        .transpose()?;
    let created = issue(
        service,
        Token {
            id: new_uuid()?,
            kind: request.kind,
            role: request.role,
            label: request.label,
            scope: request.scope,
            created_at: now,
            expires_at,
        },
    )?;
    Ok(Answer::json(StatusCode::CREATED, &created))
}

pub(super) fn revoke_token(service: &Service, call: &Call, id: &str) -> Result<Answer, Refusal> {
    require_server_admin(&authenticate(service, call)?)?;
    service.store.revoke_token(id).map_err(|error| unknown("token", error))?;
    Ok(Answer::no_content())
}

pub(super) fn list_clusters(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    require_server_admin(&authenticate(service, call)?)?;
    // The keys are left out: long, and nothing to read.
    let clusters: Vec<BTreeMap<&str, String>> = service
        .store
        .clusters()?
        .into_iter()
        .map(|cluster| {
            BTreeMap::from([
                ("id", cluster.id),
                ("organization", cluster.organization),
                ("label", cluster.label),
                ("issuer", cluster.issuer),
                ("audience", cluster.audience),
            ])
        })
        .collect();
    Ok(Answer::json(StatusCode::OK, &clusters))
}

pub(super) fn register_cluster(service: &Service, call: &Call) -> Result<Answer, Refusal> {
    require_server_admin(&authenticate(service, call)?)?;
    let request: RegisterCluster = call
        .read_json(r#"{"issuer":"URL","keys":{"document":JWKS}} or {"issuer":"URL","keys":{"url":{"url":"URL"}}}"#)?;
    let id = match request.id {
        Some(id) if is_uuid(&id) => id.to_ascii_lowercase(),
        Some(_) => return Err(Refusal::bad_request("the identifier of a cluster is a UUID of 36 characters")),
        None => new_uuid()?,
    };
    // Better said now than at the first exchange.
    check_keys(&request.keys)?;
    let cluster = Cluster {
        id,
        organization: checked_place("organization", request.organization.unwrap_or_else(default_place))?,
        label: request.label,
        issuer: request.issuer,
        audience: request.audience.unwrap_or_else(|| oidc::DEFAULT_AUDIENCE.to_owned()),
        keys: request.keys,
    };
    service.store.register_cluster(&cluster)?;
    Ok(Answer::json(StatusCode::CREATED, &serde_json::json!({ "id": cluster.id, "audience": cluster.audience })))
}

pub(super) fn remove_cluster(service: &Service, call: &Call, id: &str) -> Result<Answer, Refusal> {
    require_server_admin(&authenticate(service, call)?)?;
    service.store.remove_cluster(id).map_err(|error| unknown("cluster", error))?;
    Ok(Answer::no_content())
}

/// Says of what does not exist which kind of thing it is and where those are listed that do. The identifier is not quoted:
/// somebody may have taken the token itself for it.
fn unknown(kind: &str, error: StoreError) -> Refusal {
    match error {
        StoreError::Missing => {
            Refusal::not_found(format!("there is no {kind} with this identifier; see `{kind} list`"))
        }
        other => other.into(),
    }
}

fn check_keys(keys: &KeySource) -> Result<(), Refusal> {
    match keys {
        KeySource::Document(document) => {
            oidc::check_document(document).map_err(|error| Refusal::bad_request(error.to_string()))
        }
        KeySource::Url { url, ca_pem } => match url::Url::parse(url).as_ref().map(url::Url::scheme) {
            Ok("http") => Ok(()),
            Ok("https") if ca_pem.is_some() => Ok(()),
            Ok("https") => {
                Err(Refusal::bad_request("an https URL of keys takes the certificates its server is trusted by"))
            }
            _ => Err(Refusal::bad_request("the URL of the keys is not an http or https URL")),
        },
    }
}

/// Makes a token for `record` and keeps its hash.
pub(super) fn issue(service: &Service, record: Token) -> Result<CreatedToken, Refusal> {
    let token = mint_token(record.kind)?;
    service.store.keep_token(&token, &record)?;
    Ok(CreatedToken { token, record })
}

/// `now` and `span` later.
pub(super) fn later(now: Timestamp, span: SignedDuration) -> Result<Timestamp, Refusal> {
    now.checked_add(span).map_err(|_| Refusal::bad_request("that is too far in the future"))
}

fn default_place() -> String {
    DEFAULT_PLACE.to_owned()
}

fn checked_place(what: &str, name: String) -> Result<String, Refusal> {
    if name.trim().is_empty() || name.len() > MAX_PLACE || name.chars().any(char::is_control) {
        return Err(Refusal::bad_request(format!(
            "the name of a {what} has 1 to {MAX_PLACE} bytes, not only spaces, and no control characters"
        )));
    }
    Ok(name)
}
