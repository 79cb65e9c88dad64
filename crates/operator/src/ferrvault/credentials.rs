//! Who a connection asks as: the token in a Secret beside it, read anew by each pass (once for those that ask at the same
//! moment) and dropped with it, or a bearer won by exchanging the pod's own JWT, kept in memory until shortly before it
//! ends.
//!
//! Whoever may create connections in a namespace is not thereby trusted with the operator's identity: the JWT is only read
//! below one folder, only sent where its audience says, and only to addresses that the operator was started with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ferrvault_api::connection::Oidc;
use ferrvault_api::{FerrVaultConnection, Reason};
use ferrvault_core::content::SecretBytes;
use ferrvault_core::refusal::Refusal;
use ferrvault_core::sync::checks;
use ferrvault_vault::{AllowedUrl, Bearer, BearerGrant, Endpoint, VaultError};
use jiff::SignedDuration;
use zeroize::Zeroizing;

use super::reads::Reads;
use super::{FerrVault, jwt, refusal};
use crate::clock::Clock;
use crate::cluster::access::Cluster;
use crate::cluster::error::{Class, deadline};
use crate::key::ObjectKey;

/// A bearer is exchanged anew this long before it ends: no call lasts longer than half of it.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_secs(60);
/// A projected token is a file of the node's memory; one that does not come within seconds will not come.
const READ_DEADLINE: Duration = Duration::from_secs(5);
/// No JWT is longer than this; a projected one has about 1.5 KB.
const MAX_JWT: u64 = 64 * 1024;

/// What the exchange of the pod's identity is held within.
#[derive(Clone, Debug)]
pub struct OidcLimits {
    /// The folder that `oidc.tokenPath` has to be in.
    pub token_dir: PathBuf,
    /// Where the identity may be sent to.
    pub origins: Vec<AllowedUrl>,
}

/// Tokens and bearers of connections.
pub struct Credentials {
    ferrvault: Arc<dyn FerrVault>,
    clock: Clock,
    limits: OidcLimits,
    grants: Mutex<BTreeMap<String, Arc<Slot>>>,
    /// By Secret and key.
    tokens: Reads<(ObjectKey, String), Result<Bearer, Refusal>>,
}

/// One connection's bearer. The lock is held over an exchange, so that a thousand resources ask for one bearer once.
type Slot = tokio::sync::Mutex<Option<Grant>>;

struct Grant {
    generation: Option<i64>,
    won: BearerGrant,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Exchanges through `ferrvault`, within `limits`.
    pub fn new(ferrvault: Arc<dyn FerrVault>, clock: Clock, limits: OidcLimits) -> Self {
        Self { ferrvault, clock, limits, grants: Mutex::default(), tokens: Reads::default() }
    }

    /// The bearer to ask with.
    pub async fn bearer(
        &self,
        cluster: &Cluster,
        connection: &FerrVaultConnection,
        endpoint: &Endpoint,
    ) -> Result<Bearer, Refusal> {
        if endpoint.is_metadata() && !self.is_allowed(endpoint) {
            return Err(refusal(&VaultError::AddressRefused, "the connection's url"));
        }
        match (&connection.spec.token_secret_ref, &connection.spec.oidc) {
            (Some(reference), None) => {
                // Without a list, any server may be asked with a token of the namespace; with one, only those on it.
                if !self.limits.origins.is_empty() {
                    self.not_allowed(endpoint)?;
                }
                let namespace = connection.metadata.namespace.as_deref().unwrap_or_default();
                let secret = ObjectKey::new(namespace, reference.name.as_str());
                let key = (secret.clone(), reference.key.clone());
                self.tokens.shared(key, Result::is_ok, || token(cluster, &secret, &reference.key)).await
            }
            (None, Some(oidc)) => self.exchanged(connection, oidc, endpoint).await,
            _ => Err(Refusal::new(Reason::InvalidConnection, "set exactly one of tokenSecretRef and oidc")),
        }
    }

    /// After a failed call: whether it was refused a kept bearer, so that one more exchange is worth it. The kept one is
    /// dropped if so.
    pub fn is_stale(&self, connection: &FerrVaultConnection, error: &VaultError) -> bool {
        if !matches!(error, VaultError::Unauthorized { .. }) || connection.spec.oidc.is_none() {
            return false;
        }
        // A lock that is held is an exchange under way, which is as good as having dropped the old one.
        if let Ok(mut kept) = self.slot(connection).try_lock() {
            *kept = None;
        }
        true
    }

    /// Drops what is kept for a connection that is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn slot(&self, connection: &FerrVaultConnection) -> Arc<Slot> {
        let uid = connection.metadata.uid.clone().unwrap_or_default();
        Arc::clone(self.lock().entry(uid).or_default())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Slot>>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exchanged(
        &self,
        connection: &FerrVaultConnection,
        oidc: &Oidc,
        endpoint: &Endpoint,
    ) -> Result<Bearer, Refusal> {
        self.not_allowed(endpoint)?;
        let slot = self.slot(connection);
        let mut kept = slot.lock().await;
        let generation = connection.metadata.generation;
        if let Some(grant) = kept.as_ref()
            && grant.generation == generation
            && self.clock.now() < grant.won.expires_at.saturating_sub(RENEW_BEFORE).unwrap_or(grant.won.expires_at)
        {
            return Ok(grant.won.bearer.clone());
        }
        *kept = None;
        let jwt = self.identity(oidc).await?;
        let won = self
            .ferrvault
            .exchange(endpoint, &oidc.cluster_id, &jwt)
            .await
            .map_err(|error| refusal(&error, "exchanging the pod's identity"))?;
        let bearer = won.bearer.clone();
        *kept = Some(Grant { generation, won });
        Ok(bearer)
    }

    fn is_allowed(&self, endpoint: &Endpoint) -> bool {
        self.limits.origins.iter().any(|entry| entry.covers(endpoint))
    }

    fn not_allowed(&self, endpoint: &Endpoint) -> Result<(), Refusal> {
        if self.is_allowed(endpoint) {
            return Ok(());
        }
        Err(Refusal::new(
            Reason::InvalidConnection,
            format!(
                "the connection would send its credentials to {endpoint}, which the operator was not started for; \
                 add --allow-origin={endpoint} to the operator's arguments if that is FerrVault"
            ),
        ))
    }

    async fn identity(&self, oidc: &Oidc) -> Result<Bearer, Refusal> {
        let unreadable = |message: String| Refusal::passing(Reason::TokenUnreadable, message);
        let path = Path::new(&oidc.token_path).to_owned();
        let folder = self.limits.token_dir.clone();
        let shown = folder.display().to_string();
        let read = tokio::task::spawn_blocking(move || read_below(&folder, &path));
        let text = deadline(READ_DEADLINE, async { read.await.map_err(|_| Unreadable)? }).await.map_err(|_| {
            unreadable(format!("oidc.tokenPath cannot be read as a file in {shown}; mount the projected token there"))
        })?;
        match jwt::is_meant_for(text.expose(), &oidc.audience) {
            Some(true) => Bearer::new(&text).map_err(|error| unreadable(error.to_string())),
            Some(false) => Err(Refusal::new(
                Reason::InvalidConnection,
                "the projected token was not made for oidc.audience; use the audience of the token's volume",
            )),
            None => {
                Err(unreadable("the file at oidc.tokenPath holds no JWT; mount the projected token there".to_owned()))
            }
        }
    }
}

/// A file that could not be read. Why is not told to whoever wrote the path: it would answer questions about the node.
struct Unreadable;

impl From<Unreadable> for crate::cluster::error::CallError {
    fn from(_: Unreadable) -> Self {
        Self::NotFound
    }
}

/// Reads `path` if it is a regular file below `folder`, links resolved: a projected token is one.
fn read_below(folder: &Path, path: &Path) -> Result<SecretBytes, Unreadable> {
    use std::io::Read as _;
    let real = path.canonicalize().map_err(|_| Unreadable)?;
    let folder = folder.canonicalize().map_err(|_| Unreadable)?;
    if !real.starts_with(&folder) || !real.metadata().map_err(|_| Unreadable)?.is_file() {
        return Err(Unreadable);
    }
    let file = std::fs::File::open(&real).map_err(|_| Unreadable)?;
    // Exact room from the start: a vector that grows leaves copies behind.
    let mut text = Zeroizing::new(Vec::with_capacity(usize::try_from(MAX_JWT).unwrap_or(0) + 1));
    file.take(MAX_JWT + 1).read_to_end(&mut text).map_err(|_| Unreadable)?;
    if text.len() as u64 > MAX_JWT {
        return Err(Unreadable);
    }
    Ok(SecretBytes::new(text.trim_ascii().to_vec()))
}

/// The token under `key` of `secret`.
async fn token(cluster: &Cluster, secret: &ObjectKey, key: &str) -> Result<Bearer, Refusal> {
    let (namespace, name) = (&*secret.namespace, &*secret.name);
    let found = cluster.read_secret(secret).await.map_err(|error| {
        let message = error.user_message_for(&format!("reading the token Secret {name}")) + "; it is tried again";
        match error.class() {
            Class::Throttled { after } => Refusal::passing(Reason::TokenUnreadable, message).after(after),
            _ => Refusal::passing(Reason::TokenUnreadable, message),
        }
    })?;
    let Some((type_, content)) = found else {
        return Err(Refusal::new(
            Reason::TokenUnreadable,
            format!("there is no Secret {name:?} in namespace {namespace:?}; create it or correct tokenSecretRef.name"),
        ));
    };
    if checks::grants_rights(&type_) {
        return Err(Refusal::new(
            Reason::InvalidConnection,
            format!(
                "Secret {name:?} has type {type_}, which grants rights of its own and is sent to nobody; use another"
            ),
        ));
    }
    let Some(value) = content.0.get(key) else {
        return Err(Refusal::new(
            Reason::TokenKeyMissing,
            format!("Secret {name:?} has no key {key:?}; add it or correct tokenSecretRef.key"),
        ));
    };
    Bearer::new(value)
        .map_err(|error| Refusal::new(Reason::TokenUnreadable, format!("Secret {name:?}, key {key:?}: {error}")))
}
