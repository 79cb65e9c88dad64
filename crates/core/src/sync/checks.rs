//! The ordered list of what the sync stage refuses. Each check is named for the violation it finds; the first hit ends
//! the stage. The lists are cut where something has to be read before the next check can look at it.

use ferrvault_api::connection::Mode;
use ferrvault_api::{FerrVaultConnection, FerrVaultConnectionSpec, FerrVaultSecret, Reason, condition};

use crate::content::Content;
use crate::duration::GoDuration;
use crate::refusal::Refusal;
use crate::sync::{ObservedTarget, Ownership};

/// Types of Secret that hand out rights or carry releases of others: whoever may create our resources is not thereby
/// trusted to make one of these.
const REFUSED_TYPES: [&str; 3] =
    ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1"];

/// Longest name of a Secret (a DNS subdomain).
const MAX_NAME: usize = 253;

/// Steps of one resource. Nobody writes more by hand, and 64 over the largest answer take well under a second.
const MAX_TRANSFORMS: usize = 64;
/// Workloads of one resource: 256 records of about 200 bytes are 50 KB of status.
const MAX_WORKLOADS: usize = 256;
/// Keys of one resource: as many as the largest answer that is read has.
const MAX_NAMES: usize = 16_384;

type ResourceCheck = fn(&FerrVaultSecret) -> Option<Refusal>;

/// What can be refused from the resource alone.
const RESOURCE: [ResourceCheck; 7] = [
    lists_too_long,
    connection_name_empty,
    vault_empty,
    refresh_interval_unreadable,
    selector_name_empty,
    target_impossible,
    workload_name_empty,
];

/// Whether the resource asks to be left alone. Goes before everything else, and stops the restart stage as well: a
/// restart that is owed stays owed.
pub fn suspended(resource: &FerrVaultSecret) -> Option<Refusal> {
    resource.is_suspended().then(|| {
        let asked = if resource.refresh_is_due() { "; the refresh that was asked for is done then" } else { "" };
        let message =
            format!("spec.suspend is true: neither the target nor a workload is touched until it is false{asked}");
        Refusal::new(Reason::Suspended, message).holding_restarts()
    })
}

/// Checks the resource by itself, before anything else is read.
pub fn resource(resource: &FerrVaultSecret) -> Result<(), Refusal> {
    let mut found = RESOURCE.iter().filter_map(|check| check(resource));
    first(found.next().map(|refusal| {
        // The first is told; what any of them holds back is held back.
        if found.any(|other| other.holds_restarts) { refusal.holding_restarts() } else { refusal }
    }))
}

/// Checks the connection that the resource names. `None`: there is no such connection.
pub fn connection<'c>(
    resource: &FerrVaultSecret,
    connection: Option<&'c FerrVaultConnection>,
) -> Result<&'c FerrVaultConnection, Refusal> {
    let Some(connection) = connection else { return Err(connection_not_found(resource)) };
    first(connection_spec(&connection.spec).or_else(|| cloud_scope_missing(resource, &connection.spec)))?;
    Ok(connection)
}

/// Checks the target. `None`: there is no such Secret.
pub fn target(
    resource: &FerrVaultSecret,
    connection: &FerrVaultConnection,
    target: Option<&ObservedTarget>,
) -> Result<(), Refusal> {
    let Some(target) = target else { return Ok(()) };
    first(target_owned_by_another(resource, connection, target).or_else(|| target_type_differs(resource, target)))
}

/// Checks whether a target that has no owner, or that is not there, is another resource's to keep. `keepers`: all
/// resources that name it.
///
/// No owner reference tells two of them apart, and each would take the other's write for drift, for ever. Nor may one
/// step in for another that cannot write just then: pods would start with the content of a different vault. Whoever has
/// kept it goes on, and where none or each says so, the older one.
pub fn unowned_target<'r>(
    resource: &FerrVaultSecret,
    target: Option<&ObservedTarget>,
    keepers: impl IntoIterator<Item = &'r FerrVaultSecret>,
) -> Result<(), Refusal> {
    if target.is_some_and(|target| target.ownership != Ownership::Nobody) {
        return Ok(());
    }
    let own = rank(resource);
    let others = keepers.into_iter().filter(|keeper| keeper.metadata.name != resource.metadata.name);
    let keepers = others.filter(|keeper| keeper.metadata.deletion_timestamp.is_none());
    first(keepers.filter(|keeper| rank(keeper) < own).min_by_key(|keeper| rank(keeper)).map(|keeper| {
        let claim = if has_kept_its_target(keeper) && claim(keeper) < claim(resource) {
            "which has written it before"
        } else {
            "which is older"
        };
        let message = format!(
            "Secret {:?} is kept by FerrVaultSecret {:?}, {claim}; choose another spec.target.name, or delete that \
             FerrVaultSecret",
            resource.target_name(),
            keeper.metadata.name.as_deref().unwrap_or_default()
        );
        Refusal::new(Reason::TargetConflict, message).holding_restarts()
    }))
}

/// Whether the status tells that the last success was with this very name; of objects without that record, whether this
/// generation was synced and not refused since.
fn has_kept_its_target(resource: &FerrVaultSecret) -> bool {
    let Some(status) = &resource.status else { return false };
    match &status.synced_target {
        Some(name) => name == resource.target_name(),
        None => {
            !was_refused(resource)
                && (status.content_hash.is_some() || status.last_synced_at.is_some())
                && status.observed_generation == resource.metadata.generation
        }
    }
}

fn was_refused(resource: &FerrVaultSecret) -> bool {
    let conflict = Reason::TargetConflict.as_str();
    let conditions = resource.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|c| c.type_ == condition::READY && c.reason == conflict)
}

/// Who goes before whom where several name one Secret that has no owner: the lowest keeps it.
pub fn rank(of: &FerrVaultSecret) -> impl Ord + use<> {
    let made = of.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (claim(of), made, of.metadata.name.clone())
}

/// The lower, the better. Of two that have kept it, which takes an edit of a name, the one that was refused it since comes
/// second.
fn claim(of: &FerrVaultSecret) -> (bool, bool) {
    (!has_kept_its_target(of), was_refused(of))
}

/// Checks whether the target could be given the content `wanted`.
pub fn target_immutable(
    resource: &FerrVaultSecret,
    target: Option<&ObservedTarget>,
    wanted: &Content,
) -> Result<(), Refusal> {
    if target.is_none_or(|target| !target.immutable || target.content == *wanted) {
        return Ok(());
    }
    let (name, namespace) = (resource.target_name(), resource.metadata.namespace.as_deref().unwrap_or_default());
    Err(Refusal::new(
        Reason::SecretWriteFailed,
        format!(
            "Secret {name:?} is immutable and Kubernetes does not let its content change, so it keeps the old one; have \
             it made anew: kubectl delete secret {name} -n {namespace}"
        ),
    ))
}

/// What is wrong with a connection's spec, as far as it can be told without parsing the URL.
///
/// Admission refuses the same; this is for objects stored under the older schema.
pub fn connection_spec(spec: &FerrVaultConnectionSpec) -> Option<Refusal> {
    credentials_ambiguous(spec).or_else(|| cluster_id_malformed(spec))
}

/// The key of the connection's token inside the target, when the target is the connection's own token Secret.
pub fn token_key_in_target<'c>(resource: &FerrVaultSecret, connection: &'c FerrVaultConnection) -> Option<&'c str> {
    let token = connection.spec.token_secret_ref.as_ref()?;
    (token.name == resource.target_name()).then_some(token.key.as_str())
}

fn first(found: Option<Refusal>) -> Result<(), Refusal> {
    found.map_or(Ok(()), Err)
}

fn invalid_spec(message: impl Into<String>) -> Refusal {
    Refusal::new(Reason::InvalidSpec, message)
}

/// Each entry costs a pass work that no deadline can cut (transforms) or calls (workloads), and lists land in the status.
fn lists_too_long(resource: &FerrVaultSecret) -> Option<Refusal> {
    let spec = &resource.spec;
    let lists = [
        ("spec.transforms", spec.transforms.len(), MAX_TRANSFORMS),
        ("spec.rolloutRestart", spec.rollout_restart.len(), MAX_WORKLOADS),
        ("spec.selector.names", resource.wanted_names().len(), MAX_NAMES),
    ];
    let (field, length, limit) = lists.into_iter().find(|(_, length, limit)| length > limit)?;
    let refusal = invalid_spec(format!("{field} has {length} entries, at most {limit} are taken; split the resource"));
    Some(if spec.rollout_restart.len() > MAX_WORKLOADS { refusal.holding_restarts() } else { refusal })
}

/// Whether a Secret of this type grants rights by itself, so that it is neither written nor sent anywhere.
pub fn grants_rights(type_: &str) -> bool {
    REFUSED_TYPES.contains(&type_)
}

fn connection_name_empty(resource: &FerrVaultSecret) -> Option<Refusal> {
    if resource.spec.connection_ref.name.is_empty() {
        return Some(invalid_spec("spec.connectionRef.name is empty; name a FerrVaultConnection of this namespace"));
    }
    None
}

fn vault_empty(resource: &FerrVaultSecret) -> Option<Refusal> {
    if resource.spec.vault.is_empty() {
        return Some(invalid_spec("spec.vault is empty; name the vault to read"));
    }
    None
}

fn refresh_interval_unreadable(resource: &FerrVaultSecret) -> Option<Refusal> {
    let text = resource.spec.refresh_interval.as_deref()?;
    let error = GoDuration::parse_non_negative(text).err()?;
    Some(invalid_spec(format!("spec.refreshInterval: {error}")))
}

fn selector_name_empty(resource: &FerrVaultSecret) -> Option<Refusal> {
    let index = resource.wanted_names().iter().position(|name| name.trim().is_empty())?;
    Some(invalid_spec(format!("spec.selector.names[{index}] is empty; name a key or remove the entry")))
}

fn target_impossible(resource: &FerrVaultSecret) -> Option<Refusal> {
    let (name, type_) = (resource.target_name(), resource.target_type());
    if !is_dns_subdomain(name) {
        return Some(
            invalid_spec(format!(
                "spec.target.name {name:?} is no name for a Secret; use lower-case letters, digits, '-' and '.', \
             beginning and ending with a letter or digit, at most {MAX_NAME} characters"
            ))
            .holding_restarts(),
        );
    }
    if grants_rights(type_) {
        return Some(
            invalid_spec(format!(
                "spec.target.type {type_} is refused: such a Secret grants rights of its own; choose another type"
            ))
            .holding_restarts(),
        );
    }
    None
}

fn workload_name_empty(resource: &FerrVaultSecret) -> Option<Refusal> {
    let index = resource.spec.rollout_restart.iter().position(|workload| !is_workload_name(&workload.name))?;
    Some(invalid_spec(format!(
        "spec.rolloutRestart[{index}].name is not the name of a workload; correct or remove the entry"
    )))
}

/// Whether a workload can be called so. One that cannot is not asked for: its name would be a path of its own.
pub fn is_workload_name(name: &str) -> bool {
    is_dns_subdomain(name)
}

fn connection_not_found(resource: &FerrVaultSecret) -> Refusal {
    let name = &resource.spec.connection_ref.name;
    let namespace = resource.metadata.namespace.as_deref().unwrap_or_default();
    Refusal::new(
        Reason::ConnectionNotFound,
        format!(
            "there is no FerrVaultConnection {name:?} in namespace {namespace:?}; create it or correct spec.connectionRef"
        ),
    )
}

fn credentials_ambiguous(spec: &FerrVaultConnectionSpec) -> Option<Refusal> {
    let both = match (&spec.token_secret_ref, &spec.oidc) {
        (Some(_), Some(_)) => "both tokenSecretRef and oidc",
        (None, None) => "neither tokenSecretRef nor oidc",
        _ => return None,
    };
    Some(Refusal::new(Reason::InvalidConnection, format!("the connection sets {both}; set exactly one of the two")))
}

fn cluster_id_malformed(spec: &FerrVaultConnectionSpec) -> Option<Refusal> {
    let oidc = spec.oidc.as_ref()?;
    (!is_uuid(&oidc.cluster_id)).then(|| {
        Refusal::new(
            Reason::InvalidConnection,
            "the connection's spec.oidc.clusterID is not a UUID of 36 characters; correct it",
        )
    })
}

fn cloud_scope_missing(resource: &FerrVaultSecret, spec: &FerrVaultConnectionSpec) -> Option<Refusal> {
    if spec.mode != Mode::Cloud {
        return None;
    }
    let empty = |field: Option<&str>| field.is_none_or(str::is_empty);
    let what = if empty(spec.organization.as_deref()) {
        "spec.organization of the connection"
    } else if empty(resource.spec.project.as_deref()) {
        "spec.project"
    } else {
        return None;
    };
    Some(Refusal::new(
        Reason::MissingCloudScope,
        format!("the connection's mode is cloud, so {what} is required; set it"),
    ))
}

fn target_owned_by_another(
    resource: &FerrVaultSecret,
    connection: &FerrVaultConnection,
    target: &ObservedTarget,
) -> Option<Refusal> {
    let name = resource.target_name();
    match &target.ownership {
        Ownership::Ours => None,
        Ownership::Another { kind, name: owner } => Some(
            Refusal::new(
                Reason::TargetConflict,
                format!(
                    "Secret {name:?} belongs to {kind} {owner:?} and is left alone; \
                 choose another spec.target.name, or delete that {kind}"
                ),
            )
            .holding_restarts(),
        ),
        // The token Secret is made by a person before there is a resource, so it carries no mark of ours.
        Ownership::Nobody if target.managed_by_us || token_key_in_target(resource, connection).is_some() => None,
        Ownership::Nobody => {
            let namespace = resource.metadata.namespace.as_deref().unwrap_or_default();
            let message = format!(
                "Secret {name:?} exists and is not this operator's, so it is left alone; choose another \
                 spec.target.name, delete it, or hand it over: kubectl annotate secret {name} {}={} -n {namespace}",
                ferrvault_api::marks::MANAGED_BY,
                ferrvault_api::marks::MANAGER
            );
            Some(Refusal::new(Reason::TargetConflict, message).holding_restarts())
        }
    }
}

fn target_type_differs(resource: &FerrVaultSecret, target: &ObservedTarget) -> Option<Refusal> {
    let (wanted, found) = (resource.target_type(), target.type_.as_str());
    if wanted == found {
        return None;
    }
    Some(invalid_spec(format!(
        "Secret {:?} has type {found} and Kubernetes does not let a type change; \
         set spec.target.type to {found}, or delete the Secret to have it made anew with type {wanted}",
        resource.target_name()
    )))
}

/// Hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_dns_subdomain(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let label =
        |label: &str| !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-');
    name.len() <= MAX_NAME && name.split('.').all(label)
}

#[cfg(test)]
mod tests;
