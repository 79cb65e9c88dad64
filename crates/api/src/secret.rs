//! `FerrVaultSecret`: which keys of a vault belong into which Secret, and which workloads restart when they change.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{null_is_absent, null_is_empty};

/// A Go duration without `-`, and short enough not to overflow: 999,999 h (114 years), 9,999,999 m (19 years) and just
/// below 32 years of each smaller unit are 260 years together, where Go's limit is 292.
///
/// Not CEL's own `duration`: on an overflow it ends in an error, and while a rule that a stored object merely breaks is
/// forgiven as long as the field stays as it is, a rule that ends in an error is not. Such an object could then never
/// get a status again. The exact parser is the core's.
const DURATION_RULE: &str = concat!(
    "self.matches('^[+]?(0|(",
    "([0-9]{1,6}([.][0-9]*)?|[.][0-9]+)h|",
    "([0-9]{1,7}([.][0-9]*)?|[.][0-9]+)m|",
    "([0-9]{1,9}([.][0-9]*)?|[.][0-9]+)s|",
    "([0-9]{1,12}([.][0-9]*)?|[.][0-9]+)ms|",
    "([0-9]{1,15}([.][0-9]*)?|[.][0-9]+)(us|µs|μs)|",
    "([0-9]{1,18}([.][0-9]*)?|[.][0-9]+)ns",
    ")+)$')"
);

/// As much of the annotation `ferrvault.com/refresh` as counts, in bytes. It is repeated in the status, and the API server
/// takes annotations of 256 KiB; a time or a UUID, which people write there, has at most 36.
const REFRESH_COUNTS: usize = 256;

/// Keeps one Kubernetes Secret equal to keys of a FerrVault vault.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "ferrvault.com",
    version = "v1alpha1",
    kind = "FerrVaultSecret",
    plural = "ferrvaultsecrets",
    singular = "ferrvaultsecret",
    shortname = "fvs",
    namespaced,
    status = "FerrVaultSecretStatus",
    doc = "Keeps one Kubernetes Secret equal to keys of a FerrVault vault, and restarts workloads when they change.",
    derive = "PartialEq",
    printcolumn(name = "Vault", type_ = "string", json_path = ".spec.vault"),
    printcolumn(name = "Project", type_ = "string", json_path = ".spec.project", priority = 1),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Reason", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].reason"#),
    printcolumn(name = "Fresh", type_ = "string", json_path = r#".status.conditions[?(@.type=="Fresh")].status"#),
    printcolumn(
        name = "Rollout",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="RolloutRestarted")].reason"#,
        priority = 1
    ),
    printcolumn(name = "LastAttempt", type_ = "date", json_path = ".status.lastAttemptedAt"),
    printcolumn(name = "LastSynced", type_ = "date", json_path = ".status.lastSyncedAt"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[schemars(transform = null_is_absent)]
pub struct FerrVaultSecretSpec {
    /// The connection to read through, in the same namespace.
    pub connection_ref: ConnectionRef,
    /// The project that owns the vault; required in mode `cloud`, ignored otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The vault to read.
    #[schemars(length(min = 1))]
    pub vault: String,
    /// Which keys are wanted; absent or empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// The Secret to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// How often to look, as a Go duration (`30m`, `1h30m`). Absent: the operator's default. `0s`: no scheduled look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // The API server estimates the cost of the rule from the longest text that may come; no duration needs more.
    #[schemars(length(max = 64))]
    #[x_kube(validation = (DURATION_RULE, "refreshInterval must be a duration such as 30m or 1h30m, not negative; 0s turns the scheduled refresh off"))]
    pub refresh_interval: Option<String>,
    /// Workloads to restart when the content changed.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub rollout_restart: Vec<WorkloadRef>,
    /// Applied in order to what FerrVault answered.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    // As many as a pass applies. The API server estimates the cost of the rules of a step from it as well.
    #[schemars(length(max = 64))]
    pub transforms: Vec<Transform>,
    /// True leaves the resource, its Secret and its workloads alone until it is false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
}

/// Name of a connection in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionRef {
    /// Name of the `FerrVaultConnection`.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Which keys of the vault are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = null_is_absent)]
pub struct Selector {
    /// Keys wanted; empty means every key of the vault.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// The Secret to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = null_is_absent)]
pub struct Target {
    /// Name of the Secret; the resource's own name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Type of the Secret; `Opaque` when absent. Kubernetes does not let it change.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}

/// A kind of workload that can be restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` `StatefulSet`.
    StatefulSet,
    /// `apps/v1` `DaemonSet`.
    DaemonSet,
}

impl WorkloadKind {
    /// The kind as Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
        }
    }
}

impl std::fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One workload to restart, in the resource's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadRef {
    /// What it is.
    pub kind: WorkloadKind,
    /// What it is called.
    #[schemars(length(min = 1))]
    pub name: String,
}

impl std::fmt::Display for WorkloadRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// One step between FerrVault's answer and the Secret; `type` says which of the other fields count.
//
// Flat, as the Go operator stored it. `type` stays text so that an object with a type this version does not know is
// still readable and can be reported on, instead of failing the whole list it comes in.
//
// The rules are for who writes one now: a step that reads `key` where `keys` was meant would do something else than it
// says. Stored objects that break one keep working as they did, as long as nobody edits the list.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = null_is_absent)]
#[x_kube(validation = (
    "has(self.value) && self.value != '' ? self.type in ['prefix', 'suffix'] : !(self.type in ['prefix', 'suffix'])",
    "prefix and suffix need a value, and no other type has one"
))]
#[x_kube(validation = (
    "self.type == 'rename' ? has(self.from) && self.from != '' && has(self.to) && self.to != '' : !has(self.from) && !has(self.to)",
    "rename needs from and to, and no other type has them"
))]
#[x_kube(validation = (
    "self.type == 'jsonExpand' ? has(self.key) && self.key != '' : !has(self.key)",
    "jsonExpand needs key, and no other type has it; base64Decode takes a list, keys"
))]
#[x_kube(validation = (
    "!has(self.keys) || size(self.keys) == 0 || self.type == 'base64Decode'",
    "only base64Decode has keys; jsonExpand takes one, key"
))]
pub struct Transform {
    /// `prefix`, `suffix`, `rename`, `base64Decode` or `jsonExpand`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["prefix", "suffix", "rename", "base64Decode", "jsonExpand"]))]
    pub type_: String,
    /// `prefix`, `suffix`: the text to put before or after every key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `rename`: the key to rename; nothing happens where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `rename`: the new key, which must not exist yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// `jsonExpand`: the key whose JSON object becomes keys of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `base64Decode`: the keys to decode; absent or empty means all.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

/// What the last passes found and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = null_is_absent)]
pub struct FerrVaultSecretStatus {
    /// `Ready`, `RolloutRestarted` and `Fresh`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// End of the last completed pass, whatever its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_at: Option<Time>,
    /// End of the last pass that proved the target equal to FerrVault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_synced_at: Option<Time>,
    /// When the content last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_changed_at: Option<Time>,
    /// The version for which every listed workload has been restarted, or the baseline. A restart is owed while it
    /// differs from the version on the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_rollout_hash: Option<String>,
    /// The version that the target held at `lastSyncedAt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// Name of the Secret that was proved equal to FerrVault at `lastSyncedAt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced_target: Option<String>,
    /// Keys in the target, sorted.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub synced_keys: Vec<String>,
    /// Wanted keys that FerrVault does not have, sorted.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub missing_keys: Vec<String>,
    /// Generation last synced successfully; a failure never advances it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The value of the annotation `ferrvault.com/refresh` that the last pass asked for by it has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_refresh: Option<String>,
    /// One entry per listed workload.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["kind", "name"]))]
    pub rollouts: Vec<Rollout>,
}

/// How far one workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutState {
    /// Restarted for the version in `hash`.
    Restarted,
    /// A restart is owed: the workload is not there yet, or changed while it was being restarted.
    Waiting,
    /// A restart is owed: the last try was refused.
    Failed,
}

/// The restart of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = null_is_absent)]
pub struct Rollout {
    /// What it is.
    pub kind: WorkloadKind,
    /// What it is called.
    pub name: String,
    /// The version it was last restarted for; empty if it never was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// How far it is.
    pub state: RolloutState,
    /// Since when it is in this state.
    pub since: Time,
    /// What is waited for or what was refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl FerrVaultSecret {
    /// Name of the Secret that this resource keeps.
    pub fn target_name(&self) -> &str {
        let named = self.spec.target.as_ref().and_then(|target| target.name.as_deref());
        named.filter(|name| !name.is_empty()).unwrap_or_else(|| self.metadata.name.as_deref().unwrap_or_default())
    }

    /// Type of the Secret that this resource keeps.
    pub fn target_type(&self) -> &str {
        let typed = self.spec.target.as_ref().and_then(|target| target.type_.as_deref());
        typed.filter(|type_| !type_.is_empty()).unwrap_or("Opaque")
    }

    /// Keys wanted; empty means every key of the vault.
    pub fn wanted_names(&self) -> &[String] {
        self.spec.selector.as_ref().map_or(&[], |selector| selector.names.as_slice())
    }

    /// Whether the resource is to be left alone.
    pub fn is_suspended(&self) -> bool {
        self.spec.suspend.unwrap_or_default()
    }

    /// The value of the annotation `ferrvault.com/refresh`, as far as it counts.
    pub fn refresh_request(&self) -> Option<&str> {
        let value = self.metadata.annotations.as_ref()?.get(crate::marks::REFRESH)?.as_str();
        value.get(..value.floor_char_boundary(REFRESH_COUNTS))
    }

    /// Whether that value asks for a pass that has not been made.
    pub fn refresh_is_due(&self) -> bool {
        let handled = self.status.as_ref().and_then(|status| status.last_handled_refresh.as_deref());
        self.refresh_request().is_some_and(|request| handled != Some(request))
    }
}
