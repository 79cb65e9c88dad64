//! A scripted FerrVault: vaults, keys, versions, tokens, and faults by call.
//!
//! Asked in process (`reveal`), it lives in virtual time like everything else in a simulation; through
//! [`ScriptedVault::router`] it can be asked over HTTP. It is no server to try the product with: that is `devserver`.

mod http;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use self::http::Listening;
use crate::clock::Clock;
use crate::hooks::lock;
use ferrvault_core::content::{Answer, Content, SecretBytes};

/// What happens to one call to FerrVault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VaultFault {
    /// It is answered.
    #[default]
    None,
    /// Answered with this code.
    Refuse(u16),
    /// Answered 429, with or without `Retry-After` in seconds.
    Throttle(Option<u32>),
    /// No connection.
    Unreachable,
    /// Accepted and never answered.
    Stall,
    /// Answered after this long, with what is there by then.
    Slow(Duration),
    /// Answered at once with what is there now, and the answer takes this long.
    SlowAnswer(Duration),
    /// 200 with a body that is no JSON.
    Nonsense,
    /// 200 with no key at all, found or missing.
    Empty,
    /// 200 with more than a client should read.
    TooLarge,
}

/// Why a call in process got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultFailure {
    /// An HTTP status, with `Retry-After` in seconds where one was sent.
    Status(u16, Option<u32>),
    /// No connection.
    Unreachable,
    /// 200 with a body that is no JSON.
    Nonsense,
    /// 200 with more than a client should read.
    TooLarge,
}

/// One call to FerrVault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultCall {
    /// Its place among all calls, from 1.
    pub number: usize,
    /// `reveal`, `list`, `me`, `health` or `exchange`.
    pub what: &'static str,
    /// The vault; empty where none is named.
    pub vault: String,
    /// The keys asked for; empty for all.
    pub names: Vec<String>,
    /// Virtual time since this FerrVault was made.
    pub at: Duration,
}

impl fmt::Display for VaultCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "F#{} {} {} {:?}", self.number, self.what, self.vault, self.names)
    }
}

/// A key of a vault.
#[derive(Clone, Debug)]
struct Entry {
    value: SecretBytes,
    version: i32,
}

type OnCall = Box<dyn FnMut(&VaultCall) -> VaultFault + Send>;

struct Model {
    clock: Clock,
    vaults: BTreeMap<String, BTreeMap<String, Entry>>,
    /// Token and the one vault it is good for, if it is bound to one. None at all: every token is good.
    tokens: Vec<(SecretBytes, Option<String>)>,
    calls: Vec<VaultCall>,
    plan: BTreeMap<usize, VaultFault>,
}

/// A FerrVault in memory. Clones are the same one.
#[derive(Clone)]
pub struct ScriptedVault {
    model: Arc<Mutex<Model>>,
    on_call: Arc<Mutex<Option<OnCall>>>,
}

impl Default for ScriptedVault {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ScriptedVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedVault with {} calls so far", lock(&self.model).calls.len())
    }
}

impl ScriptedVault {
    /// A FerrVault without vaults, to which every token is good.
    pub fn new() -> Self {
        let model = Model {
            clock: Clock::start(),
            vaults: BTreeMap::new(),
            tokens: Vec::new(),
            calls: Vec::new(),
            plan: BTreeMap::new(),
        };
        Self { model: Arc::new(Mutex::new(model)), on_call: Arc::default() }
    }

    /// Stores a value; makes the vault if needed. A value that differs raises the key's version.
    pub fn set(&self, vault: &str, key: &str, value: impl Into<SecretBytes>) {
        let value = value.into();
        let mut model = lock(&self.model);
        let entries = model.vaults.entry(vault.to_owned()).or_default();
        let entry = entries.entry(key.to_owned()).or_insert_with(|| Entry { value: value.clone(), version: 1 });
        if entry.value != value {
            *entry = Entry { value, version: entry.version + 1 };
        }
    }

    /// Removes a key.
    pub fn unset(&self, vault: &str, key: &str) {
        if let Some(entries) = lock(&self.model).vaults.get_mut(vault) {
            entries.remove(key);
        }
    }

    /// Makes a vault without keys, or empties one.
    pub fn empty(&self, vault: &str) {
        lock(&self.model).vaults.insert(vault.to_owned(), BTreeMap::new());
    }

    /// Removes a vault.
    pub fn remove(&self, vault: &str) {
        lock(&self.model).vaults.remove(vault);
    }

    /// Accepts a token, for one vault or for all. From the first one on, no other token is good.
    pub fn accept(&self, token: impl Into<SecretBytes>, vault: Option<&str>) {
        lock(&self.model).tokens.push((token.into(), vault.map(str::to_owned)));
    }

    /// Accepts a token no longer.
    pub fn revoke(&self, token: impl Into<SecretBytes>) {
        let token = token.into();
        lock(&self.model).tokens.retain(|(known, _)| *known != token);
    }

    /// Puts a fault on a call by number.
    pub fn fail_at(&self, number: usize, fault: VaultFault) {
        lock(&self.model).plan.insert(number, fault);
    }

    /// Lets `hook` decide about every call; where it says `VaultFault::None`, `fail_at` decides. A hook may end a
    /// process of the API server, which makes this the place where that process is cut.
    pub fn on_call(&self, hook: impl FnMut(&VaultCall) -> VaultFault + Send + 'static) {
        *lock(&self.on_call) = Some(Box::new(hook));
    }

    /// From now on nothing goes wrong.
    pub fn clear_faults(&self) {
        lock(&self.model).plan.clear();
        *lock(&self.on_call) = None;
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<VaultCall> {
        lock(&self.model).calls.clone()
    }

    /// What the vault holds now.
    pub fn content(&self, vault: &str) -> Option<Content> {
        let model = lock(&self.model);
        let entries = model.vaults.get(vault)?;
        Some(entries.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect())
    }

    /// A reveal in process. Without a token none is asked for.
    pub async fn reveal(&self, token: Option<&[u8]>, vault: &str, names: &[String]) -> Result<Answer, VaultFailure> {
        match self.pass("reveal", vault, names).await? {
            Passed::Empty => Ok(Answer::default()),
            Passed::Through => self.answer(token, vault, names),
            Passed::AnswerTakes(by) => {
                let answer = self.answer(token, vault, names);
                tokio::time::sleep(by).await;
                answer
            }
        }
    }

    /// A probe in process.
    pub async fn health(&self) -> Result<(), VaultFailure> {
        if let Passed::AnswerTakes(by) = self.pass("health", "", &[]).await? {
            tokio::time::sleep(by).await;
        }
        Ok(())
    }

    fn answer(&self, token: Option<&[u8]>, vault: &str, names: &[String]) -> Result<Answer, VaultFailure> {
        let model = lock(&self.model);
        if let Some(token) = token {
            model.check(token, vault)?;
        }
        let entries = model.vaults.get(vault).ok_or(VaultFailure::Status(404, None))?;
        let is_wanted = |key: &String| names.is_empty() || names.contains(key);
        let found = entries.iter().filter(|(key, _)| is_wanted(key));
        let mut missing: Vec<String> = names.iter().filter(|name| !entries.contains_key(*name)).cloned().collect();
        missing.sort();
        missing.dedup();
        Ok(Answer { content: found.map(|(key, entry)| (key.clone(), entry.value.clone())).collect(), missing })
    }

    /// Counts a call and lets its fault happen.
    async fn pass(&self, what: &'static str, vault: &str, names: &[String]) -> Result<Passed, VaultFailure> {
        match self.arrive(what, vault, names) {
            VaultFault::None => Ok(Passed::Through),
            VaultFault::Refuse(code) => Err(VaultFailure::Status(code, None)),
            VaultFault::Throttle(after) => Err(VaultFailure::Status(429, after)),
            VaultFault::Unreachable => Err(VaultFailure::Unreachable),
            VaultFault::Stall => std::future::pending().await,
            VaultFault::Slow(by) => {
                tokio::time::sleep(by).await;
                Ok(Passed::Through)
            }
            VaultFault::SlowAnswer(by) => Ok(Passed::AnswerTakes(by)),
            VaultFault::Nonsense => Err(VaultFailure::Nonsense),
            VaultFault::Empty => Ok(Passed::Empty),
            VaultFault::TooLarge => Err(VaultFailure::TooLarge),
        }
    }

    fn arrive(&self, what: &'static str, vault: &str, names: &[String]) -> VaultFault {
        let call = {
            let mut model = lock(&self.model);
            let call = VaultCall {
                number: model.calls.len() + 1,
                what,
                vault: vault.to_owned(),
                names: names.to_vec(),
                at: model.clock.elapsed(),
            };
            model.calls.push(call.clone());
            call
        };
        // Outside the lock, and taken out while it runs: a hook may use this FerrVault.
        let mut fault = VaultFault::None;
        let taken = lock(&self.on_call).take();
        if let Some(mut hook) = taken {
            fault = hook(&call);
            lock(&self.on_call).get_or_insert(hook);
        }
        if fault == VaultFault::None {
            fault = lock(&self.model).plan.get(&call.number).cloned().unwrap_or_default();
        }
        fault
    }
}

/// How a call goes on after its fault.
enum Passed {
    Through,
    Empty,
    AnswerTakes(Duration),
}

impl Model {
    fn check(&self, token: &[u8], vault: &str) -> Result<(), VaultFailure> {
        if self.tokens.is_empty() {
            return Ok(());
        }
        let known = self.tokens.iter().find(|(known, _)| known.expose() == token);
        match known {
            None => Err(VaultFailure::Status(401, None)),
            Some((_, Some(bound))) if bound != vault => Err(VaultFailure::Status(403, None)),
            Some(_) => Ok(()),
        }
    }
}
