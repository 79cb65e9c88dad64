//! FerrVault over the network: one client per address, made when first asked for.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ferrvault_core::content::Answer;
use ferrvault_vault::{
    Bearer, BearerGrant, ClientOptions, Endpoint, RevealRequest, SetupError, VaultClient, VaultError,
};
use futures::future::BoxFuture;

use super::FerrVault;

/// Clients kept at most. Connections are few; more addresses than this means somebody makes and deletes them in a loop,
/// and then starting afresh costs a TLS handshake each.
const MOST_CLIENTS: usize = 256;

/// Calls over HTTP.
#[derive(Default)]
pub struct Http(Mutex<HashMap<Endpoint, VaultClient>>);

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl Http {
    fn client(&self, endpoint: &Endpoint) -> Result<VaultClient, VaultError> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(endpoint) {
            return Ok(client.clone());
        }
        let client = VaultClient::new(endpoint.clone(), ClientOptions::default()).map_err(|error| unusable(&error))?;
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
        Box::pin(async move { self.client(endpoint)?.reveal(bearer, request).await })
    }

    fn health<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async move { self.client(endpoint)?.health().await })
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
