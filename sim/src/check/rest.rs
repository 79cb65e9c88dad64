//! What has to hold when nothing goes wrong any more and time has passed: I1, I4 and I5 at rest, and I10.

use ferrvault_testkit::WriteRecord;
use serde_json::Value;

use super::{Books, Invariant};
use crate::cast::{self, Resource};

/// How a resource ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its target is current, its workloads restarted, its status says so.
    Current(&'static str),
    /// It is gone, and its target with it.
    Gone(&'static str),
    /// It is refused with this reason; the target is as it was.
    Refused(&'static str, &'static str),
}

impl End {
    /// The resource it is about.
    pub(crate) const fn of(self) -> &'static str {
        match self {
            Self::Current(name) | Self::Gone(name) | Self::Refused(name, _) => name,
        }
    }
}

/// What is not (yet) as it has to be at rest.
pub(crate) type Unrest = (Invariant, String);

impl Books {
    /// Whether a resource of `namespace` has come to its end.
    pub(crate) fn has_ended(&self, namespace: &str, end: End) -> Result<(), Unrest> {
        match end {
            End::Current(name) => self.is_current(namespace, name),
            End::Gone(name) => self.is_gone(namespace, name),
            End::Refused(name, reason) => self.is_refused(namespace, name, reason),
        }
    }

    fn living(&self, namespace: &str, name: &str) -> Option<&super::Keeper> {
        let is_it = |keeper: &&super::Keeper| {
            !keeper.is_gone && keeper.resource.namespace == namespace && keeper.resource.name == name
        };
        self.keepers.values().find(is_it)
    }

    fn target_of(&self, resource: &Resource) -> Option<&cast::Secret> {
        let history = self.secrets.get(&(resource.namespace.clone(), resource.target.clone()))?;
        history.last()?.1.as_ref()
    }

    fn is_current(&self, namespace: &str, name: &str) -> Result<(), Unrest> {
        let say = |invariant, what: String| Err((invariant, format!("{namespace}/{name}: {what}")));
        let Some(keeper) = self.living(namespace, name) else {
            return say(Invariant::I1, "the resource is gone".to_owned());
        };
        let resource = &keeper.resource;
        let wanted = self.upstream.get(&resource.vault).and_then(|history| resource.wanted(&history.last()?.1));
        let target = self.target_of(resource);
        if target.map(|secret| &secret.content) != wanted.as_ref() || target.is_none() {
            let found = target
                .map_or("is missing".to_owned(), |found| format!("has {}", self.name_of(resource, &found.content)));
            return say(Invariant::I4, format!("the target is not current: it {found}"));
        }
        let version = target.and_then(|secret| secret.version.clone());
        let current = keeper.current.and_then(|index| keeper.versions.get(index)).map(|named| named.text.clone());
        if version != current {
            return say(Invariant::I4, "the target does not carry the version it was given".to_owned());
        }
        let exists = |workload: &&cast::Workload| {
            self.workloads.contains_key(&(resource.namespace.clone(), (*workload).clone()))
        };
        if let Some(owed) = keeper.owed().find(exists) {
            return say(Invariant::I1, format!("{owed} was not restarted after the last change"));
        }
        let status = &resource.status;
        if !status.says("Ready", "True", "Synced") || !status.says("RolloutRestarted", "True", "Restarted") {
            return say(Invariant::I5, format!("all is well, and the status says {}", status.spelled()));
        }
        if status.last_rollout != version || status.content_hash != version {
            return say(Invariant::I5, "the record is not settled".to_owned());
        }
        let connection = self.connections.get(&(namespace.to_owned(), "conn".to_owned()));
        if connection.is_some_and(|connection| !connection.is_ready && !connection.is_leaving) {
            return say(Invariant::I5, "its connection works, and is not said to be ready".to_owned());
        }
        if status.observed_generation != Some(resource.generation) {
            return say(Invariant::I5, "the status is of another generation".to_owned());
        }
        Ok(())
    }

    fn is_gone(&self, namespace: &str, name: &str) -> Result<(), Unrest> {
        let say = |what: &str| Err((Invariant::I4, format!("{namespace}/{name}: {what}")));
        if self.living(namespace, name).is_some() {
            return say("the resource is still there");
        }
        let is_used = self.keepers.values().any(|keeper| !keeper.is_gone);
        if !is_used && self.connections.values().any(|connection| connection.is_held) {
            return say("a connection is held for it, and it is gone");
        }
        let kept = self
            .keepers
            .values()
            .filter(|keeper| keeper.resource.namespace == namespace && keeper.resource.name == name);
        for keeper in kept {
            if self
                .target_of(&keeper.resource)
                .is_some_and(|found| found.controller.as_ref() == Some(&keeper.resource.uid))
            {
                return say("its target is still there");
            }
        }
        Ok(())
    }

    fn is_refused(&self, namespace: &str, name: &str, reason: &str) -> Result<(), Unrest> {
        let status = self.living(namespace, name).map(|keeper| keeper.resource.status.clone()).unwrap_or_default();
        if status.says("Ready", "False", reason) {
            return Ok(());
        }
        Err((Invariant::I5, format!("{namespace}/{name}: the status does not say {reason} but {}", status.spelled())))
    }
}

/// I10: what may still be written when nothing changes. `Err` says what else was.
pub(crate) fn heartbeats_only(write: &WriteRecord) -> Result<(), String> {
    let allowed: &[&str] = match write.resource.as_str() {
        "leases.coordination.k8s.io" => return Ok(()),
        "ferrvaultsecrets.ferrvault.com" => &["lastAttemptedAt", "lastSyncedAt"],
        "ferrvaultconnections.ferrvault.com" => &["lastCheckedAt"],
        _ => return Err(format!("{write:?}")),
    };
    let (Some(old), Some(new)) = (&write.old, &write.new) else { return Err(format!("{write:?}")) };
    let status = |object: &Value| {
        let mut status = object.pointer("/status").cloned().unwrap_or_default();
        if let Some(fields) = status.as_object_mut() {
            fields.retain(|name, _| !allowed.contains(&name.as_str()));
        }
        status
    };
    if write.subresource == "status" && status(old) == status(new) {
        return Ok(());
    }
    Err(format!("{write:?}: more than times"))
}
