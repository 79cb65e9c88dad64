//! Objects as a test reads and writes them: directly, as somebody who is no client, past faults and rules of access.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ApiServer, SOMEBODY, sound};
use crate::hooks::lock;
use crate::object;
use crate::refusal::Refusal;
use crate::state::Writer;
use crate::store::Key;
use crate::write::Door;

impl ApiServer {
    /// Makes a namespace, if it is not there.
    pub fn make_namespace(&self, name: &str) {
        let mut state = lock(&self.inner.state);
        if state.store.get(&Key::new("namespaces", "", name)).is_none() {
            let namespace =
                serde_json::json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            if let Some(kind) = state.kind_by_id("namespaces") {
                sound(state.create(&kind, "", &Writer::internal(SOMEBODY), namespace));
            }
        }
        drop(state);
        self.inner.tell();
    }

    /// Makes `object` be there as it is given, status included: created, or replaced whatever its resourceVersion.
    /// Its namespace is made when it is not there.
    ///
    /// # Panics
    /// If the object is one that the server refuses.
    #[track_caller]
    pub fn apply(&self, object: &impl Serialize) -> Value {
        self.apply_json(serde_json::to_value(object).unwrap_or_default())
    }

    /// As `apply`, for JSON.
    ///
    /// # Panics
    /// If the object is one that the server refuses.
    #[track_caller]
    pub fn apply_json(&self, mut object: Value) -> Value {
        let namespace = object::namespace(&object).to_owned();
        if !namespace.is_empty() {
            self.make_namespace(&namespace);
        }
        let mut state = lock(&self.inner.state);
        let kind = sound(state.kind_of(&object).ok_or_else(Refusal::no_such_path));
        for field in ["resourceVersion", "managedFields"] {
            object::map_mut(&mut object, "metadata").remove(field);
        }
        let key = Key::new(&kind.id, &namespace, object::name(&object));
        let writer = Writer::internal(SOMEBODY);
        let status = object.get("status").cloned();
        let mut stored = match state.store.get(&key).cloned() {
            None => sound(state.create(&kind, &namespace, &writer, object)),
            Some(live) => {
                object::copy_metadata(&mut object, &live, "resourceVersion");
                sound(state.replace(&kind, &key, Door::Main, &writer, object)).1
            }
        };
        if let Some(status) = status.filter(|_| kind.status) {
            object::fields_mut(&mut stored).insert("status".to_owned(), status);
            let key = Key::new(&kind.id, &namespace, object::name(&stored));
            stored = sound(state.replace(&kind, &key, Door::Status, &writer, stored)).1;
        }
        drop(state);
        self.inner.tell();
        stored
    }

    /// Changes a stored object as somebody else would, outside status. Its resourceVersion is the current one.
    ///
    /// # Panics
    /// If it is not there, or the change is one that the server refuses.
    #[track_caller]
    pub fn edit<K: kube::Resource<DynamicType = ()>>(
        &self,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Value {
        self.edit_through::<K>(Door::Main, namespace, name, change)
    }

    /// Changes the status of a stored object as somebody else would.
    ///
    /// # Panics
    /// If it is not there, or the change is one that the server refuses.
    #[track_caller]
    pub fn edit_status<K: kube::Resource<DynamicType = ()>>(
        &self,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Value {
        self.edit_through::<K>(Door::Status, namespace, name, change)
    }

    #[track_caller]
    fn edit_through<K: kube::Resource<DynamicType = ()>>(
        &self,
        door: Door,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Value {
        let mut state = lock(&self.inner.state);
        let kind = sound(state.kind(&K::group(&()), &K::version(&()), &K::plural(&())));
        let key = Key::new(&kind.id, namespace, name);
        let mut object = sound(state.read(&kind, &key, None));
        change(&mut object);
        let (_, stored) = sound(state.replace(&kind, &key, door, &Writer::internal(SOMEBODY), object));
        drop(state);
        self.inner.tell();
        stored
    }

    /// Deletes an object as somebody else would; nothing happens if it is not there.
    pub fn delete<K: kube::Resource<DynamicType = ()>>(&self, namespace: &str, name: &str) {
        let mut state = lock(&self.inner.state);
        if let Ok(kind) = state.kind(&K::group(&()), &K::version(&()), &K::plural(&())) {
            let key = Key::new(&kind.id, namespace, name);
            // The one refusal possible says that there is nothing to delete.
            let _ = state.delete(&kind, &key, &Writer::internal(SOMEBODY), &serde_json::json!({}));
        }
        drop(state);
        self.inner.tell();
    }

    /// The object as it is stored.
    ///
    /// # Panics
    /// If it is not one that `K` can hold.
    #[track_caller]
    pub fn get<K: kube::Resource<DynamicType = ()> + DeserializeOwned>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Option<K> {
        let object = self.get_json(&K::group(&()), &K::plural(&()), namespace, name)?;
        Some(sound(serde_json::from_value(object).map_err(|error| Refusal::bad_request(error.to_string()))))
    }

    /// The object as it is stored, as JSON.
    pub fn get_json(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let id = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        lock(&self.inner.state).store.get(&Key::new(&id, namespace, name)).map(|object| (**object).clone())
    }

    /// Every object of a kind, of one namespace or of all (empty).
    ///
    /// # Panics
    /// If one is not what `K` can hold.
    #[track_caller]
    pub fn list<K: kube::Resource<DynamicType = ()> + DeserializeOwned>(&self, namespace: &str) -> Vec<K> {
        let state = lock(&self.inner.state);
        let Ok(kind) = state.kind(&K::group(&()), &K::version(&()), &K::plural(&())) else { return Vec::new() };
        let objects = state.store.list_at(&kind.id, namespace, state.store.revision());
        let read = |object: &Arc<Value>| serde_json::from_value((**object).clone());
        objects
            .into_iter()
            .map(|object| sound(read(object).map_err(|error| Refusal::bad_request(error.to_string()))))
            .collect()
    }
}
