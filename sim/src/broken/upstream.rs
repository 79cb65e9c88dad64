//! Lies about FerrVault: what it answered, and when.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ferrvault_core::content::Answer;
use ferrvault_operator::ferrvault::FerrVault;
use ferrvault_vault::{Bearer, BearerGrant, Endpoint, RevealRequest, VaultError};
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::Variant;
use crate::upstream::Upstream;

pub(super) const ALL: &[Variant] = &[
    Variant::vault(
        "takes-part-of-an-answer",
        "keys that FerrVault does not have are left out",
        &["key-missing"],
        |inner| Arc::new(Lying { inner, reveal: Reveal::Partial }),
    ),
    Variant::vault(
        "answer-from-before",
        "an answer is used that was asked for before the target was read",
        &["two-leaders-in-debt", "two-leaders-a-b-c", "two-leaders-a-b-a"],
        |inner| Arc::new(Lying { inner, reveal: Reveal::Kept(Mutex::default()) }),
    ),
    Variant::vault("gives-up", "after a failed call FerrVault is never asked again", &["rotation"], |inner| {
        Arc::new(Lying { inner, reveal: Reveal::Resigned(AtomicBool::new(false)) })
    }),
    Variant::vault("invents", "a value is trimmed on its way", &["creation"], |inner| {
        Arc::new(Lying { inner, reveal: Reveal::Trimmed })
    }),
];

/// An answer is kept for this long, and used again: by the second process only, so that the first one goes on.
const KEPT: Duration = Duration::from_mins(1);

enum Reveal {
    Partial,
    Kept(Mutex<BTreeMap<String, (Instant, Answer)>>),
    Resigned(AtomicBool),
    Trimmed,
}

struct Lying {
    inner: Upstream,
    reveal: Reveal,
}

impl FerrVault for Lying {
    fn reveal<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        bearer: &'a Bearer,
        request: &'a RevealRequest,
    ) -> BoxFuture<'a, Result<Answer, VaultError>> {
        Box::pin(async move {
            if let Reveal::Kept(kept) = &self.reveal {
                let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((at, answer)) = kept.get(&request.vault)
                    && at.elapsed() < KEPT
                    && self.inner.who == crate::scenario::TWO
                {
                    return Ok(answer.clone());
                }
            }
            if let Reveal::Resigned(resigned) = &self.reveal
                && resigned.load(Ordering::Relaxed)
            {
                std::future::pending::<()>().await;
            }
            let mut answer = self.inner.reveal(endpoint, bearer, request).await;
            match (&self.reveal, &mut answer) {
                (Reveal::Partial, Ok(answer)) => answer.missing.clear(),
                (Reveal::Kept(kept), Ok(answer)) => {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.insert(request.vault.clone(), (Instant::now(), answer.clone()));
                }
                (Reveal::Resigned(resigned), Err(_)) => resigned.store(true, Ordering::Relaxed),
                (Reveal::Trimmed, Ok(answer)) => {
                    for value in answer.content.0.values_mut() {
                        let shorter = value.expose().split_last().map(|(_, rest)| rest.to_vec()).unwrap_or_default();
                        *value = ferrvault_core::content::SecretBytes::new(shorter);
                    }
                }
                _ => {}
            }
            answer
        })
    }

    fn health<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
        self.inner.health(endpoint)
    }

    fn exchange<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        cluster_id: &'a str,
        jwt: &'a Bearer,
    ) -> BoxFuture<'a, Result<BearerGrant, VaultError>> {
        self.inner.exchange(endpoint, cluster_id, jwt)
    }
}
