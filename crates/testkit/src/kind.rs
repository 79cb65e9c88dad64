//! The kinds that the server knows: one row per kind, so that adding a kind is adding a row.
//!
//! A row says where a kind lives and which of the server's general rules hold for it. What is special about the
//! content of one kind is in `admission`.

use std::sync::Arc;

use serde_json::Value;

use crate::object;
use crate::schema::Schema;

/// When a write raises `metadata.generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none.
    Absent,
    /// A change of `spec`.
    Spec,
    /// A change of `spec` or of the annotations: Deployments.
    SpecAndAnnotations,
    /// A change of anything but metadata and, where it is a subresource, status: custom resources.
    AllButMetadata,
}

/// What the server knows about a kind.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent fact of the real server's registry")]
#[allow(clippy::struct_field_names, reason = "`kind` is what the API calls it")]
pub(crate) struct Kind {
    /// `plural.group`, or the plural alone in the core group; also how messages name the resource.
    pub(crate) id: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Whether status is a subresource, written apart from the rest.
    pub(crate) status: bool,
    pub(crate) generation: Generation,
    /// Whether a PUT without resourceVersion overwrites whatever is there.
    pub(crate) unconditional_update: bool,
    /// Whether a PUT on a name that is not there creates it.
    pub(crate) create_on_update: bool,
    /// Custom resources only: what may be stored.
    pub(crate) schema: Option<Schema>,
}

/// Rows of the built-in kinds: group, version, plural, kind, namespaced, status, generation, unconditional update,
/// create on update.
type Row = (&'static str, &'static str, &'static str, &'static str, bool, bool, Generation, bool, bool);

#[rustfmt::skip]
const BUILT_IN: [Row; 8] = [
    ("", "v1", "namespaces", "Namespace", false, true, Generation::Absent, true, false),
    ("", "v1", "secrets", "Secret", true, false, Generation::Absent, true, false),
    ("apps", "v1", "deployments", "Deployment", true, true, Generation::SpecAndAnnotations, true, false),
    ("apps", "v1", "statefulsets", "StatefulSet", true, true, Generation::Spec, true, false),
    ("apps", "v1", "daemonsets", "DaemonSet", true, true, Generation::Spec, true, false),
    ("coordination.k8s.io", "v1", "leases", "Lease", true, false, Generation::Absent, false, true),
    ("events.k8s.io", "v1", "events", "Event", true, false, Generation::Absent, true, true),
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false, false, Generation::Absent, false, false),
];

impl Kind {
    /// The built-in kinds.
    pub(crate) fn built_in() -> impl Iterator<Item = Arc<Self>> {
        BUILT_IN.into_iter().map(
            |(group, version, plural, kind, namespaced, status, generation, unconditional_update, create_on_update)| {
                Arc::new(Self {
                    id: id(plural, group),
                    group: group.to_owned(),
                    version: version.to_owned(),
                    plural: plural.to_owned(),
                    kind: kind.to_owned(),
                    namespaced,
                    status,
                    generation,
                    unconditional_update,
                    create_on_update,
                    schema: None,
                })
            },
        )
    }

    /// The kind that a `CustomResourceDefinition` declares, in its storage version.
    pub(crate) fn custom(definition: &Value) -> Option<Arc<Self>> {
        let version = object::list(definition, "/spec/versions")
            .iter()
            .find(|version| version.get("storage").and_then(Value::as_bool).unwrap_or_default())?;
        let group = object::text(definition, "/spec/group");
        let plural = object::text(definition, "/spec/names/plural");
        Some(Arc::new(Self {
            id: id(plural, group),
            group: group.to_owned(),
            version: object::text(version, "/name").to_owned(),
            plural: plural.to_owned(),
            kind: object::text(definition, "/spec/names/kind").to_owned(),
            namespaced: object::text(definition, "/spec/scope") == "Namespaced",
            status: version.pointer("/subresources/status").is_some(),
            generation: Generation::AllButMetadata,
            unconditional_update: false,
            create_on_update: false,
            schema: Some(Schema::new(version.pointer("/schema/openAPIV3Schema")?.clone())),
        }))
    }

    /// `apiVersion` of its objects.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `Kind.group`, as messages about invalid objects name it.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// Whether `object` says it is of this kind.
    pub(crate) fn claims(&self, object: &Value) -> bool {
        object::text(object, "/kind") == self.kind && object::text(object, "/apiVersion") == self.api_version()
    }

    /// Whether it is a custom resource.
    pub(crate) fn is_custom(&self) -> bool {
        self.schema.is_some()
    }
}

fn id(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}
