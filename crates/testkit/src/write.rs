//! Create, replace, patch: one way into the store, with the checks in the order of the real server.
//!
//! ```text
//! decode -> resourceVersion -> system fields -> the other door's half -> validate -> generation -> owners of fields
//!        -> nothing changed? keep the revision -> last finalizer gone? delete -> store
//! ```

mod door;
mod generation;

use serde_json::Value;

pub(crate) use self::door::Door;
use self::door::{claim_half, keep_other_half};
use self::generation::raises_generation;
use crate::admission;
use crate::kind::{Generation, Kind};
use crate::object;
use crate::ownership::{self, Entry};
use crate::patch::{self, PatchKind};
use crate::refusal::{FieldError, Refusal};
use crate::shape::Shape;
use crate::state::{State, Writer};
use crate::store::Key;
use crate::{apply, store};

/// What a patch request says beside its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatchRequest {
    pub(crate) how: PatchKind,
    pub(crate) force: bool,
}

impl State {
    /// POST.
    pub(crate) fn create(
        &mut self,
        kind: &Kind,
        namespace: &str,
        writer: &Writer,
        mut object: Value,
    ) -> Result<Value, Refusal> {
        read_body(kind, writer, &mut object)?;
        if !object::resource_version(&object).is_empty() {
            return Err(Refusal::revision_on_create());
        }
        ownership::store(&mut object, &[]);
        self.make(kind, namespace, writer, object, "Update")
    }

    /// Stores a new object; its managed fields are kept when an apply made it.
    fn make(
        &mut self,
        kind: &Kind,
        namespace: &str,
        writer: &Writer,
        mut object: Value,
        operation: &'static str,
    ) -> Result<Value, Refusal> {
        settle_namespace(kind, namespace, &mut object)?;
        let prefix = object::text(&object, "/metadata/generateName").to_owned();
        if object::name(&object).is_empty() && !prefix.is_empty() {
            let name = self.next_name(&prefix);
            object::set_metadata(&mut object, "name", name);
        }
        let name = object::name(&object).to_owned();
        self.check_namespace(kind, namespace, &name)?;
        let key = Key::new(&kind.id, namespace, &name);
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"] {
            object::map_mut(&mut object, "metadata").remove(field);
        }
        admission::prepare_create(kind, &mut object);
        let errors = admission::validate(kind, None, &object);
        if !errors.is_empty() {
            return Err(Refusal::invalid(kind, &name, &errors));
        }
        if self.store.get(&key).is_some() {
            return Err(Refusal::already_exists(
                kind,
                &name,
                self.store.get(&key).is_some_and(|live| object::is_terminating(live)),
            ));
        }
        let uid = self.next_uid();
        object::set_metadata(&mut object, "uid", uid);
        object::set_metadata(&mut object, "creationTimestamp", self.clock.stamp());
        if kind.generation != Generation::Absent {
            object::set_metadata(&mut object, "generation", 1);
        }
        if operation == "Update" {
            let entry = self.entry(kind, writer, Door::Main, "Update");
            ownership::record_update(Shape::of(kind), None, &mut object, entry, |_| true);
        }
        if writer.dry_run {
            return Ok(object);
        }
        let change = self.store.put(key, object);
        self.tell(change.clone(), writer, "");
        Ok(stored(&change))
    }

    /// PUT.
    pub(crate) fn replace(
        &mut self,
        kind: &Kind,
        key: &Key,
        door: Door,
        writer: &Writer,
        mut object: Value,
    ) -> Result<(u16, Value), Refusal> {
        read_body(kind, writer, &mut object)?;
        check_name(key, &object)?;
        let Some(live) = self.store.get(key).cloned() else {
            if kind.create_on_update && door == Door::Main {
                object::map_mut(&mut object, "metadata").remove("resourceVersion");
                return self.make(kind, &key.namespace, writer, object, "Update").map(|made| (201, made));
            }
            return Err(Refusal::not_found(kind, &key.name));
        };
        let sent_uid = object::uid(&object);
        if !sent_uid.is_empty() && sent_uid != object::uid(&live) {
            let why = format!(
                "StorageError: invalid object, Code: 4, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: \
                 {sent_uid}, UID in object meta: {}",
                object::uid(&live)
            );
            return Err(Refusal::conflict(kind, &key.name, &why));
        }
        if object::resource_version(&object).is_empty() && !kind.unconditional_update {
            return Err(Refusal::revision_missing(kind, &key.name));
        }
        // An object without managed fields keeps those that are stored.
        if object.pointer("/metadata/managedFields").is_none() {
            object::copy_metadata(&mut object, &live, "managedFields");
        }
        self.update(kind, key, door, writer, &live, object, "Update").map(|object| (200, object))
    }

    /// PATCH.
    pub(crate) fn patch(
        &mut self,
        kind: &Kind,
        key: &Key,
        door: Door,
        writer: &Writer,
        request: PatchRequest,
        body: Value,
    ) -> Result<(u16, Value), Refusal> {
        if request.how == PatchKind::Apply {
            return self.apply(kind, key, door, writer, request.force, body);
        }
        let Some(live) = self.store.get(key).cloned() else {
            return Err(Refusal::not_found(kind, &key.name));
        };
        let mut object = patch::patched(kind, request.how, &live, &body)?;
        if !kind.claims(&object) {
            let why = format!("no kind \"{}\" is registered here", object::text(&object, "/kind"));
            return Err(Refusal::bad_request(why));
        }
        check_name(key, &object)?;
        let shown = object.clone();
        let forgotten = admission::decode(kind, &mut object).map_err(|why| Refusal::unusable_patch(&shown, &why))?;
        refuse_unknown(writer, "", &forgotten)?;
        self.update(kind, key, door, writer, &live, object, "Update").map(|object| (200, object))
    }

    fn apply(
        &mut self,
        kind: &Kind,
        key: &Key,
        door: Door,
        writer: &Writer,
        force: bool,
        mut wanted: Value,
    ) -> Result<(u16, Value), Refusal> {
        if wanted.pointer("/metadata/managedFields").is_some() {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        if !kind.claims(&wanted) {
            let (group_version, kind) = (object::text(&wanted, "/apiVersion"), object::text(&wanted, "/kind"));
            let group_version = if group_version.is_empty() { "/" } else { group_version };
            return Err(Refusal::bad_request(format!("invalid object type: {group_version}, Kind={kind}")));
        }
        let live = self.store.get(key).cloned();
        if live.is_none() || !object::name(&wanted).is_empty() {
            check_name(key, &wanted)?;
        }
        let shown = wanted.clone();
        let unreadable = |why: String| Refusal::unreadable_apply(kind, &shown, &why);
        let forgotten = admission::decode_applied(kind, &mut wanted).map_err(unreadable)?;
        refuse_unknown(writer, "", &forgotten)?;
        // What the other door owns is not claimed through this one.
        claim_half(kind, door, &mut wanted);

        let entry = self.entry(kind, writer, door, "Apply");
        let mut object = apply::applied(kind, live.as_deref(), &wanted, entry, force)?;
        admission::decode(kind, &mut object).map_err(unreadable)?;
        if let Some(live) = live {
            return self.update(kind, key, door, writer, &live, object, "Apply").map(|object| (200, object));
        }
        if door == Door::Status {
            return Err(Refusal::not_found(kind, &key.name));
        }
        if !object::uid(&wanted).is_empty() {
            let error = FieldError::invalid("metadata.uid", &object::uid(&wanted).into(), "field is immutable");
            return Err(Refusal::invalid(kind, &key.name, &[error]));
        }
        self.make(kind, &key.namespace, writer, object, "Apply").map(|object| (201, object))
    }

    /// `object` over `live`: what both PUT and PATCH come to.
    #[allow(clippy::too_many_arguments, reason = "one request has that many independent parts")]
    fn update(
        &mut self,
        kind: &Kind,
        key: &Key,
        door: Door,
        writer: &Writer,
        live: &Value,
        mut object: Value,
        operation: &'static str,
    ) -> Result<Value, Refusal> {
        let sent = object::resource_version(&object);
        if !sent.is_empty() && sent != object::resource_version(live) {
            return Err(Refusal::modified(kind, &key.name));
        }
        settle_namespace(kind, &key.namespace, &mut object)?;
        for field in
            ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"]
        {
            object::copy_metadata(&mut object, live, field);
        }
        if object::uid(&object).is_empty() {
            object::copy_metadata(&mut object, live, "uid");
        }
        keep_other_half(kind, door, live, &mut object);
        admission::prepare_update(kind, live, &mut object);
        let errors = admission::validate(kind, Some(live), &object);
        if !errors.is_empty() {
            return Err(Refusal::invalid(kind, &key.name, &errors));
        }
        if raises_generation(kind, live, &object) {
            let generation = live.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
            object::set_metadata(&mut object, "generation", generation + 1);
        }
        if operation == "Update" {
            let entry = self.entry(kind, writer, door, "Update");
            let status = kind.status;
            ownership::record_update(Shape::of(kind), Some(live), &mut object, entry, |path| {
                let of_status = path.first().is_some_and(|step| step == "f:status");
                !status || of_status == (door == Door::Status)
            });
        }
        if object == *live || writer.dry_run {
            return Ok(object);
        }
        if object::is_terminating(live) && object::finalizers(&object).is_empty() && door == Door::Main {
            let change = self.store.delete(key.clone());
            self.tell(change, writer, "");
            return Ok(object);
        }
        let change = self.store.put(key.clone(), object);
        self.tell(change.clone(), writer, door.subresource());
        Ok(stored(&change))
    }

    fn entry(&self, kind: &Kind, writer: &Writer, door: Door, operation: &'static str) -> Entry {
        Entry {
            manager: writer.manager.clone(),
            operation,
            subresource: door.subresource().to_owned(),
            api_version: kind.api_version(),
            time: self.clock.stamp(),
            fields: ownership::Fields::new(),
        }
    }
}

fn read_body(kind: &Kind, writer: &Writer, object: &mut Value) -> Result<(), Refusal> {
    if !kind.claims(object) {
        let message = format!(
            "the API version in the data ({}) or its kind ({}) does not match the expected {} {}",
            object::text(object, "/apiVersion"),
            object::text(object, "/kind"),
            kind.api_version(),
            kind.kind
        );
        return Err(Refusal::bad_request(message));
    }
    let prefix = format!("{0} in version \"{1}\" cannot be handled as a {0}: ", kind.kind, kind.version);
    let forgotten = admission::decode(kind, object).map_err(|why| Refusal::bad_request(format!("{prefix}{why}")))?;
    refuse_unknown(writer, &prefix, &forgotten)
}

fn stored(change: &store::Change) -> Value {
    change.new.as_deref().cloned().unwrap_or_default()
}

fn check_name(key: &Key, object: &Value) -> Result<(), Refusal> {
    let name = object::name(object);
    if name == key.name {
        return Ok(());
    }
    let url = &key.name;
    Err(Refusal::bad_request(if name.is_empty() {
        format!("the name of the object ({url} based on URL) was undeterminable: name must be provided")
    } else {
        format!("the name of the object ({name}) does not match the name on the URL ({url})")
    }))
}

fn refuse_unknown(writer: &Writer, prefix: &str, forgotten: &[String]) -> Result<(), Refusal> {
    if !writer.strict || forgotten.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = forgotten.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    Err(Refusal::bad_request(format!("{prefix}strict decoding error: {}", list.join(", "))))
}

/// The namespace is the one of the URL; another one in the body is a mistake.
fn settle_namespace(kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Refusal> {
    let sent = object::namespace(object);
    if !kind.namespaced {
        object::map_mut(object, "metadata").remove("namespace");
    } else if sent.is_empty() {
        object::set_metadata(object, "namespace", namespace);
    } else if sent != namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}
