//! Between the words of the world and the types of the product.

use ferrvault_api::secret::{Rollout, RolloutState, WorkloadKind, WorkloadRef};
use ferrvault_api::{FerrVaultSecret, FerrVaultSecretSpec, FerrVaultSecretStatus, condition};
use ferrvault_core::content;
use ferrvault_core::restart::WorkloadState;
use ferrvault_core::sync::{ObservedTarget, Ownership};
use ferrvault_core::version::{OperatorKey, Version};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::world::{Content, Entry, Mark, Name, Restarted, State, Status, Target, WORKLOADS};

/// SHA-256 over `KEY 0x00 A 0x00`, as the Go operator would have written it.
const LEGACY: &str = "33eaaff2f65509af3476b68ddc8331a6dacb2099652f8e823b0b4853caf4dbc1";

pub(super) fn named(key: &OperatorKey, status: &FerrVaultSecretStatus, names: &[Name]) -> Status {
    let name = |text: &str| {
        let found = names.iter().find(|name| version_of(key, **name).as_str() == text);
        (!text.is_empty()).then(|| *found.expect("a version that was in the question"))
    };
    let mut rollouts = [Entry::default(); WORKLOADS];
    for entry in &status.rollouts {
        let index = workloads().iter().position(|workload| workload.name == entry.name).expect("a listed workload");
        let state = match entry.state {
            RolloutState::Restarted => State::Restarted,
            RolloutState::Waiting => State::Waiting,
            RolloutState::Failed => State::Failed,
        };
        rollouts[index] = Entry { version: name(&entry.hash), state };
    }
    let restarted = status.conditions.iter().find(|found| found.type_ == condition::ROLLOUT_RESTARTED);
    Status {
        last_rollout: status.last_rollout_hash.as_deref().and_then(name),
        content: status.content_hash.as_deref().and_then(name),
        rollouts,
        restarted: match restarted.map(|found| found.status.as_str()) {
            None => Restarted::Unknown,
            Some("True") => Restarted::True,
            Some(_) => Restarted::False,
        },
    }
}

pub(super) fn status_of(key: &OperatorKey, status: Status) -> FerrVaultSecretStatus {
    let text = |name: Name| version_of(key, name).as_str().to_owned();
    let entries = workloads().into_iter().zip(status.rollouts).filter_map(|(workload, entry)| {
        let state = match entry.state {
            State::Absent => return None,
            State::Restarted => RolloutState::Restarted,
            State::Waiting => RolloutState::Waiting,
            State::Failed => RolloutState::Failed,
        };
        let hash = entry.version.map(text).unwrap_or_default();
        let WorkloadRef { kind, name } = workload;
        Some(Rollout { kind, name, hash, state, since: Time(now()), message: String::new() })
    });
    let is_true = match status.restarted {
        Restarted::Unknown => None,
        Restarted::True => Some("True"),
        Restarted::False => Some("False"),
    };
    FerrVaultSecretStatus {
        last_rollout_hash: status.last_rollout.map(text),
        content_hash: status.content.map(text),
        rollouts: entries.collect(),
        conditions: is_true
            .map(|status| Condition {
                type_: condition::ROLLOUT_RESTARTED.to_owned(),
                status: status.to_owned(),
                reason: "Restarted".to_owned(),
                message: String::new(),
                observed_generation: Some(1),
                last_transition_time: Time(now()),
            })
            .into_iter()
            .collect(),
        ..FerrVaultSecretStatus::default()
    }
}

pub(super) fn resource(status: FerrVaultSecretStatus) -> FerrVaultSecret {
    let spec: FerrVaultSecretSpec =
        serde_json::from_value(serde_json::json!({ "connectionRef": { "name": "c" }, "vault": "v" })).expect("a spec");
    let mut resource = FerrVaultSecret::new("r", spec);
    resource.metadata.generation = Some(1);
    resource.status = Some(status);
    resource
}

pub(super) fn workloads() -> [WorkloadRef; WORKLOADS] {
    ["api", "worker", "latecomer"].map(|name| WorkloadRef { kind: WorkloadKind::Deployment, name: name.to_owned() })
}

pub(super) fn state_of(key: &OperatorKey, mark: Mark) -> WorkloadState {
    match mark {
        Mark::Readable(mark) => WorkloadState::Present {
            resource_version: "1".to_owned(),
            mark: mark.map(|name| version_of(key, name)),
            paused: false,
        },
        Mark::Absent => WorkloadState::Missing,
        Mark::Unreadable => WorkloadState::Unreadable("timed out".to_owned()),
    }
}

pub(super) fn observed(key: &OperatorKey, target: Target) -> ObservedTarget {
    ObservedTarget {
        resource_version: "1".to_owned(),
        type_: "Opaque".to_owned(),
        ownership: Ownership::Ours,
        managed_by_us: true,
        immutable: false,
        version: target.version.map(|name| version_of(key, name)),
        content: content_of(target.content),
    }
}

pub(super) fn content_of(content: Content) -> content::Content {
    let value = match content {
        Content::A => "A",
        Content::B => "B",
        Content::C => "C",
        Content::Forgotten => "another",
    };
    [("KEY", value)].into_iter().collect()
}

pub(super) fn version_of(key: &OperatorKey, name: Name) -> Version {
    match name {
        Name::LEGACY => Version::parse(LEGACY),
        Name::LEGACY_BEFORE => Version::parse("0".repeat(64)),
        Name { serial, content } => Version::make(key, [serial; 8], &content_of(content)),
    }
}

pub(super) fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}
