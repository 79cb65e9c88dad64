//! What a test can make happen to requests, events and streams, and what it can know about what happened.

use super::{ApiServer, OpenWatch};
use crate::call::{Call, Record, Verb};
use crate::fault::{Break, EventFault, Fault, Plan};
use crate::hooks::{EventNotice, WriteRecord, lock};

impl ApiServer {
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
