//! What the server was asked: counters by method, route and vault, and the last requests.
//!
//! Neither holds a token, a value, a body or a raw path: routes are named by their template.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Requests remembered: at some 300 bytes each, a third of a megabyte.
const REMEMBERED: usize = 1_000;

/// How often one kind of call arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCount {
    /// HTTP method.
    pub method: String,
    /// Path with its variable parts named, or `unknown`.
    pub route: String,
    /// Name of the vault, where the call is about one.
    pub vault: Option<String>,
    /// Calls that arrived, whatever became of them.
    pub count: u64,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedRequest {
    /// Counts up from 1.
    pub seq: u64,
    /// When it arrived.
    pub at: Timestamp,
    /// HTTP method.
    pub method: String,
    /// Path with its variable parts named, or `unknown`.
    pub route: String,
    /// Name of the vault, where the call is about one.
    pub vault: Option<String>,
    /// The names that a reveal asked for; absent when it asked for all.
    pub names: Option<Vec<String>>,
    /// The header `X-FerrVault-Namespace`.
    pub namespace: Option<String>,
    /// Whether it carried a bearer token.
    pub bearer: bool,
    /// The fault that it met.
    pub fault: Option<String>,
    /// The status it was answered with; absent while it is not answered, and for good when it never is.
    pub status: Option<u16>,
}

/// Counters and last requests of a server.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    counts: BTreeMap<(String, String, Option<String>), u64>,
    requests: VecDeque<LoggedRequest>,
    last_seq: u64,
}

impl Ledger {
    /// The counters, sorted by route.
    pub fn counts(&self) -> Vec<CallCount> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts: Vec<CallCount> = kept
            .counts
            .iter()
            .map(|((method, route, vault), &count)| CallCount {
                method: method.clone(),
                route: route.clone(),
                vault: vault.clone(),
                count,
            })
            .collect();
        counts.sort_by(|a, b| (&a.route, &a.method, &a.vault).cmp(&(&b.route, &b.method, &b.vault)));
        counts
    }

    /// Calls that arrived since the counters were last set to zero.
    pub fn total(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counts.values().sum()
    }

    /// The remembered requests after number `after`, oldest first.
    pub fn requests(&self, after: u64) -> Vec<LoggedRequest> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.requests.iter().filter(|request| request.seq > after).cloned().collect()
    }

    /// Sets the counters to zero. The remembered requests stay.
    pub fn reset_counts(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counts.clear();
    }

    /// Counts and remembers a request, and gives it its number.
    pub(crate) fn arrived(&self, mut request: LoggedRequest) -> u64 {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last_seq += 1;
        request.seq = kept.last_seq;
        let key = (request.method.clone(), request.route.clone(), request.vault.clone());
        *kept.counts.entry(key).or_default() += 1;
        if kept.requests.len() == REMEMBERED {
            kept.requests.pop_front();
        }
        kept.requests.push_back(request);
        kept.last_seq
    }

    /// Notes the status that request `seq` was answered with.
    pub(crate) fn answered(&self, seq: u64, status: u16) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(request) = kept.requests.iter_mut().rev().find(|request| request.seq == seq) {
            request.status = Some(status);
        }
    }
}
