//! Carries a plan out: counts what the operators do from the beginning of the script, and lets things go wrong where the
//! plan says so. Must never decide anything by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferrvault_testkit::{Break, Call, EventFault, EventNotice, Fault, Verb, WriteRecord};

use crate::cast;
use crate::plan::{Place, Plan, Trouble};
use crate::server::Server;
use crate::story::Notes;

/// What can go wrong at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A read of one object or a list.
    Read,
    /// The opening of a watch.
    Watch,
    /// A write.
    Write,
    /// An event for people: written beside the pass, its answer is looked at by nobody.
    Telling,
    /// A call to FerrVault.
    Vault,
    /// An event on its way to a watch.
    Event,
}

impl Occasion {
    /// Everything that can go wrong.
    pub fn troubles(self) -> Vec<Trouble> {
        match self {
            Self::Read => Trouble::of_reads(),
            Self::Watch => {
                let mut all = Trouble::of_reads();
                all.retain(|trouble| *trouble != Trouble::Stale);
                all
            }
            Self::Write | Self::Telling => Trouble::of_writes(),
            Self::Vault => Trouble::of_vault(),
            Self::Event => Trouble::of_events(),
        }
    }
}

/// The plan of a run while it is carried out. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Faults {
    server: Server,
    notes: Notes,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    plan: Plan,
    armed: bool,
    calls: usize,
    vault_calls: usize,
    events: usize,
    places: Vec<(Place, Occasion)>,
    /// Places of calls by their number in the journal, for the story.
    numbered: BTreeMap<usize, Place>,
    fired: usize,
    /// Of the last change of anything.
    revision: u64,
    /// The revision at which each object was last changed, by kind, namespace and name.
    changed: BTreeMap<(String, String, String), u64>,
}

impl Faults {
    pub(crate) fn new(server: &Server, notes: &Notes) -> Self {
        Self { server: server.clone(), notes: notes.clone(), state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers which revisions objects were changed at, so that a stale read knows how far back to look.
    pub(crate) fn written(&self, write: &WriteRecord) {
        let revision = write.new.as_ref().map(|object| cast::text(object, "/metadata/resourceVersion"));
        let mut state = self.state();
        // A deletion is a change like any other, and what is gone does not say at which revision it went.
        state.revision = revision.and_then(|text| text.parse().ok()).unwrap_or(state.revision + 1);
        let (key, revision) = ((write.resource.clone(), write.namespace.clone(), write.name.clone()), state.revision);
        state.changed.insert(key, revision);
    }

    /// From here on things are counted, and go wrong as planned.
    pub(crate) fn arm(&self, plan: Plan) {
        let mut state = self.state();
        state.plan = plan;
        state.armed = true;
    }

    /// From here on nothing goes wrong any more, and nothing is counted.
    pub(crate) fn disarm(&self) {
        self.state().armed = false;
    }

    /// Every place that was passed while armed.
    pub(crate) fn places(&self) -> Vec<(Place, Occasion)> {
        self.state().places.clone()
    }

    /// How many of the planned faults happened.
    pub(crate) fn fired(&self) -> usize {
        self.state().fired
    }

    /// The place of a call by its number in the journal.
    pub(crate) fn place_of(&self, number: usize) -> Option<Place> {
        self.state().numbered.get(&number).copied()
    }

    /// What is to go wrong with a call to the API server.
    pub(crate) fn at_call(&self, call: &Call) -> Fault {
        if !cast::is_operator(&call.who) {
            return Fault::None;
        }
        let mut state = self.state();
        if !state.armed {
            return Fault::None;
        }
        state.calls += 1;
        let place = Place::Call(state.calls);
        let occasion = match call.verb {
            Verb::Watch => Occasion::Watch,
            Verb::Create if call.resource == "events" => Occasion::Telling,
            verb if verb.is_write() => Occasion::Write,
            _ => Occasion::Read,
        };
        state.places.push((place, occasion));
        state.numbered.insert(call.number, place);
        let Some(trouble) = state.plan.at(place) else { return Fault::None };
        state.fired += 1;
        let before = state.before_last_change(call);
        drop(state);
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        match trouble {
            Trouble::Refuse(code) => Fault::Refuse(code),
            Trouble::LostRequest => Fault::LostRequest,
            Trouble::LostAnswer => Fault::LostAnswer,
            Trouble::ResetBefore => Fault::ResetBefore,
            Trouble::ResetAfter => Fault::ResetAfter,
            Trouble::ResetMidBody => Fault::ResetMidBody,
            Trouble::CutBefore => Fault::CutBefore,
            Trouble::CutAfter => Fault::CutAfter,
            Trouble::Stale => before.map_or(Fault::None, Fault::StaleAt),
            Trouble::Late(by) => Fault::Late(seconds(by)),
            Trouble::Slow(by) => Fault::Slow(seconds(by)),
            // Not of calls to the API server; a plan typed by hand may say so all the same.
            _ => Fault::None,
        }
    }

    /// What is to go wrong with a call to FerrVault that begins now.
    pub(crate) fn at_vault(&self, who: &str) -> (Option<Place>, Option<Trouble>) {
        let mut state = self.state();
        if !state.armed {
            return (None, None);
        }
        state.vault_calls += 1;
        let place = Place::Vault(state.vault_calls);
        state.places.push((place, Occasion::Vault));
        let trouble = state.plan.at(place);
        state.fired += usize::from(trouble.is_some());
        drop(state);
        if trouble.is_some_and(Trouble::ends_process) {
            self.server.with(|api| api.end(who));
        }
        (Some(place), trouble)
    }

    /// What is to go wrong with an event.
    pub(crate) fn at_event(&self, notice: &EventNotice) -> EventFault {
        if !cast::is_operator(&notice.who) {
            return EventFault::None;
        }
        let mut state = self.state();
        if !state.armed {
            return EventFault::None;
        }
        state.events += 1;
        let place = Place::Event(state.events);
        state.places.push((place, Occasion::Event));
        let Some(trouble) = state.plan.at(place) else { return EventFault::None };
        state.fired += 1;
        let object = format!("{} {} {}/{}", notice.event, notice.resource, notice.namespace, notice.name);
        drop(state);
        self.notes.add(format!("{place} on its way to {}: {object} [{trouble}]", notice.who));
        let broken = |how| {
            self.server.with(|api| api.break_watches(how, |watch| watch.call == notice.watch));
            EventFault::Dropped
        };
        match trouble {
            Trouble::Late(by) => EventFault::Late(Duration::from_secs(u64::from(by))),
            Trouble::Twice => EventFault::Twice,
            Trouble::Dropped => EventFault::Dropped,
            Trouble::Silent => broken(Break::Silent),
            Trouble::Closed => broken(Break::Close),
            Trouble::Expired => broken(Break::Expire),
            _ => EventFault::None,
        }
    }
}

impl State {
    /// The revision just before what `call` reads was last changed.
    fn before_last_change(&self, call: &Call) -> Option<u64> {
        let kind =
            if call.group.is_empty() { call.resource.clone() } else { format!("{}.{}", call.resource, call.group) };
        let is_read = |(key, _): &(&(String, String, String), &u64)| {
            key.0 == kind
                && (call.namespace.is_empty() || key.1 == call.namespace)
                && (call.name.is_empty() || key.2 == call.name)
        };
        let last = self.changed.iter().filter(is_read).map(|(_, revision)| *revision).max()?;
        last.checked_sub(1)
    }
}
