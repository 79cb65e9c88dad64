//! The in-memory API server as a test holds it: clients, objects, faults, journal.

mod happenings;
mod objects;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::call::Verb;
use crate::clock::Clock;
use crate::hooks::{Hooks, lock};
use crate::kind::Kind;
use crate::refusal::Refusal;
use crate::server::{Inner, Process};
use crate::state::State;

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
}
