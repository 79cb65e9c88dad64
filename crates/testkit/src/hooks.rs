//! What a test has asked to be told of or to decide.
//!
//! Hooks run outside every lock of the server, so they may use it. A hook is taken out while it runs: what it does does
//! not call it again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::call::Call;
use crate::fault::{EventFault, Fault, Plan};

/// One change of one object, with its author.
#[derive(Clone)]
pub struct WriteRecord {
    /// Number of the call, 0 for the server's own controllers and for writes by the test.
    pub call: usize,
    /// Who wrote.
    pub who: String,
    /// The field manager.
    pub manager: String,
    /// `plural.group`, or the plural alone in the core group.
    pub resource: String,
    /// `status`, or empty.
    pub subresource: String,
    /// Empty for kinds without a namespace.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The object before; nothing when this created it.
    pub old: Option<Arc<Value>>,
    /// The object after; nothing when this deleted it.
    pub new: Option<Arc<Value>>,
    /// Virtual time since the server was made.
    pub at: Duration,
}

impl fmt::Debug for WriteRecord {
    /// Without the objects: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (&self.old, &self.new) {
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "changed",
        };
        write!(f, "{} {}/{} {what} by {} in call #{}", self.resource, self.namespace, self.name, self.who, self.call)
    }
}

/// One event on its way to one watch.
#[derive(Clone, Debug)]
pub struct EventNotice {
    /// Number of the call that opened the watch.
    pub watch: usize,
    /// Whose watch it is.
    pub who: String,
    /// `plural.group` of the object.
    pub resource: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub event: &'static str,
}

type OnCall = Box<dyn FnMut(&Call) -> Fault + Send>;
type OnEvent = Box<dyn FnMut(&EventNotice) -> EventFault + Send>;
type OnWrite = Box<dyn FnMut(&WriteRecord) + Send>;
type Invariant = Box<dyn FnMut(&WriteRecord) -> Result<(), String> + Send>;

#[derive(Default)]
pub(crate) struct Hooks {
    plan: Mutex<Plan>,
    on_call: Mutex<Option<OnCall>>,
    on_event: Mutex<Option<OnEvent>>,
    on_write: Mutex<Vec<OnWrite>>,
    invariants: Mutex<Vec<(String, Invariant)>>,
    violations: Mutex<Vec<String>>,
}

/// A lock whose holder panicked still guards usable data here: every change under a lock is complete or not begun.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hooks {
    pub(crate) fn set_plan(&self, plan: Plan) {
        *lock(&self.plan) = plan;
    }

    pub(crate) fn set_on_call(&self, hook: OnCall) {
        *lock(&self.on_call) = Some(hook);
    }

    pub(crate) fn set_on_event(&self, hook: OnEvent) {
        *lock(&self.on_event) = Some(hook);
    }

    pub(crate) fn add_on_write(&self, hook: OnWrite) {
        lock(&self.on_write).push(hook);
    }

    pub(crate) fn add_invariant(&self, name: &str, check: Invariant) {
        lock(&self.invariants).push((name.to_owned(), check));
    }

    pub(crate) fn clear_faults(&self) {
        *lock(&self.plan) = Plan::new();
        *lock(&self.on_call) = None;
        *lock(&self.on_event) = None;
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        lock(&self.violations).clone()
    }

    /// The fault for `call`: what the hook says, else what the plan says.
    pub(crate) fn fault_for(&self, call: &Call) -> Fault {
        let mut fault = Fault::None;
        let taken = lock(&self.on_call).take();
        if let Some(mut hook) = taken {
            fault = hook(call);
            lock(&self.on_call).get_or_insert(hook);
        }
        if fault == Fault::None { lock(&self.plan).fault_for(call) } else { fault }
    }

    pub(crate) fn event_fault(&self, notice: &EventNotice) -> EventFault {
        let mut fault = EventFault::None;
        let taken = lock(&self.on_event).take();
        if let Some(mut hook) = taken {
            fault = hook(notice);
            lock(&self.on_event).get_or_insert(hook);
        }
        fault
    }

    pub(crate) fn written(&self, record: &WriteRecord) {
        let mut hooks = std::mem::take(&mut *lock(&self.on_write));
        for hook in &mut hooks {
            hook(record);
        }
        put_back(&self.on_write, hooks);

        let mut invariants = std::mem::take(&mut *lock(&self.invariants));
        for (name, check) in &mut invariants {
            if let Err(why) = check(record) {
                lock(&self.violations).push(format!("{name}: {record:?}: {why}"));
            }
        }
        put_back(&self.invariants, invariants);
    }
}

/// Puts hooks back in front of those that were added meanwhile.
fn put_back<T>(slot: &Mutex<Vec<T>>, mut hooks: Vec<T>) {
    let mut present = lock(slot);
    hooks.append(&mut present);
    *present = hooks;
}
