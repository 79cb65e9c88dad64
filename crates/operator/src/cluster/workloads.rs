//! Workloads: `apps` is neither listed nor watched, so each is read when a restart is owed and stamped by one patch.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ferrvault_api::secret::{WorkloadKind, WorkloadRef};
use ferrvault_api::{FerrVaultSecret, marks};
use ferrvault_core::restart::WorkloadState;
use ferrvault_core::version::Version;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Patch;
use kube::core::DynamicResourceScope;
use kube::{Api, Resource};
use serde::Deserialize;
use serde_json::json;

use super::access::{Cluster, patch_params};
use super::error::CallError;
use super::secrets::namespace_of;

/// Of a Deployment, `StatefulSet` or `DaemonSet` only what a restart looks at.
#[derive(Clone, Debug, Deserialize)]
struct Workload {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: WorkloadSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct WorkloadSpec {
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    template: Template,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Template {
    metadata: Option<TemplateMetadata>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct TemplateMetadata {
    annotations: Option<BTreeMap<String, String>>,
}

impl Resource for Workload {
    type DynamicType = WorkloadKind;
    type Scope = DynamicResourceScope;

    fn kind(kind: &WorkloadKind) -> Cow<'_, str> {
        kind.as_str().into()
    }

    fn group(_: &WorkloadKind) -> Cow<'_, str> {
        "apps".into()
    }

    fn version(_: &WorkloadKind) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(kind: &WorkloadKind) -> Cow<'_, str> {
        match kind {
            WorkloadKind::Deployment => "deployments",
            WorkloadKind::StatefulSet => "statefulsets",
            WorkloadKind::DaemonSet => "daemonsets",
        }
        .into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Cluster {
    /// Reads one workload. A read that fails is part of what was observed, so it is no error here.
    pub async fn read_workload(&self, resource: &FerrVaultSecret, workload: &WorkloadRef) -> WorkloadState {
        let api = self.workloads(resource, workload.kind);
        match self.read(api.get_opt(&workload.name)).await {
            Ok(None) => WorkloadState::Missing,
            Ok(Some(object)) => {
                let annotations = object.spec.template.metadata.and_then(|metadata| metadata.annotations);
                let key = marks::workload_mark(uid_of(resource));
                WorkloadState::Present {
                    resource_version: object.metadata.resource_version.unwrap_or_default(),
                    mark: annotations.as_ref().and_then(|all| all.get(&key)).map(Version::parse),
                    paused: object.spec.paused,
                }
            }
            Err(error) => WorkloadState::Unreadable(error.user_message_for("reading it")),
        }
    }

    /// Stamps `version` on a workload's pod template, which restarts its pods, on condition that nobody wrote since it
    /// was read.
    pub async fn stamp_workload(
        &self,
        resource: &FerrVaultSecret,
        workload: &WorkloadRef,
        resource_version: &str,
        version: &Version,
        now: Timestamp,
    ) -> Result<(), CallError> {
        let patch = json!({
            "metadata": { "resourceVersion": resource_version },
            "spec": { "template": { "metadata": { "annotations": {
                marks::RESTARTED_AT: now.to_string(),
                marks::workload_mark(uid_of(resource)): version.as_str(),
            }}}}
        });
        let api = self.workloads(resource, workload.kind);
        self.write(api.patch_metadata(&workload.name, &patch_params(), &Patch::Merge(&patch))).await.map(|_| ())
    }

    fn workloads(&self, resource: &FerrVaultSecret, kind: WorkloadKind) -> Api<Workload> {
        Api::namespaced_with(self.client.clone(), namespace_of(resource), &kind)
    }
}

fn uid_of(resource: &FerrVaultSecret) -> &str {
    resource.metadata.uid.as_deref().unwrap_or_default()
}
