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
        let Some(keeper) = self.keeper_of(&write.namespace, &write.name) else {
            return Err("no resource keeps it");
        };
        let is_token = self.tokens.iter().any(|key| key.0 == write.namespace && key.1 == write.name);
        if let Some(old) = write.old.as_deref().map(Secret::of) {
            match &old.controller {
                Some(owner) if *owner == keeper.resource.uid => {}
                Some(_) => return Err("it belongs to somebody else"),
                None if old.is_managed || is_token => {}
                None => return Err("it is somebody else's"),
            }
        }
        let Some(new) = write.new.as_deref().map(Secret::of) else { return Ok(()) };
        let wants_owner = (!is_token).then_some(keeper.resource.uid.as_str());
        if new.controller.as_deref() != wants_owner || !new.is_managed {
            return Err("it does not say whose it is");
        }
        Ok(())
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
