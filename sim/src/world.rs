//! A cluster in memory, a FerrVault, a clock and the operators in it, all under virtual time and all from one seed.
//!
//! Time passes only through [`World::pass`], which also starts a process again a second after a fault has ended it, as
//! its node would.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ferrvault_core::content::SecretBytes;
use ferrvault_operator::admin::Metrics;
use ferrvault_operator::clock::Clock;
use ferrvault_operator::cluster::client::Clients;
use ferrvault_operator::cluster::operator_key;
use ferrvault_operator::cluster::watch::Scope;
use ferrvault_operator::entropy::Entropy;
use ferrvault_testkit::{ApiServer, Call, EPOCH_SECONDS, Fault, ScriptedVault, VaultFault, Verb, WriteRecord, build};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use tokio::time::Instant;

use crate::act::{self, Act, Kind, NS};
use crate::broken::Variant;
use crate::cast;
use crate::check::{Ledger, SYSTEM};
use crate::faults::Faults;
use crate::process::{KEY_SECRET, Process, Start};
use crate::reality::URL;
use crate::server::Server;
use crate::story::Notes;
use crate::upstream::{TokensRead, Upstream};

/// A process that a fault has ended is started again after this.
const COMES_BACK: Duration = Duration::from_secs(1);
/// Where the connection's token is.
pub(crate) const TOKEN_SECRET: &str = "token";
pub(crate) const TOKEN_KEY: &str = "token";

struct Running {
    process: Process,
    elects: bool,
}

/// Everything of one run.
pub(crate) struct World {
    pub(crate) api: ApiServer,
    pub(crate) ledger: Ledger,
    pub(crate) faults: Faults,
    pub(crate) notes: Notes,
    pub(crate) metrics: Metrics,
    pub(crate) vault: ScriptedVault,
    tokens: TokensRead,
    clock: Clock,
    born: Instant,
    seed: u64,
    starts: u64,
    running: BTreeMap<&'static str, Running>,
    /// Processes that a fault has ended, with the time at which they come back.
    ended: BTreeMap<&'static str, (Instant, bool)>,
    broken: Option<Variant>,
    server: Server,
    /// The operator key, while something else is in its place.
    key: Option<serde_json::Value>,
}

impl World {
    /// A cluster with a connection, its token, somebody else's objects in another namespace, and no operator.
    pub(crate) fn new(seed: u64, broken: Option<Variant>) -> Self {
        let api = ApiServer::default();
        let server = Server::new(&api);
        let notes = Notes::of(&server);
        let world = Self {
            faults: Faults::new(&server, &notes),
            ledger: Ledger::default(),
            notes,
            metrics: Metrics::default(),
            vault: ScriptedVault::new(),
            tokens: TokensRead::default(),
            clock: Clock::simulated(Timestamp::from_second(EPOCH_SECONDS).unwrap_or_default()),
            born: Instant::now(),
            seed,
            starts: 0,
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            broken,
            server,
            key: None,
            api,
        };
        let (ledger, faults, notes) = (world.ledger.clone(), world.faults.clone(), world.notes.clone());
        world.api.on_write(move |write| {
            for line in ledger.written(write) {
                notes.add(format!("    {line}"));
            }
            faults.written(write);
        });
        let (server, faults, tokens) = (world.server.clone(), world.faults.clone(), Arc::clone(&world.tokens));
        let ledger = world.ledger.clone();
        let mut known = Vec::new();
        world.api.on_call(move |call| {
            let fault = before_call(&server, &faults, &tokens, &mut known, call);
            ledger.called(call, &fault);
            fault
        });
        let faults = world.faults.clone();
        world.api.on_event(move |notice| faults.at_event(notice));
        world.ledger.token(NS, TOKEN_SECRET);
        world.vault.accept(act::token(1), None);
        world.put(&build::secret(NS, TOKEN_SECRET).key(TOKEN_KEY, act::token(1)));
        world.put(&build::connection(NS, "conn").url(URL).token_in(TOKEN_SECRET, TOKEN_KEY));
        // Namesakes in another namespace, which nobody has asked to touch.
        world.put(&build::secret("elsewhere", "db").key("USER", "somebody"));
        world.put(&build::deployment("elsewhere", "api"));
        world
    }

    fn put(&self, object: &build::Built) {
        self.api.apply(object);
    }

    /// Virtual time since the beginning.
    pub(crate) fn now(&self) -> Duration {
        self.born.elapsed()
    }

    fn note(&self, what: String) {
        self.notes.add(what);
    }

    // ---- processes

    fn start(&mut self, who: &'static str, elects: bool) {
        self.starts += 1;
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.starts);
        let client = self.api.client_of(who, SYSTEM);
        let upstream = Upstream {
            who: who.to_owned(),
            api: self.api.clone(),
            vault: self.vault.clone(),
            ledger: self.ledger.clone(),
            faults: self.faults.clone(),
            tokens: Arc::clone(&self.tokens),
            notes: self.notes.clone(),
            born: self.born,
        };
        let (client, ferrvault) = match &self.broken {
            None => (client, Arc::new(upstream) as Arc<dyn ferrvault_operator::ferrvault::FerrVault>),
            Some(variant) => variant.between(client, upstream),
        };
        let process = Process::start(Start {
            who: who.to_owned(),
            clients: Clients::of(client.clone()),
            watch_over: client,
            system: SYSTEM.to_owned(),
            scope: Scope::Cluster,
            ferrvault,
            clock: self.clock.clone(),
            entropy: Entropy::seeded(seed),
            metrics: self.metrics.clone(),
            elects,
        });
        self.running.insert(who, Running { process, elects });
    }

    fn kill(&mut self, who: &'static str) {
        self.api.end(who);
        if let Some(running) = self.running.remove(who) {
            running.process.kill();
        }
        self.ended.remove(who);
    }

    /// A process whose task is over although nobody asked for it: it panicked.
    pub(crate) fn dead(&self) -> Option<&'static str> {
        self.running.iter().find(|(_, running)| running.process.died()).map(|(who, _)| *who)
    }

    /// How many processes there are that lead or may come to.
    pub(crate) fn processes(&self) -> usize {
        self.running.len() + self.ended.len()
    }

    /// Ends every process, so that nothing outlives the run.
    pub(crate) fn end(&mut self) {
        for who in self.running.keys().copied().collect::<Vec<_>>() {
            self.kill(who);
        }
        self.server.let_go();
    }

    /// Lets time pass with everything that happens in it.
    pub(crate) async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let now = Instant::now();
            let due: Vec<_> = self.ended.iter().filter(|(_, (at, _))| *at <= now).map(|(who, _)| *who).collect();
            for who in due {
                if let Some((_, elects)) = self.ended.remove(who) {
                    self.note(format!("{who} starts again"));
                    self.start(who, elects);
                }
            }
            if now >= end {
                return;
            }
            let next = self.ended.values().map(|(at, _)| *at).chain([end]).min().unwrap_or(end);
            let who = tokio::select! {
                biased;
                who = cut(&self.api, self.running.keys().copied().collect()) => Some(who),
                () = tokio::time::sleep_until(next) => None,
            };
            if let Some(who) = who
                && let Some(running) = self.running.remove(who)
            {
                running.process.kill();
                self.ended.insert(who, (Instant::now() + COMES_BACK, running.elects));
            }
        }
    }

    // ---- what people do

    /// Lets one thing happen.
    pub(crate) async fn act(&mut self, what: &Act) {
        self.note(what.to_string());
        match what {
            Act::Start(who) => self.start(who, false),
            Act::Stand(who) => self.start(who, true),
            Act::Stop(who) => {
                self.ended.remove(who);
                if let Some(running) = self.running.remove(who) {
                    running.process.stop().await;
                    self.api.end(who);
                }
            }
            Act::Kill(who) => self.kill(who),
            Act::Wait(seconds) => self.pass(Duration::from_secs(*seconds)).await,
            Act::Put(object) => self.put(object),
            Act::Change(kind, name, patch) => {
                if act::exists(&self.api, *kind, name) {
                    act::edit(&self.api, *kind, name, |object| json_patch::merge(object, patch));
                }
            }
            Act::Delete(kind, name) => act::delete(&self.api, *kind, name),
            Act::Upstream(vault, letter) => {
                for (key, value) in act::content(*letter).0 {
                    self.vault.set(vault, &key, value);
                }
                self.tell_upstream(vault);
            }
            Act::Unset(vault, key) => {
                self.vault.unset(vault, key);
                self.tell_upstream(vault);
            }
            Act::Token(number) => {
                self.vault.accept(act::token(*number), None);
                self.vault.revoke(act::token(number.saturating_sub(1)));
                self.put(&build::secret(NS, TOKEN_SECRET).key(TOKEN_KEY, act::token(*number)));
            }
            Act::GoTarget(resource, letter) => {
                if let Some(owner) = act::read(&self.api, Kind::Resource, resource) {
                    self.put(&act::go_target(&owner, resource, *letter));
                }
            }
            Act::GoStatus(resource, letter) => {
                if let Some(mut object) = act::read(&self.api, Kind::Resource, resource) {
                    json_patch::merge(&mut object, &act::go_status(*letter));
                    self.api.apply_json(object);
                }
            }
            Act::GoMark(kind, name, resource, letter) => {
                if let Some(owner) = act::read(&self.api, Kind::Resource, resource) {
                    let mark = act::go_mark(&owner, *letter);
                    act::edit(&self.api, *kind, name, |object| json_patch::merge(object, &mark));
                }
            }
            Act::Strip(kind, name) => {
                if act::exists(&self.api, *kind, name) {
                    act::edit(&self.api, *kind, name, act::strip);
                }
            }
            Act::StripOnSight(kind, name, times) => self.strip_on_sight(*kind, name, *times),
            Act::Give(kind, name, to, owner) => {
                if let Some(owner) = act::read(&self.api, *to, owner) {
                    act::edit(&self.api, *kind, name, |object| json_patch::merge(object, &act::owned_by(&owner)));
                }
            }
            Act::LoseKey => self.api.delete::<Secret>(SYSTEM, KEY_SECRET),
            Act::SpoilKey => {
                self.key = self.api.get_json("", "secrets", SYSTEM, KEY_SECRET);
                // It is immutable: a person has to make it anew.
                self.api.delete::<Secret>(SYSTEM, KEY_SECRET);
                self.put(&build::secret(SYSTEM, KEY_SECRET).key(operator_key::DATA_KEY, "too short"));
            }
            Act::MendKey => {
                if let Some(key) = self.key.take() {
                    self.api.delete::<Secret>(SYSTEM, KEY_SECRET);
                    self.api.apply_json(key);
                }
            }
            Act::Stall(vault) => {
                let stalled = (*vault).to_owned();
                let falls_silent = move |call: &ferrvault_testkit::VaultCall| {
                    if call.vault == stalled { VaultFault::Stall } else { VaultFault::None }
                };
                self.vault.on_call(falls_silent);
            }
        }
    }

    fn tell_upstream(&self, vault: &str) {
        if let Some(content) = self.vault.content(vault) {
            self.ledger.upstream(self.now(), vault, content);
        }
    }

    fn strip_on_sight(&self, kind: Kind, name: &'static str, times: u32) {
        let (server, left, notes) = (self.server.clone(), AtomicU32::new(times), self.notes.clone());
        self.api.on_write(move |write: &WriteRecord| {
            let is_restart = cast::is_operator(&write.who) && write.name == name && is_workload(&write.resource);
            if !is_restart || left.load(Ordering::Relaxed) == 0 {
                return;
            }
            left.fetch_sub(1, Ordering::Relaxed);
            let (server, notes) = (server.clone(), notes.clone());
            // In a task of its own: a hook that writes would not be seen by the other hooks.
            tokio::spawn(async move {
                notes.add(format!("somebody strips the marks of {kind:?} {name} at once"));
                server.with(|api| {
                    if act::exists(api, kind, name) {
                        act::edit(api, kind, name, act::strip);
                    }
                });
            });
        });
    }
}

/// Before each call: what goes wrong with it. Besides, which token its process reads with it.
///
/// The product keeps a token in a type that nobody can look into, so what a process asks FerrVault with is taken from
/// what it last read.
fn before_call(
    server: &Server,
    faults: &Faults,
    tokens: &TokensRead,
    known: &mut Vec<SecretBytes>,
    call: &Call,
) -> Fault {
    let fault = faults.at_call(call);
    if fault == Fault::None && call.verb.is_write() && call.group == "apps" {
        return by_policy(server, call);
    }
    if call.verb != Verb::Get || call.name != TOKEN_SECRET || call.resource != "secrets" {
        return fault;
    }
    let now = server.with(|api| api.get_json("", "secrets", NS, TOKEN_SECRET)).flatten();
    let now = now.map(|object| cast::Secret::of(&object));
    let Some(token) = now.and_then(|secret| secret.content.0.get(TOKEN_KEY).cloned()) else { return fault };
    if known.last() != Some(&token) {
        known.push(token.clone());
    }
    let read = match fault {
        Fault::StaleAt(_) => known.iter().rev().nth(1).cloned().unwrap_or(token),
        _ => token,
    };
    tokens.lock().unwrap_or_else(PoisonError::into_inner).insert(call.who.clone(), read);
    fault
}

/// What the admission policy says to a write of an operator: whatever it writes of a workload is in the template.
fn by_policy(server: &Server, call: &Call) -> Fault {
    let found = server.with(|api| api.get_json(&call.group, &call.resource, &call.namespace, &call.name)).flatten();
    match found {
        Some(workload) if act::is_sealed(&workload) && cast::is_operator(&call.who) => {
            let kind = cast::text(&workload, "/kind");
            Fault::Nonsense(422, act::refused_by_policy(&call.resource, kind, &call.name).to_string())
        }
        _ => Fault::None,
    }
}

fn is_workload(resource: &str) -> bool {
    cast::Workload::stored(resource, "").is_some()
}

/// The first of these processes that a fault ends.
async fn cut(api: &ApiServer, running: Vec<&'static str>) -> &'static str {
    if running.is_empty() {
        return std::future::pending().await;
    }
    let waits = running.into_iter().map(|who| {
        Box::pin(async move {
            api.ended(who).await;
            who
        })
    });
    futures::future::select_all(waits).await.0
}
