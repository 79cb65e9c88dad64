//! What has to hold when a fault is over, whatever it was: the invariants, by their numbers in ARCHITECTURE.md, as far as
//! they can be seen from outside.

use ferrvault_api::{FerrVaultSecret, condition};

use super::lab::{ASIDE, LATE, Lab, SHOP, WEB};
use super::look::Look;
use crate::audit::Request;
use crate::objects;

/// Passes that are sat through to see that nothing but them happens.
const AT_REST: usize = 2;

/// What is written at rest.
const HEARTBEATS: [&str; 3] = ["ferrvaultsecrets/status", "ferrvaultconnections/status", "leases"];

/// What does not hold. To be asked when the value has arrived.
pub(super) async fn what_does_not_hold(lab: &Lab, by_annotation: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let (scene, user) = (&lab.own.scene, lab.own.release.user());
    settle(lab).await;

    // What was put off by the fault is done first: an event, a pass over the other resource.
    pass(lab, by_annotation).await;
    pass(lab, by_annotation).await;
    // I7: the next pass comes by itself; with an interval of an hour, when it is asked for.
    let before = scene.cluster.requests_of(&user).len();
    for _ in 0..AT_REST {
        pass(lab, by_annotation).await;
    }
    // I10: at rest, nothing is written but heartbeats, of connections too, and the lease.
    let requests = scene.cluster.requests_of(&user);
    let writes = requests.iter().skip(before).filter(|request| is_write(request));
    let beyond = writes.filter(|request| !HEARTBEATS.contains(&&*request.resource));
    wrong.extend(beyond.take(3).map(|request| format!("I10: at rest it wrote: {}", request.told())));
    // I6: nothing was ever written that is not its own.
    let strange = requests.iter().filter(|request| is_write(request) && request.code < 300 && !is_own(lab, request));
    wrong.extend(strange.take(3).map(|request| format!("I6: it wrote {} in {}", request.told(), request.namespace)));

    // I1, I2, I3: as often as the content changed, and where it did not, never.
    for (workload, due) in [(WEB, lab.restarts()), (ASIDE, 0)] {
        let (seen, _) = scene.restarts("Deployment", workload).await;
        if seen != due {
            wrong.push(format!("I1 to I3: {workload} was restarted {seen} times where {due} were due"));
        }
    }
    // I8: no byte of a value or token in what the operator said.
    let logs = scene.cluster.canaries.found_in(&lab.said());
    wrong.extend(logs.map(|found| format!("I8: the log: {found}")));
    let listing = lab.kubectl(&["get", "fvs,fvc,events,deployments", "-o", "yaml"]).await;
    let found = scene.cluster.canaries.found_in(&listing);
    wrong.extend(found.map(|found| format!("I8: what kubectl prints: {found}")));
    wrong
}

/// Sits through a pass over `shop`.
async fn pass(lab: &Lab, by_annotation: bool) {
    if !by_annotation {
        lab.own.scene.passes(SHOP, 1).await;
        return;
    }
    let wish = lab.ask_for_a_pass(SHOP).await;
    let handled = |resource: &FerrVaultSecret| {
        let said = resource.status.as_ref().and_then(|status| status.last_handled_refresh.as_ref());
        if said == Some(&wish) { Ok(()) } else { Err(format!("{said:?}")) }
    };
    lab.own.scene.until_it(SHOP, "the pass that was asked for has ended", handled).await;
}

/// I4 and I5: the conditions say that all is well, and it is.
async fn settle(lab: &Lab) {
    let scene = &lab.own.scene;
    let resource = scene.synced(SHOP).await;
    let version = scene.target(SHOP, &resource, &[("K", lab.value().as_bytes())]).await;
    let fine = |resource: &FerrVaultSecret, type_: &str| {
        objects::condition(objects::conditions(resource), type_).is_some_and(|found| found.status == "True")
    };
    for type_ in [condition::ROLLOUT_RESTARTED, condition::FRESH] {
        let what = format!("{type_} is true again");
        scene
            .until_it(SHOP, &what, |now: &FerrVaultSecret| fine(now, type_).then_some(()).ok_or("not yet".to_owned()))
            .await;
    }
    let recorded = |resource: &FerrVaultSecret| {
        let status = resource.status.clone().unwrap_or_default();
        let all = [status.last_rollout_hash, status.content_hash];
        if all.iter().all(|hash| hash.as_ref() == Some(&version)) { Ok(()) } else { Err(format!("{all:?}")) }
    };
    scene.until_it(SHOP, "records the version that its target has", recorded).await;
    scene.synced(ASIDE).await;
    let ready = |look: &Look| look.ready.as_ref().is_some_and(|(status, _)| *status == 200);
    scene
        .until("readiness is green", async || {
            lab.look(|look| if ready(look) { Ok(()) } else { Err(format!("{:?}", look.ready)) }).await
        })
        .await;
}

fn is_write(request: &Request) -> bool {
    // Of a right that is reviewed nothing is kept.
    !matches!(request.verb.as_str(), "get" | "list" | "watch") && request.resource != "selfsubjectaccessreviews"
}

fn is_own(lab: &Lab, request: &Request) -> bool {
    let (home, here) = (&lab.own.release.namespace, lab.namespace());
    match request.resource.as_str() {
        "leases" => request.namespace == *home,
        "secrets" => {
            request.namespace == *home || (request.namespace == here && [SHOP, ASIDE, LATE].contains(&&*request.name))
        }
        "deployments" => request.namespace == here && [WEB, ASIDE].contains(&&*request.name),
        "ferrvaultsecrets/status" | "ferrvaultconnections" | "ferrvaultconnections/status" | "events" => {
            request.namespace == here
        }
        _ => false,
    }
}
