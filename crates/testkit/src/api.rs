//! The in-memory API server as a test holds it: clients, objects, faults, journal.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::{Call, Record, Verb};
use crate::clock::Clock;
use crate::fault::{Break, EventFault, Fault, Plan};
use crate::hooks::{EventNotice, Hooks, WriteRecord, lock};
use crate::kind::Kind;
use crate::object;
use crate::refusal::Refusal;
use crate::server::{Inner, Process};
use crate::state::{State, Writer};
use crate::store::Key;
use crate::write::Door;

/// Who writes when a test writes directly.
pub const SOMEBODY: &str = "somebody";

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespaces that are there from the start.
    pub namespaces: Vec<String>,
    /// Garbage is collected this long after a delete. Without it, only when `collect_garbage` is called.
    pub collect_after: Option<Duration>,
    /// Whether the custom resources of the product are known.
    pub custom_resources: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespaces: vec!["default".to_owned(), "ferrvault-system".to_owned()],
            collect_after: Some(Duration::from_millis(100)),
            custom_resources: true,
        }
    }
}

/// An open watch, as a test sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenWatch {
    /// Number of the call that opened it.
    pub call: usize,
    /// Whose it is.
    pub who: String,
    /// `plural.group` of what it watches.
    pub resource: String,
}

/// An API server in memory. Clones are the same server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

/// A mistake of the test's author ends the test.
#[track_caller]
fn sound<T>(result: Result<T, Refusal>) -> T {
    match result {
        Ok(value) => value,
        #[allow(clippy::panic, reason = "direct access is for tests, and this is their mistake")]
        Err(refusal) => panic!("the API server refuses what the test itself does: {}", refusal.status()),
    }
}

impl ApiServer {
    /// A new, nearly empty cluster.
    pub fn new(options: Options) -> Self {
        let clock = Clock::start();
        let inner = Inner {
            clock,
            collect_after: options.collect_after,
            state: State::new(clock).into(),
            watches: Vec::new().into(),
            processes: std::collections::BTreeMap::new().into(),
            journal: Vec::new().into(),
            hooks: Hooks::default(),
            collecting: false.into(),
        };
        let server = Self { inner: Arc::new(inner) };
        if options.custom_resources {
            server.install_product();
        }
        for name in options.namespaces {
            server.make_namespace(&name);
        }
        server
    }

    /// A client whose default namespace is `namespace`, of the process `operator`. Needs a tokio runtime.
    pub fn client(&self, namespace: &str) -> kube::Client {
        self.client_of("operator", namespace)
    }

    /// A client of the process `who`.
    pub fn client_as(&self, who: &str) -> kube::Client {
        self.client_of(who, "default")
    }

    /// A client of the process `who`, which is begun anew if it has ended. All clients of a process end together.
    pub fn client_of(&self, who: &str, namespace: &str) -> kube::Client {
        let process = self.process(who, true);
        let inner = Arc::clone(&self.inner);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            Arc::clone(&inner).serve(Arc::clone(&process), request)
        });
        kube::Client::new(service, namespace)
    }

    fn process(&self, who: &str, renew: bool) -> Arc<Process> {
        let mut processes = lock(&self.inner.processes);
        let process = processes.entry(who.to_owned()).or_insert_with(|| Process::new(who));
        if renew && process.has_ended() {
            *process = Process::new(who);
        }
        Arc::clone(process)
    }

    /// Ends a process: none of its calls returns any more, its watches fall silent.
    pub fn end(&self, who: &str) {
        let process = self.process(who, false);
        self.inner.end(&process);
    }

    /// Waits until the process has ended, by a fault or by `end`.
    pub async fn ended(&self, who: &str) {
        let process = self.process(who, false);
        process.ended().await;
    }

    /// Whether the process has ended.
    pub fn has_ended(&self, who: &str) -> bool {
        self.process(who, false).has_ended()
    }

    // ---- kinds and access

    /// Makes the custom resources of the product known.
    pub fn install_product(&self) {
        use kube::CustomResourceExt as _;
        for definition in [ferrvault_api::FerrVaultSecret::crd(), ferrvault_api::FerrVaultConnection::crd()] {
            self.install(&definition);
        }
    }

    /// Makes a kind known, or known under another schema: what is stored stays as it is.
    ///
    /// # Panics
    /// If `definition` is no `CustomResourceDefinition`.
    #[track_caller]
    pub fn install(&self, definition: &impl Serialize) {
        let definition = serde_json::to_value(definition).unwrap_or_default();
        let kind = Kind::custom(&definition).ok_or_else(|| Refusal::bad_request("no CustomResourceDefinition"));
        lock(&self.inner.state).install(sound(kind));
    }

    /// Forgets a kind (`ferrvaultsecrets.ferrvault.com`) and all of its objects.
    pub fn uninstall(&self, resource: &str) {
        lock(&self.inner.state).uninstall(resource);
        self.inner.tell();
    }

    /// From now on `who` may only do what rules allow: those of this Role, bound in `namespace`, or of this
    /// `ClusterRole`, bound everywhere when `namespace` is empty. Adds to what was granted before.
    pub fn grant(&self, who: &str, namespace: &str, role: &Value) {
        lock(&self.inner.state).access.grant(who, namespace, role);
    }

    /// Takes a verb on a resource (`secrets`, `ferrvaultsecrets/status`) away from `who`.
    pub fn deny(&self, who: &str, verb: &str, resource: &str) {
        lock(&self.inner.state).access.deny(who, verb, resource);
    }

    /// Gives back what `deny` took.
    pub fn allow_again(&self, who: &str, verb: &str, resource: &str) {
        lock(&self.inner.state).access.allow_again(who, verb, resource);
    }

    // ---- objects, directly

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

    // ---- time and background

    /// The time in the cluster.
    pub fn now(&self) -> jiff::Timestamp {
        self.inner.clock.now()
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        lock(&self.inner.state).store.revision()
    }

    /// Forgets the past: watches and lists that start there are answered 410. Open watches go on.
    pub fn compact(&self) {
        let mut state = lock(&self.inner.state);
        let now = state.store.revision();
        state.store.compact(now);
    }

    /// Does now what the cluster's own controllers would do soon. Returns how many objects were touched.
    pub fn collect_garbage(&self) -> usize {
        let touched = lock(&self.inner.state).collect_garbage();
        self.inner.tell();
        touched
    }

    /// Waits until no request but a watch has come for `quiet`, at most for `limit`. Says whether it came to rest.
    pub async fn rest(&self, quiet: Duration, limit: Duration) -> bool {
        let end = self.inner.clock.elapsed() + limit;
        loop {
            let last = lock(&self.inner.journal)
                .iter()
                .rev()
                .find(|record| record.call.verb != Verb::Watch)
                .map(|record| record.call.at);
            let now = self.inner.clock.elapsed();
            let due = last.unwrap_or_default() + quiet;
            if due <= now {
                return true;
            }
            if now >= end {
                return false;
            }
            tokio::time::sleep(due.saturating_sub(now).min(end.saturating_sub(now))).await;
        }
    }

    // ---- faults

    /// Puts these faults on calls to come.
    pub fn set_plan(&self, plan: Plan) {
        self.inner.hooks.set_plan(plan);
    }

    /// Lets `hook` decide about every call; where it says `Fault::None`, the plan decides.
    pub fn on_call(&self, hook: impl FnMut(&Call) -> Fault + Send + 'static) {
        self.inner.hooks.set_on_call(Box::new(hook));
    }

    /// Lets `hook` decide about every event on its way to a watch.
    pub fn on_event(&self, hook: impl FnMut(&EventNotice) -> EventFault + Send + 'static) {
        self.inner.hooks.set_on_event(Box::new(hook));
    }

    /// From now on nothing goes wrong.
    pub fn clear_faults(&self) {
        self.inner.hooks.clear_faults();
    }

    /// The watches that are open.
    pub fn watches(&self) -> Vec<OpenWatch> {
        let watches = lock(&self.inner.watches);
        watches
            .iter()
            .filter(|watch| watch.is_open())
            .map(|watch| OpenWatch { call: watch.call, who: watch.who.clone(), resource: watch.resource().to_owned() })
            .collect()
    }

    /// Breaks every watch that `which` picks. Returns how many.
    pub fn break_watches(&self, how: Break, which: impl Fn(&OpenWatch) -> bool) -> usize {
        let picked: Vec<usize> = self.watches().iter().filter(|watch| which(watch)).map(|watch| watch.call).collect();
        lock(&self.inner.watches)
            .iter()
            .filter(|watch| picked.contains(&watch.call))
            .for_each(|watch| watch.break_off(how));
        picked.len()
    }

    // ---- what happened

    /// Calls `hook` after every change of an object.
    pub fn on_write(&self, hook: impl FnMut(&WriteRecord) + Send + 'static) {
        self.inner.hooks.add_on_write(Box::new(hook));
    }

    /// Checks every change of an object. A violation is kept, not thrown: the writer might contain the panic.
    pub fn invariant(&self, name: &str, check: impl FnMut(&WriteRecord) -> Result<(), String> + Send + 'static) {
        self.inner.hooks.add_invariant(name, Box::new(check));
    }

    /// Every violation of an invariant so far.
    pub fn violations(&self) -> Vec<String> {
        self.inner.hooks.violations()
    }

    /// Every request so far.
    pub fn journal(&self) -> Vec<Record> {
        lock(&self.inner.journal).clone()
    }

    /// Number of the last request.
    pub fn last_call(&self) -> usize {
        lock(&self.inner.journal).len()
    }

    /// Requests of `who` after call number `after`, each as `PATCH secrets default/db`; watches left out.
    pub fn requests_after(&self, after: usize, who: &str) -> Vec<String> {
        lock(&self.inner.journal)
            .iter()
            .skip(after)
            .filter(|record| record.call.who == who && record.call.verb != Verb::Watch)
            .map(|record| record.call.summary())
            .collect()
    }

    /// The whole journal as text, for the message of a failing test.
    pub fn story(&self) -> String {
        let journal = lock(&self.inner.journal);
        journal.iter().map(Record::to_string).collect::<Vec<_>>().join("\n")
    }
}
