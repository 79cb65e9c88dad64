//! Secrets: the target, and the token beside it.
//!
//! Read into types of our own, because k8s-openapi's `Secret` prints its data and is not wiped. What is read here is
//! dropped with the pass that read it.

use std::collections::BTreeMap;

use ferrvault_api::{FerrVaultSecret, GROUP, VERSION, marks};
use ferrvault_core::content::{Content, DataPatch, SecretData};
use ferrvault_core::sync::{ObservedTarget, Ownership, version_on_target};
use ferrvault_core::version::Version;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Patch, PostParams};
use kube::core::{PartialObjectMeta, TypeMeta};
use kube::{Api, Resource};
use serde::{Deserialize, Serialize};

use super::access::{Cluster, patch_params};
use super::error::CallError;
use crate::key::ObjectKey;

/// A Secret that cannot be printed.
#[derive(Clone, Serialize, Deserialize, kube::Resource)]
#[resource(inherit = Secret)]
struct SecretObject {
    #[serde(flatten, default)]
    types: Option<TypeMeta>,
    metadata: ObjectMeta,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    type_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    immutable: Option<bool>,
    #[serde(default)]
    data: Option<SecretData>,
}

impl std::fmt::Debug for SecretObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretObject").field("name", &self.metadata.name).finish_non_exhaustive()
    }
}

/// The target as it was read, with what a write needs besides.
#[derive(Clone, Debug)]
pub struct TargetRead {
    /// What the decision looks at.
    pub observed: ObservedTarget,
    /// All owners, so that a write keeps those that are not ours.
    owners: Vec<OwnerReference>,
}

/// The target's version without its data: what the restart stage reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetMark {
    /// Of this read.
    pub resource_version: String,
    /// The version it carries.
    pub version: Option<Version>,
    /// Whether it is ours to go by: our own, or unowned with our mark.
    pub is_ours: bool,
}

/// The content and the marks that a target gets.
#[derive(Clone, Copy, Debug)]
pub struct TargetContent<'a> {
    /// Whose target it is.
    pub resource: &'a FerrVaultSecret,
    /// Its version.
    pub version: &'a Version,
    /// Whether it is kept without an owner reference.
    pub unowned: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SecretPatch<'a> {
    metadata: MetadataPatch<'a>,
    data: &'a DataPatch,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MetadataPatch<'a> {
    resource_version: &'a str,
    annotations: BTreeMap<String, String>,
    owner_references: Vec<OwnerReference>,
}

impl std::fmt::Debug for SecretPatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretPatch").finish_non_exhaustive()
    }
}

impl Cluster {
    /// Reads the target of a resource; `None` when there is none.
    pub async fn read_target(&self, resource: &FerrVaultSecret) -> Result<Option<TargetRead>, CallError> {
        let api = self.secrets(namespace_of(resource));
        let Some(object) = self.read(api.get_opt(resource.target_name())).await? else { return Ok(None) };
        let owners = object.metadata.owner_references.unwrap_or_default();
        let annotations = object.metadata.annotations.unwrap_or_default();
        let observed = ObservedTarget {
            resource_version: object.metadata.resource_version.unwrap_or_default(),
            type_: object.type_.unwrap_or_else(|| "Opaque".to_owned()),
            ownership: ownership(&owners, resource),
            managed_by_us: is_managed_by_us(&annotations),
            immutable: object.immutable == Some(true),
            version: version_on_target(annotations.get(marks::CONTENT_HASH).map(String::as_str)),
            content: object.data.unwrap_or_default().into(),
        };
        Ok(Some(TargetRead { observed, owners }))
    }

    /// Reads the target's version and nothing of its data; `None` when there is no target.
    pub async fn read_target_mark(&self, resource: &FerrVaultSecret) -> Result<Option<TargetMark>, CallError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace_of(resource));
        let Some(object) = self.read(api.get_metadata_opt(resource.target_name())).await? else { return Ok(None) };
        let annotations = object.metadata.annotations.clone().unwrap_or_default();
        let owners = object.metadata.owner_references.clone().unwrap_or_default();
        let is_ours = match ownership(&owners, resource) {
            Ownership::Ours => true,
            Ownership::Nobody => is_managed_by_us(&annotations),
            Ownership::Another { .. } => false,
        };
        Ok(Some(TargetMark {
            resource_version: resource_version(&object),
            version: version_on_target(annotations.get(marks::CONTENT_HASH).map(String::as_str)),
            is_ours,
        }))
    }

    /// Reads type and data of a Secret beside a connection, for one key of it.
    pub async fn read_secret(&self, key: &ObjectKey) -> Result<Option<(String, Content)>, CallError> {
        let object = self.read(self.secrets(&key.namespace).get_opt(&key.name)).await?;
        Ok(object.map(|object| (object.type_.unwrap_or_default(), object.data.unwrap_or_default().into())))
    }

    /// Makes the target. [`CallError::AlreadyExists`] when somebody was faster. Gives its resourceVersion.
    pub async fn create_target(&self, target: TargetContent<'_>, content: &Content) -> Result<String, CallError> {
        let resource = target.resource;
        let object = SecretObject {
            types: Some(TypeMeta::resource::<Secret>()),
            metadata: ObjectMeta {
                name: Some(resource.target_name().to_owned()),
                namespace: resource.metadata.namespace.clone(),
                annotations: Some(annotations(target.version)),
                owner_references: Some(owners(&[], target)),
                ..ObjectMeta::default()
            },
            type_: Some(resource.target_type().to_owned()),
            immutable: None,
            data: Some(content.clone().into()),
        };
        let params = PostParams { field_manager: Some(marks::MANAGER.to_owned()), ..PostParams::default() };
        let made = self.write_values(self.secrets(namespace_of(resource)).create(&params, &object)).await?;
        Ok(made.metadata.resource_version.unwrap_or_default())
    }

    /// Patches the target on condition that it is still as it was read. Gives its new resourceVersion.
    pub async fn patch_target(
        &self,
        target: TargetContent<'_>,
        read: &TargetRead,
        data: &DataPatch,
    ) -> Result<String, CallError> {
        let patch = SecretPatch {
            metadata: MetadataPatch {
                resource_version: &read.observed.resource_version,
                annotations: annotations(target.version),
                owner_references: owners(&read.owners, target),
            },
            data,
        };
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace_of(target.resource));
        let name = target.resource.target_name();
        // Metadata only: the answer to a write need not carry the values back.
        let patched = self.write_values(api.patch_metadata(name, &patch_params(), &Patch::Merge(&patch))).await?;
        Ok(resource_version(&patched))
    }

    fn secrets(&self, namespace: &str) -> Api<SecretObject> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Namespace of a resource; the API never hands one out without.
pub(super) fn namespace_of<K: Resource>(resource: &K) -> &str {
    resource.meta().namespace.as_deref().unwrap_or_default()
}

fn resource_version(object: &PartialObjectMeta<Secret>) -> String {
    object.metadata.resource_version.clone().unwrap_or_default()
}

fn is_managed_by_us(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(marks::MANAGED_BY).is_some_and(|by| by == marks::MANAGER)
}

fn ownership(owners: &[OwnerReference], resource: &FerrVaultSecret) -> Ownership {
    match owners.iter().find(|owner| owner.controller == Some(true)) {
        None => Ownership::Nobody,
        Some(owner) if resource.metadata.uid.as_deref() == Some(&owner.uid) => Ownership::Ours,
        Some(owner) => Ownership::Another { kind: owner.kind.clone(), name: owner.name.clone() },
    }
}

fn annotations(version: &Version) -> BTreeMap<String, String> {
    BTreeMap::from([
        (marks::MANAGED_BY.to_owned(), marks::MANAGER.to_owned()),
        (marks::CONTENT_HASH.to_owned(), version.as_str().to_owned()),
    ])
}

/// The owners after a write: everybody else's as they were, ours exactly when it is wanted.
fn owners(before: &[OwnerReference], target: TargetContent<'_>) -> Vec<OwnerReference> {
    let uid = target.resource.metadata.uid.as_deref().unwrap_or_default();
    let mut after: Vec<OwnerReference> = before.iter().filter(|owner| owner.uid != uid).cloned().collect();
    if !target.unowned {
        after.push(OwnerReference {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: "FerrVaultSecret".to_owned(),
            name: target.resource.metadata.name.clone().unwrap_or_default(),
            uid: uid.to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        });
    }
    after
}
