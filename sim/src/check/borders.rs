//! I6 and I8: what may be written at all, and what may be in it.

use ferrvault_testkit::WriteRecord;
use serde_json::Value;

use super::{Books, Invariant};
use crate::cast::{self, Secret, Workload};

/// In every value and token of a simulation, and in nothing that anybody but a pod may read.
pub(crate) const CANARY: &str = "canary";
/// How base64 begins for a value and for a token.
const ENCODED: [&str; 2] = ["Y2FuYXJ5", "ZmZ0X2Nhb"];
/// Namespace of the operator's own objects.
pub(crate) const SYSTEM: &str = "ferrvault-system";

/// Whether a text gives a value or a token away.
pub(crate) fn gives_away(text: &str) -> bool {
    text.contains(CANARY) || ENCODED.iter().any(|start| text.contains(start))
}

impl Books {
    pub(super) fn borders(&mut self, write: &WriteRecord) {
        if !cast::is_operator(&write.who) {
            return;
        }
        if let Some(new) = &write.new {
            let mut shown = (**new).clone();
            if write.resource == "secrets"
                && let Some(data) = shown.pointer_mut("/data")
            {
                *data = Value::Null;
            }
            if gives_away(&shown.to_string()) {
                self.violate(write.at, Invariant::I8, format!("{write:?} holds a value or a token"));
            }
        }
        if let Err(why) = self.is_allowed(write) {
            self.violate(write.at, Invariant::I6, format!("{write:?}: {why}"));
        }
    }

    fn is_allowed(&self, write: &WriteRecord) -> Result<(), &'static str> {
        if write.new.is_none()
            && !matches!(
                write.resource.as_str(),
                "ferrvaultsecrets.ferrvault.com" | "ferrvaultconnections.ferrvault.com"
            )
        {
            return Err("an operator deletes nothing");
        }
        match write.resource.as_str() {
            "secrets" if write.namespace == SYSTEM => {
                // The operator key: made once, never replaced.
                if write.old.is_none() { Ok(()) } else { Err("the operator key is never written again") }
            }
            "secrets" => self.may_write_secret(write),
            "leases.coordination.k8s.io" if write.namespace == SYSTEM => Ok(()),
            "events.events.k8s.io" => Ok(()),
            "ferrvaultsecrets.ferrvault.com" | "ferrvaultconnections.ferrvault.com" => only_status_or_finalizers(write),
            // Which of them, and what of them, is looked at where restarts are counted.
            resource if Workload::stored(resource, "").is_some() && write.old.is_some() => Ok(()),
            _ => Err("nothing of this kind is an operator's business"),
        }
    }

    fn may_write_secret(&self, write: &WriteRecord) -> Result<(), &'static str> {
        let is_token = self.tokens.iter().any(|key| key.0 == write.namespace && key.1 == write.name);
        let Some(new) = write.new.as_deref().map(Secret::of) else { return Ok(()) };
        // A resource that keeps it, or did when the pass began: what is written for one that is gone since goes with it,
        // because its owner is gone.
        let owner = match &new.controller {
            Some(uid) if !is_token => self.keepers.get(uid),
            None if is_token => self.keeper_of(&write.namespace, &write.name),
            _ => None,
        };
        let keeper = owner.filter(|keeper| keeper.has_kept(&write.namespace, &write.name));
        let Some(keeper) = keeper.filter(|_| new.is_managed) else { return Err("it does not say whose it is") };
        match write.old.as_deref().map(Secret::of) {
            None => Ok(()),
            Some(old) if old.controller.as_ref() == Some(&keeper.resource.uid) => Ok(()),
            Some(old) if old.controller.is_none() && (old.is_managed || is_token) => Ok(()),
            Some(_) => Err("it is somebody else's"),
        }
    }
}

/// Of our own kinds only the status and the finalizers are the operator's to write.
fn only_status_or_finalizers(write: &WriteRecord) -> Result<(), &'static str> {
    let (Some(old), Some(new)) = (&write.old, &write.new) else {
        // Gone with its last finalizer.
        return if write.new.is_none() { Ok(()) } else { Err("an operator makes no resource") };
    };
    let rest = |object: &Value| {
        let mut rest = object.clone();
        for (parent, field) in [
            ("", "status"),
            ("/metadata", "finalizers"),
            ("/metadata", "managedFields"),
            ("/metadata", "resourceVersion"),
            ("/metadata", "generation"),
        ] {
            if let Some(fields) = rest.pointer_mut(parent).and_then(Value::as_object_mut) {
                fields.remove(field);
            }
        }
        rest
    };
    if rest(old) == rest(new) { Ok(()) } else { Err("more than status and finalizers changed") }
}
