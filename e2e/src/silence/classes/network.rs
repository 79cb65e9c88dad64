//! Calls to the API server that are never answered.

use std::time::{Duration, Instant};

use ferrvault_api::FerrVaultSecret;
use http::Method;
use serde_json::json;

use super::rights::attempt_stands_still;
use super::{LIMIT, RECOVERY, ROLLOUT, stuck};
use crate::proxy::{Calls, Fault};
use crate::silence::lab::{LATE, Lab, SHOP, WEB};
use crate::silence::trial::{Sign, Signs, Trial};

/// A watch that is open and says nothing is not believed for longer: its list is read again. Three periods of 55 s.
const NOT_BELIEVED: Duration = Duration::from_secs(4 * 55);

/// 2: reading the workload takes for ever.
pub(super) async fn workload_call(lab: &Lab) -> Trial<'_> {
    lab.proxy.spoil(Calls::with_path(format!("/deployments/{WEB}")), Fault::Hang);
    let mut trial = Trial::begin(lab);
    let now = jiff::Timestamp::now();
    lab.change().await;
    let signs = Signs {
        kubectl: Some(Sign::new("Rollout RolloutFailed", |look| look.says(SHOP, "Rollout", "RolloutFailed"))),
        metric: Some(Sign::new("ferrvault_secret_rollouts_owed{state=\"failed\"} > 0", |look| {
            look.metric("ferrvault_secret_rollouts_owed", &[("name", SHOP), ("state", "failed")]).is_some()
        })),
        alert: Some(ROLLOUT),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    if !lab.aside_is_looked_at_since(now).await {
        trial.fault("I9: the other resource waited for it");
    }
    lab.proxy.heal();
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

/// 2, at its worst: the restart is carried out, and nobody hears of it. It is found out by looking, and not done again.
pub(super) async fn workload_answer(lab: &Lab) -> Trial<'_> {
    lab.proxy.spoil(Calls::with_path(format!("/deployments/{WEB}")).method(Method::PATCH), Fault::Swallow);
    let mut trial = Trial::begin(lab);
    lab.change().await;
    trial.recover(Instant::now(), RECOVERY).await;
    // Well again is more than a template that has changed: it is on record, while the answer is still kept back.
    let resource = lab.own.scene.get::<FerrVaultSecret>(SHOP).await;
    let version = lab.own.scene.target(SHOP, &resource, &[("K", lab.value().as_bytes())]).await;
    let recorded = |resource: &FerrVaultSecret| {
        let said = resource.status.as_ref().and_then(|status| status.last_rollout_hash.clone());
        if said.as_ref() == Some(&version) { Ok(()) } else { Err(format!("{said:?}")) }
    };
    lab.own.scene.until_it(SHOP, "the restart is on record", recorded).await;
    trial.printed = lab.kubectl(&["get", "fvs", "-o", "wide"]).await;
    lab.proxy.heal();
    trial
}

/// 3: nothing gets through to the API server and nothing comes back, and no connection is reset.
pub(super) async fn api_server(lab: &Lab) -> Trial<'_> {
    lab.proxy.spoil(Calls::all(), Fault::BlackHole);
    let mut trial = Trial::begin(lab);
    lab.change().await;
    let signs = Signs {
        kubectl: Some(attempt_stands_still()),
        metric: Some(Sign::new("ferrvault_apiserver_silence_seconds > 30", |look| {
            look.metric("ferrvault_apiserver_silence_seconds", &[]) > Some(30.0)
        })),
        alert: Some(stuck("leader")),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    lab.proxy.heal();
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

/// 4: the watch of resources opens, as often as it is opened, and never says a word.
pub(super) async fn one_watch(lab: &Lab) -> Trial<'_> {
    lab.proxy.spoil(Calls::with_path("/ferrvaultsecrets").watches(), Fault::Silence);
    let mut trial = Trial::begin(lab);
    let now = jiff::Timestamp::now();
    lab.change().await;
    // Somebody makes a resource that the watch says nothing of.
    let late = crate::objects::resource(LATE, lab.namespace(), json!({"refreshInterval": "5s"}));
    lab.own.scene.create::<FerrVaultSecret>(late).await;
    let made = Instant::now();
    let of = ("watch", "ferrvaultsecrets.ferrvault.com");
    let hasty = lab.mode.hooked.is_some();
    let signs = Signs {
        metric: Some(Sign::new("ferrvault_watch_silence_seconds > 55", move |look| {
            look.metric("ferrvault_watch_silence_seconds", &[of]) > Some(55.0)
        })),
        alert: Some(stuck("watch")),
        // Without hooks the threshold is above ten minutes.
        red: hasty.then_some("the watch of ferrvaultsecrets.ferrvault.com has heard nothing"),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    if !lab.aside_is_looked_at_since(now).await {
        trial.fault("I9: the other resource waited for it");
    }
    // The kubelet would restart it now. It has to do without: what is new is found by its list.
    let found = async || lab.look(|look| look.says(LATE, "Ready", "True")).await;
    while hasty && !found().await {
        if made.elapsed() > NOT_BELIEVED {
            trial.fault("what is new was not found while the watch was silent");
            break;
        }
        lab.look_on(1).await;
    }
    lab.proxy.heal();
    trial.recover(Instant::now(), RECOVERY).await;
    lab.own.scene.synced(LATE).await;
    // Liveness is green again at the next bookmark.
    lab.own
        .scene
        .until("liveness is green", async || {
            lab.look(|look| {
                let green = look.health.as_ref().is_some_and(|(status, _)| *status == 200);
                if green { Ok(()) } else { Err(format!("{:?}", look.health)) }
            })
            .await
        })
        .await;
    lab.own.scene.delete::<FerrVaultSecret>(LATE).await;
    trial
}
