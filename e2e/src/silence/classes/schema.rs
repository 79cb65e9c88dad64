//! Definitions that go, and objects of another schema. Each on a cluster of its own.

use std::time::Instant;

use ferrvault_api::FerrVaultSecret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::json;
use xtask::crds;

use super::{LIMIT, RECOVERY, stuck};
use crate::eventually::{SOON, eventually};
use crate::objects::restart;
use crate::silence::alerts::Alert;
use crate::silence::lab::{ASIDE, Lab, SHOP, WEB};
use crate::silence::trial::{Sign, Signs, Trial};

const DEFINITION: &str = "ferrvaultsecrets.ferrvault.com";

/// 12: the definition goes, and every resource with it, and every target with its resource. Whoever keeps manifests
/// applies them again.
pub(super) async fn deleted(lab: &Lab) -> Trial<'_> {
    let (scene, cluster) = (&lab.own.scene, &lab.own.scene.cluster);
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    definitions.delete(DEFINITION, &DeleteParams::default()).await.unwrap();
    let mut trial = Trial::begin(lab);
    let signs = Signs {
        kubectl: Some(Sign::new("kubectl get fvs fails", |look| look.listing.is_err())),
        metric: Some(Sign::new("ferrvault_operator_ready == 0", |look| {
            look.metric("ferrvault_operator_ready", &[]) == Some(0.0)
        })),
        alert: Some(stuck("readiness")),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    let says = lab.look(|look| look.ready.clone()).await;
    if !says.as_ref().is_some_and(|(_, says)| says.contains("is the CRD installed?")) {
        trial.fault(format!("readiness does not name what is missing: {says:?}"));
    }
    let gone = async || definitions.get_opt(DEFINITION).await.unwrap().map_or(Ok(()), |_| Err("there".to_owned()));
    eventually("the definition is gone", SOON, gone).await;
    let own = crds::definitions().into_iter().filter(|it| it.metadata.name.as_deref() == Some(DEFINITION));
    cluster.install_definitions(own).await;
    // A new resource has a new identity and a baseline: it restarts nothing, until its content changes.
    let healed = Instant::now();
    for (name, vault, connection) in
        [(SHOP, scene.name.clone(), "main"), (ASIDE, format!("{}-aside", scene.name), ASIDE)]
    {
        let workload = if name == SHOP { WEB } else { ASIDE };
        let spec = json!({"connectionRef": {"name": connection}, "refreshInterval": "5s",
                          "rolloutRestart": [restart("Deployment", workload)]});
        scene.create::<FerrVaultSecret>(crate::objects::resource(name, &vault, spec)).await;
    }
    trial.recover(healed, RECOVERY).await;
    lab.change().await;
    trial.recover(healed, RECOVERY).await;
    trial
}

/// 13: a resource was stored under another schema, and this version cannot read it.
pub(super) async fn undecodable(lab: &Lab) -> Trial<'_> {
    let (scene, cluster) = (&lab.own.scene, &lab.own.scene.cluster);
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let loose = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
                        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]);
    let loose: Patch<()> = Patch::Json(serde_json::from_value(loose).unwrap());
    definitions.patch(DEFINITION, &PatchParams::default(), &loose).await.unwrap();
    let kind = ApiResource::erase::<FerrVaultSecret>(&());
    let odd: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &scene.name, &kind);
    let object = json!({"apiVersion": "ferrvault.com/v1alpha1", "kind": "FerrVaultSecret", "metadata": {"name": "odd"},
                        "spec": {"connectionRef": {"name": "main"}, "vault": {"not": "a text"}}});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    eventually("the looser schema is in force", SOON, async || {
        odd.create(&PostParams::default(), &object).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    let mut trial = Trial::begin(lab);
    let now = jiff::Timestamp::now();
    lab.change().await;
    let signs = Signs {
        kubectl: Some(Sign::new("Ready False InvalidSpec", |look| look.says("odd", "Reason", "InvalidSpec"))),
        metric: Some(Sign::new("ferrvault_unreadable_objects > 0", |look| {
            look.metric("ferrvault_unreadable_objects", &[("kind", "FerrVaultSecret")]) > Some(0.0)
        })),
        alert: Some(Alert { name: "FerrVaultSecretStale", cause: "unreadable" }),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    if !lab.aside_is_looked_at_since(now).await {
        trial.fault("I9: the others waited for it");
    }
    odd.delete("odd", &DeleteParams::default()).await.unwrap();
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}
