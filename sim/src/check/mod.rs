//! The invariants of DESIGN 2, checked from outside: from every write as the API server stored it, from what FerrVault
//! answered, and from the objects at rest. Nothing here asks an operator, and nothing it recorded is believed except
//! where an invariant is about that record.
//!
//! The account kept for each resource is this: which contents its target was given under which version, and for which
//! version each listed workload was last restarted. All of I1, I2 and I3 are read off these two.

mod borders;
mod keeper;
mod rest;
mod truth;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferrvault_core::content::Content;
use ferrvault_testkit::{Call, Fault, Verb, WriteRecord};
use serde_json::Value;
use tokio::sync::Notify;

use self::keeper::Keeper;
use crate::cast::{self, Resource, Secret, Workload};

pub(crate) use self::borders::{CANARY, SYSTEM, gives_away};
pub use self::rest::End;
pub(crate) use self::rest::heartbeats_only;

/// The invariants of DESIGN 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// Nothing lost.
    I1,
    /// Nothing twice.
    I2,
    /// No surprise.
    I3,
    /// Data.
    I4,
    /// Truth.
    I5,
    /// Not ours.
    I6,
    /// Awake.
    I7,
    /// Secret.
    I8,
    /// Isolation.
    I9,
    /// Rest.
    I10,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meaning = match self {
            Self::I1 => "nothing lost",
            Self::I2 => "nothing twice",
            Self::I3 => "no surprise",
            Self::I4 => "data",
            Self::I5 => "truth",
            Self::I6 => "not ours",
            Self::I7 => "awake",
            Self::I8 => "secret",
            Self::I9 => "isolation",
            Self::I10 => "rest",
        };
        write!(f, "{self:?} {meaning}")
    }
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// Virtual time.
    pub at: Duration,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s: {}", self.invariant, self.at.as_secs_f64(), self.what)
    }
}

/// Namespace and name.
type Key = (String, String);

/// One answer of FerrVault, as it was received.
struct Answer {
    who: String,
    at: Duration,
    vault: String,
    names: Vec<String>,
    content: Content,
}

/// Of a connection, what is left to be done about it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Connection {
    is_ready: bool,
    is_leaving: bool,
    /// By the finalizer that is there while somebody refers to it.
    is_held: bool,
}

/// A process began to read a Secret.
struct Look {
    who: String,
    at: Duration,
    /// How many answers of FerrVault there were by then. Time alone does not tell which came first: it stands still.
    answers: usize,
    namespace: String,
    name: String,
}

/// Everything that is written down.
#[derive(Default)]
pub(crate) struct Books {
    keepers: BTreeMap<String, Keeper>,
    secrets: BTreeMap<Key, Vec<(Duration, Option<Secret>)>>,
    workloads: BTreeMap<(String, Workload), Arc<Value>>,
    upstream: BTreeMap<String, Vec<(Duration, Content)>>,
    answers: Vec<Answer>,
    looks: Vec<Look>,
    /// Processes that were answered from before, and when.
    deceived: Vec<(String, Duration)>,
    /// Secrets that hold a token, by namespace and name: a person made them, and a resource may be told to keep one.
    tokens: Vec<Key>,
    violations: Vec<Violation>,
    /// What became of Secrets and workloads by the last write, for the story.
    told: Vec<String>,
    connections: BTreeMap<Key, Connection>,
    /// When workloads were restarted, by namespace and name.
    restarts: BTreeMap<Key, Vec<Duration>>,
    /// The second in which operators called last, and how often in it.
    busy: (u64, usize),
}

/// Calls within one second beyond which operators only keep each other busy: a start makes about forty, and no scenario
/// has more than a handful of objects.
const BUSY: usize = 1_000;
/// So often the same is said.
const REPEATED: usize = 3;

/// The checks of one run. Clones are the same ones.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    books: Arc<Mutex<Books>>,
    endless: Arc<Notify>,
}

impl Ledger {
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves once operators do nothing but call, so that time never passes again and the run would not end.
    pub(crate) async fn endless(&self) {
        self.endless.notified().await;
    }

    /// Every change of every object passes here. What there is to tell of it in the story.
    pub(crate) fn written(&self, write: &WriteRecord) -> Vec<String> {
        let mut books = self.books();
        books.written(write);
        std::mem::take(&mut books.told)
    }

    /// What a vault holds from now on.
    pub(crate) fn upstream(&self, at: Duration, vault: &str, content: Content) {
        self.books().upstream.entry(vault.to_owned()).or_default().push((at, content));
    }

    /// What an operator was just answered.
    pub(crate) fn answered(&self, at: Duration, who: &str, vault: &str, names: &[String], content: Content) {
        let answer = Answer { who: who.to_owned(), at, vault: vault.to_owned(), names: names.to_vec(), content };
        self.books().answers.push(answer);
    }

    /// A call of an operator arrives, and what happens to it.
    pub(crate) fn called(&self, call: &Call, fault: &Fault) {
        if !cast::is_operator(&call.who) {
            return;
        }
        let mut books = self.books();
        if books.is_too_busy(call.at) {
            self.endless.notify_one();
        }
        if call.verb != Verb::Get {
            return;
        }
        if call.resource == "secrets" {
            let (who, at) = (call.who.clone(), call.at);
            let (answers, namespace, name) = (books.answers.len(), call.namespace.clone(), call.name.clone());
            books.looks.push(Look { who, at, answers, namespace, name });
        }
        if matches!(fault, Fault::StaleAt(_)) {
            books.deceived.push((call.who.clone(), call.at));
        }
    }

    /// A Secret that a person keeps a token in.
    pub(crate) fn token(&self, namespace: &str, name: &str) {
        self.books().tokens.push((namespace.to_owned(), name.to_owned()));
    }

    pub(crate) fn violate(&self, at: Duration, invariant: Invariant, what: String) {
        self.books().violate(at, invariant, what);
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.books().violations.clone()
    }

    /// When an operator restarted the workloads of this name.
    pub(crate) fn restarts(&self, namespace: &str, name: &str) -> Vec<Duration> {
        self.books().restarts.get(&(namespace.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }

    /// How many answers were given for a vault so far.
    pub(crate) fn answers_of(&self, vault: &str) -> usize {
        self.books().answers.iter().filter(|answer| answer.vault == vault).count()
    }
}

impl Books {
    fn violate(&mut self, at: Duration, invariant: Invariant, what: String) {
        // What goes wrong over and over says nothing new.
        let again = self.violations.iter().filter(|known| known.invariant == invariant && known.what == what).count();
        if again >= REPEATED {
            return;
        }
        self.violations.push(Violation { invariant, at, what });
    }

    /// Counts one call; whether it is the one too many.
    fn is_too_busy(&mut self, at: Duration) -> bool {
        let (second, calls) = self.busy;
        self.busy = if second == at.as_secs() { (second, calls + 1) } else { (at.as_secs(), 1) };
        let is_one_too_many = self.busy.1 == BUSY;
        if is_one_too_many {
            self.violate(at, Invariant::I10, format!("operators made {BUSY} calls within a second, and went on"));
        }
        is_one_too_many
    }

    fn written(&mut self, write: &WriteRecord) {
        self.borders(write);
        match write.resource.as_str() {
            "secrets" => self.secret_written(write),
            "ferrvaultsecrets.ferrvault.com" => self.resource_written(write),
            "ferrvaultconnections.ferrvault.com" => {
                let key = (write.namespace.clone(), write.name.clone());
                match &write.new {
                    Some(new) => {
                        let is_ready = Resource::of(new).status.says("Ready", "True", "Reachable");
                        let is_leaving = new.pointer("/metadata/deletionTimestamp").is_some();
                        let is_held = cast::is_held(new);
                        self.connections.insert(key, Connection { is_ready, is_leaving, is_held })
                    }
                    None => self.connections.remove(&key),
                };
            }
            resource => {
                if let Some(workload) = Workload::stored(resource, &write.name) {
                    self.workload_written(write, &workload);
                    let key = (write.namespace.clone(), workload);
                    match &write.new {
                        Some(new) => self.workloads.insert(key, Arc::clone(new)),
                        None => self.workloads.remove(&key),
                    };
                }
            }
        }
    }

    fn resource_written(&mut self, write: &WriteRecord) {
        let uid =
            [&write.new, &write.old].into_iter().flatten().map(|object| cast::text(object, "/metadata/uid")).next();
        let Some(uid) = uid.map(str::to_owned) else { return };
        let before = self.keepers.get(&uid).map(|keeper| keeper.resource.clone());
        let Some(new) = &write.new else {
            if let Some(keeper) = self.keepers.get_mut(&uid) {
                keeper.is_gone = true;
            }
            return;
        };
        let resource = Resource::of(new);
        match self.keepers.get_mut(&uid) {
            Some(keeper) => keeper.renew(resource),
            None => {
                self.keepers.insert(uid.clone(), Keeper::of(resource));
            }
        }
        if cast::is_operator(&write.who) && write.subresource == "status" {
            self.status_written(write, &uid, before.as_ref());
        }
    }

    /// The resource that keeps a Secret, and still exists.
    fn keeper_of(&self, namespace: &str, target: &str) -> Option<&Keeper> {
        let keeps = |keeper: &&Keeper| {
            !keeper.is_gone && keeper.resource.namespace == namespace && keeper.resource.target == target
        };
        self.keepers.values().find(keeps)
    }

    /// A word for a content: the how manieth of its vault it is.
    fn name_of(&self, resource: &Resource, content: &Content) -> String {
        let history = self.upstream.get(&resource.vault).map(Vec::as_slice).unwrap_or_default();
        let found = history.iter().position(|(_, vault)| resource.wanted(vault).as_ref() == Some(content));
        match found.and_then(|index| u32::try_from(index).ok()).and_then(|index| char::from_digit(index + 10, 36)) {
            Some(letter) => format!("content {}", letter.to_ascii_uppercase()),
            None => format!("content that FerrVault never had ({} keys)", content.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_that_only_keep_each_other_busy_are_said_once_and_end_the_run() {
        let mut books = Books::default();
        let begun = Duration::from_millis(1_500);
        let mut called = |at: Duration, times: usize| (0..times).filter(|_| books.is_too_busy(at)).count();
        assert_eq!(called(begun, BUSY - 1), 0);
        assert_eq!(called(begun + Duration::from_secs(1), BUSY - 1), 0, "another second");
        assert_eq!(called(begun + Duration::from_secs(2), BUSY * 3), 1);
        let found: Vec<Invariant> = books.violations.iter().map(|violation| violation.invariant).collect();
        assert_eq!(found, [Invariant::I10]);
    }

    #[test]
    fn what_goes_wrong_over_and_over_is_said_a_few_times() {
        let mut books = Books::default();
        for second in 0..100 {
            books.violate(Duration::from_secs(second), Invariant::I4, "the same".to_owned());
        }
        books.violate(Duration::from_secs(100), Invariant::I4, "another".to_owned());
        assert_eq!(books.violations.len(), REPEATED + 1);
    }
}
