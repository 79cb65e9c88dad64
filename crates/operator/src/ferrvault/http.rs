//! FerrVault over the network: one client per address, made when first asked for, and one memory for all their answers.
//!
//! Addresses of the node and its cloud are not called unless the operator was started for them: whoever may create a
//! connection in one namespace could otherwise ask a metadata service with the operator's place in the network.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ferrvault_core::content::Answer;
use ferrvault_vault::{
    AllowedUrl, AnswerMemory, Bearer, BearerGrant, ClientOptions, Endpoint, Reachable, RevealRequest, SetupError,
    VaultClient, VaultError,
};
use futures::future::BoxFuture;

use super::{FerrVault, held};

/// Clients kept at most. Connections are few; more addresses than this means somebody makes and deletes them in a loop,
/// and then starting afresh costs a TLS handshake each.
const MOST_CLIENTS: usize = 256;

/// Calls over HTTP.
#[derive(Default)]
pub struct Http {
    clients: Mutex<HashMap<Endpoint, VaultClient>>,
    memory: AnswerMemory,
    allowed: Vec<AllowedUrl>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl Http {
    /// Calls that may also go to what is `allowed`, wherever that is.
    pub fn new(allowed: Vec<AllowedUrl>) -> Self {
        Self { allowed, ..Self::default() }
    }

    /// The memory that its answers take.
    #[cfg(test)]
    pub(super) fn memory(&self) -> &AnswerMemory {
        &self.memory
    }

    fn client(&self, endpoint: &Endpoint) -> Result<VaultClient, VaultError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(endpoint) {
            return Ok(client.clone());
        }
        let is_allowed = self.allowed.iter().any(|entry| entry.covers(endpoint));
        let reachable = if is_allowed { Reachable::Any } else { Reachable::NoMetadata };
        let options = ClientOptions { reachable, ..ClientOptions::default() };
        let client = VaultClient::new(endpoint.clone(), options).map_err(|error| unusable(&error))?;
        if clients.len() >= MOST_CLIENTS {
            clients.clear();
        }
        clients.insert(endpoint.clone(), client.clone());
        Ok(client)
    }
}

fn unusable(error: &SetupError) -> VaultError {
    VaultError::Unreachable { why: error.to_string() }
}

impl FerrVault for Http {
    fn reveal<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        bearer: &'a Bearer,
        request: &'a RevealRequest,
    ) -> BoxFuture<'a, Result<Answer, VaultError>> {
        Box::pin(async move {
            let client = self.client(endpoint)?;
            let (answer, claim) = client.reveal_within(&self.memory, held::namespace(), bearer, request).await?;
            held::keep(claim);
            Ok(answer)
        })
    }

    fn health<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async move { self.client(endpoint)?.health().await })
    }

    fn me<'a>(&'a self, endpoint: &'a Endpoint, bearer: &'a Bearer) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async move { self.client(endpoint)?.me(bearer).await.map(drop) })
    }

    fn exchange<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        cluster_id: &'a str,
        jwt: &'a Bearer,
    ) -> BoxFuture<'a, Result<BearerGrant, VaultError>> {
        Box::pin(async move { self.client(endpoint)?.oidc_exchange(cluster_id, jwt).await })
    }
}
