//! How much memory the answers of FerrVault may take at a time, in the whole process.
//!
//! An answer has 4 MiB at most, and hundreds of passes may ask at once; the pod has 256 MiB. So whoever reads more than a
//! little first claims room for all that the rest may become, and waits for it in the order of asking. A claim is made
//! once, whole, and only ever made smaller: nobody waits while holding a part, so nobody can wait for ever.
//!
//! Claims of one connection and of one namespace have a share that they do not exceed, beside which others find room:
//! whoever is over his share is passed over, and does not hold up who stands behind him (I9).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::body::MAX_ANSWER_BYTES;

/// Room for claims: a quarter of the 256 MiB that the pod has by default. Beside it there are the free parts of 512 passes
/// at their most ([`FREE_BYTES`], 32 MiB, and as much again while they are decoded) and what the process keeps.
const ALL_BYTES: usize = 64 * 1024 * 1024;

/// Read without a claim. Nearly every answer is smaller, and then nothing here is touched at all.
pub(crate) const FREE_BYTES: usize = 64 * 1024;

/// What becomes of one byte of an answer at most while it is read: the answer itself and the values decoded from it. A
/// buffer that grows holds less, its former half and its new whole.
const WHILE_READING: usize = 2;

/// What becomes of one byte of a value at most afterwards: the value, its base64 in a patch (4/3), and that patch as it is
/// sent, where most of the latter two are never there together.
const AFTERWARDS: usize = 3;

/// Memory for answers, shared by all clients that it is handed to. A clone is the same memory.
#[derive(Clone)]
pub struct AnswerMemory(Arc<Mutex<State>>);

/// For whom room is claimed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) namespace: Arc<str>,
    pub(crate) connection: Arc<str>,
}

struct State {
    all: usize,
    claimed: usize,
    of_namespaces: BTreeMap<Arc<str>, usize>,
    of_connections: BTreeMap<Owner, usize>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    owner: Owner,
    bytes: usize,
    granted: oneshot::Sender<Claim>,
}

/// Room in [`AnswerMemory`], given back when this is dropped. To be kept for as long as anything of the answer is.
pub struct Claim {
    memory: AnswerMemory,
    owner: Owner,
    bytes: usize,
}

/// A place among those that wait. When it is left, the next ones are looked at.
struct Turn<'a>(&'a AnswerMemory);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.grant();
    }
}

/// Whether a claim may be granted now.
enum Room {
    Enough,
    /// Not for this owner.
    OverShare,
    /// For nobody.
    Full,
}

impl Default for AnswerMemory {
    fn default() -> Self {
        Self::of(ALL_BYTES)
    }
}

impl AnswerMemory {
    fn of(all: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            all,
            claimed: 0,
            of_namespaces: BTreeMap::new(),
            of_connections: BTreeMap::new(),
            waiting: VecDeque::new(),
        })))
    }

    /// Waits for the room that reading an answer takes: one of `length` bytes, or the longest where that is not known. The
    /// caller bounds the wait.
    pub(crate) async fn claim(&self, owner: &Owner, length: Option<usize>) -> Claim {
        let bytes = length.unwrap_or(MAX_ANSWER_BYTES).min(MAX_ANSWER_BYTES).saturating_mul(WHILE_READING);
        let (granted, grant) = oneshot::channel();
        self.state().waiting.push_back(Waiting { owner: owner.clone(), bytes, granted });
        self.grant();
        // However this wait ends, cut off included: whoever stands behind may have what it no longer wants.
        let _turn = Turn(self);
        match grant.await {
            Ok(claim) => claim,
            // The sender goes with the memory alone, of which this call holds a clone.
            Err(_) => std::future::pending().await,
        }
    }

    /// Bytes that are claimed at this moment.
    pub fn claimed(&self) -> usize {
        self.state().claimed
    }

    /// Grants what may be granted. Claims are handed over without the lock: one that nobody waits for any more is dropped,
    /// which takes it.
    fn grant(&self) {
        while let Some((waiting, claim)) = self.next_grant() {
            let _ = waiting.granted.send(claim);
        }
    }

    fn next_grant(&self) -> Option<(Waiting, Claim)> {
        let mut state = self.state();
        state.waiting.retain(|waiting| !waiting.granted.is_closed());
        let mut found = None;
        for (place, waiting) in state.waiting.iter().enumerate() {
            match state.room(&waiting.owner, waiting.bytes) {
                Room::Enough => {
                    found = Some(place);
                    break;
                }
                Room::OverShare => {}
                // Whoever stands behind waits as well, or a large claim would never find its room.
                Room::Full => break,
            }
        }
        let waiting = state.waiting.remove(found?)?;
        state.change(&waiting.owner, |claimed| claimed.saturating_add(waiting.bytes));
        let claim = Claim { memory: self.clone(), owner: waiting.owner.clone(), bytes: waiting.bytes };
        Some((waiting, claim))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers and a list: a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A connection has at most a quarter, a namespace half, and the last quarter of all is for namespaces that have
    /// nothing. The longest answer claims 8 MiB, so that each of these holds two.
    fn room(&self, owner: &Owner, bytes: usize) -> Room {
        let of_connection = self.of_connections.get(owner).copied().unwrap_or(0);
        let of_namespace = self.of_namespaces.get(&owner.namespace).copied().unwrap_or(0);
        let fits = |claimed: usize, most: usize| claimed == 0 || claimed.saturating_add(bytes) <= most;
        let in_share = fits(of_connection, self.all / 4)
            && fits(of_namespace, self.all / 2)
            && (of_namespace == 0 || self.claimed.saturating_add(bytes) <= self.all / 4 * 3);
        if !in_share {
            Room::OverShare
        } else if fits(self.claimed, self.all) {
            Room::Enough
        } else {
            Room::Full
        }
    }

    fn change(&mut self, owner: &Owner, change: impl Fn(usize) -> usize) {
        self.claimed = change(self.claimed);
        let namespace = self.of_namespaces.entry(Arc::clone(&owner.namespace)).or_default();
        *namespace = change(*namespace);
        if *namespace == 0 {
            self.of_namespaces.remove(&owner.namespace);
        }
        let connection = self.of_connections.entry(owner.clone()).or_default();
        *connection = change(*connection);
        if *connection == 0 {
            self.of_connections.remove(owner);
        }
    }
}

impl Claim {
    /// Gives back what an answer with so many bytes of values does not take once it is decoded.
    pub(crate) fn decoded(&mut self, values: usize) {
        let kept = values.saturating_mul(AFTERWARDS).min(self.bytes);
        self.give_back(self.bytes - kept);
    }

    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.memory.state().change(&self.owner, |claimed| claimed.saturating_sub(bytes));
        self.memory.grant();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

impl fmt::Debug for AnswerMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerMemory").field("claimed", &self.claimed()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("owner", &self.owner).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
