//! FerrVault, which a restart of the operator does not mend: liveness stays green.

use std::time::Instant;

use serde_json::json;

use super::{LIMIT, RECOVERY, STALE};
use crate::silence::alerts::Alert;
use crate::silence::lab::{Lab, SHOP};
use crate::silence::trial::{Sign, Signs, Trial};

/// 5: no call is answered, and no connection is reset.
pub(super) async fn black_hole(lab: &Lab) -> Trial<'_> {
    let mut signs = signs("Reason Unreachable", "Unreachable");
    // The call takes 31 s. In haste, the watchdog finds that late before it is over.
    signs.kubectl = Some(Sign::new("Reason Unreachable, or Fresh False", |look| {
        look.says(SHOP, "Reason", "Unreachable") || look.says(SHOP, "Fresh", "False")
    }));
    signs.kubectl_waits_for_a_threshold = true;
    spoiled(lab, json!({"kind": "stall"}), signs).await
}

/// 6: every call is answered with 429, for as long as it takes.
pub(super) async fn throttled(lab: &Lab) -> Trial<'_> {
    let answer = json!({"kind": "respond", "status": 429, "retry_after": 20});
    spoiled(lab, answer, signs("Reason RateLimited", "RateLimited")).await
}

async fn spoiled(lab: &Lab, action: serde_json::Value, signs: Signs) -> Trial<'_> {
    let (dev, vault) = (&lab.own.scene.cluster.dev, lab.namespace());
    // Changed before: what FerrVault does not answer with was never seen.
    lab.change().await;
    dev.spoil(vault, action).await;
    let mut trial = Trial::begin(lab);
    let now = jiff::Timestamp::now();
    trial.watch(&signs, LIMIT).await;
    if !lab.aside_is_looked_at_since(now).await {
        trial.fault("I9: the other resource waited for it");
    }
    dev.heal(vault).await;
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

/// 7: the token is no longer accepted, until there is another one in its Secret.
pub(super) async fn revoked(lab: &Lab) -> Trial<'_> {
    let dev = &lab.own.scene.cluster.dev;
    let token = lab.token.borrow().clone();
    dev.revoke(&token).await;
    let mut trial = Trial::begin(lab);
    let now = jiff::Timestamp::now();
    lab.change().await;
    let mut signs = signs("Ready False AuthFailed", "AuthFailed");
    // It is tried again after five minutes. In haste that is longer than the grace that a pass has.
    signs.alert = Some(Alert { name: STALE.name, cause: "sync or pass" });
    trial.watch(&signs, LIMIT).await;
    if !lab.aside_is_looked_at_since(now).await {
        trial.fault("I9: the other resource waited for it");
    }
    let token = dev.token(&lab.own.scene.vault()).await;
    lab.own.scene.put_token(&token.token).await;
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

fn signs(told: &'static str, reason: &'static str) -> Signs {
    Signs {
        kubectl: Some(Sign::new(told, move |look| look.says(SHOP, "Reason", reason))),
        metric: Some(Sign::new("ferrvault_secret_sync_errors_total of that reason > 0", move |look| {
            look.metric("ferrvault_secret_sync_errors_total", &[("reason", reason)]) > Some(0.0)
        })),
        alert: Some(STALE),
        ..Signs::default()
    }
}
