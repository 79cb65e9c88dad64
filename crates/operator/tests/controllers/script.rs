//! A FerrVault without a network: vaults as maps, and a mood per vault that says how its next calls go.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferrvault_core::content::{Answer, Content, SecretBytes};
use ferrvault_operator::ferrvault::FerrVault;
use ferrvault_vault::{Bearer, BearerGrant, Endpoint, RevealRequest, UpstreamText, VaultError};
use futures::future::BoxFuture;
use jiff::Timestamp;

/// How a call goes.
#[derive(Clone, Debug)]
pub(crate) enum Mood {
    /// Fails like this.
    Fails(VaultError),
    /// Never answers.
    Stalls,
    /// Answers late, with what it held when it was asked.
    Late(Duration),
    /// Tears the pass down.
    Panics,
}

/// A FerrVault without a network.
#[derive(Debug, Default)]
pub(crate) struct Script(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    vaults: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    moods: BTreeMap<String, VecDeque<Mood>>,
    steady: BTreeMap<String, Mood>,
    asked: Vec<(String, RevealRequest)>,
    health: u64,
    ill: Option<VaultError>,
    /// What is said of whoever asks whose its token is.
    stranger: Option<VaultError>,
    whose: u64,
}

impl Script {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, vault: &str, key: &str, value: impl AsRef<[u8]>) {
        self.state().vaults.entry(vault.to_owned()).or_default().insert(key.to_owned(), value.as_ref().to_vec());
    }

    pub(crate) fn unset(&self, vault: &str, key: &str) {
        self.state().vaults.entry(vault.to_owned()).or_default().remove(key);
    }

    /// Makes a vault that holds nothing, whatever it held.
    pub(crate) fn empty(&self, vault: &str) {
        self.state().vaults.insert(vault.to_owned(), BTreeMap::new());
    }

    /// Takes a vault away.
    pub(crate) fn remove(&self, vault: &str) {
        self.state().vaults.remove(vault);
    }

    /// What a vault holds.
    pub(crate) fn holds(&self, vault: &str) -> BTreeMap<String, Vec<u8>> {
        self.state().vaults.get(vault).cloned().unwrap_or_default()
    }

    /// The next call for `vault` goes like this.
    pub(crate) fn next(&self, vault: &str, mood: Mood) {
        self.state().moods.entry(vault.to_owned()).or_default().push_back(mood);
    }

    /// Every call for `vault` goes like this, until told otherwise.
    pub(crate) fn always(&self, vault: &str, mood: Option<Mood>) {
        match mood {
            Some(mood) => self.state().steady.insert(vault.to_owned(), mood),
            None => self.state().steady.remove(vault),
        };
    }

    /// `/health` fails like this.
    pub(crate) fn ill(&self, error: Option<VaultError>) {
        self.state().ill = error;
    }

    /// The token is refused like this where it is asked whose it is.
    pub(crate) fn stranger(&self, error: Option<VaultError>) {
        self.state().stranger = error;
    }

    /// How often it was asked whose a token is.
    pub(crate) fn asked_whose(&self) -> u64 {
        self.state().whose
    }

    /// How often values were asked for.
    pub(crate) fn reveals(&self) -> usize {
        self.state().asked.len()
    }

    /// How often values of this vault were asked for.
    pub(crate) fn reveals_of(&self, vault: &str) -> usize {
        self.state().asked.iter().filter(|(_, request)| request.vault == vault).count()
    }

    /// The last question for values.
    pub(crate) fn last_asked(&self) -> RevealRequest {
        self.state().asked.last().cloned().unwrap().1
    }

    /// Where that question went.
    pub(crate) fn last_endpoint(&self) -> String {
        self.state().asked.last().cloned().unwrap().0
    }

    /// How often health was asked for.
    pub(crate) fn health_checks(&self) -> u64 {
        self.state().health
    }

    fn answer(&self, request: &RevealRequest) -> Result<Answer, VaultError> {
        let state = self.state();
        let Some(vault) = state.vaults.get(&request.vault) else { return Err(not_found()) };
        let wanted = |key: &String| request.names.is_empty() || request.names.contains(key);
        let found = vault.iter().filter(|(key, _)| wanted(key));
        let content: Content = found.map(|(key, value)| (key.clone(), SecretBytes::new(value.clone()))).collect();
        let missing = request.names.iter().filter(|name| !vault.contains_key(*name)).cloned().collect();
        Ok(Answer { content, missing })
    }
}

/// 404.
pub(crate) fn not_found() -> VaultError {
    VaultError::NotFound { upstream: UpstreamText::default() }
}

/// 401.
pub(crate) fn unauthorized() -> VaultError {
    VaultError::Unauthorized { upstream: UpstreamText::default() }
}

/// 429, with or without a time.
pub(crate) fn throttled(after: Option<Duration>) -> VaultError {
    VaultError::Throttled { after, upstream: UpstreamText::default() }
}

/// 5xx after every attempt.
pub(crate) fn failing() -> VaultError {
    VaultError::ServerError { status: 503, upstream: UpstreamText::default() }
}

impl FerrVault for Script {
    fn reveal<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        _bearer: &'a Bearer,
        request: &'a RevealRequest,
    ) -> BoxFuture<'a, Result<Answer, VaultError>> {
        let mood = {
            let mut state = self.state();
            state.asked.push((endpoint.to_string(), request.clone()));
            let next = state.moods.get_mut(&request.vault).and_then(VecDeque::pop_front);
            next.or_else(|| state.steady.get(&request.vault).cloned())
        };
        let answer = self.answer(request);
        Box::pin(async move {
            match mood {
                Some(Mood::Fails(error)) => return Err(error),
                Some(Mood::Stalls) => std::future::pending().await,
                Some(Mood::Late(by)) => tokio::time::sleep(by).await,
                Some(Mood::Panics) => panic!("as the test asked for"),
                None => {}
            }
            answer
        })
    }

    fn health<'a>(&'a self, _endpoint: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
        let ill = {
            let mut state = self.state();
            state.health += 1;
            state.ill.clone()
        };
        Box::pin(async move { ill.map_or(Ok(()), Err) })
    }

    fn me<'a>(&'a self, _endpoint: &'a Endpoint, _bearer: &'a Bearer) -> BoxFuture<'a, Result<(), VaultError>> {
        let stranger = {
            let mut state = self.state();
            state.whose += 1;
            state.stranger.clone()
        };
        Box::pin(async move { stranger.map_or(Ok(()), Err) })
    }

    fn exchange<'a>(
        &'a self,
        _endpoint: &'a Endpoint,
        _cluster_id: &'a str,
        _jwt: &'a Bearer,
    ) -> BoxFuture<'a, Result<BearerGrant, VaultError>> {
        let ill = self.state().ill.clone();
        // Over as soon as it is won, so that each pass has to ask.
        let won = Bearer::new(&"canary-bearer".into()).unwrap();
        Box::pin(async move { ill.map_or(Ok(BearerGrant { bearer: won, expires_at: Timestamp::UNIX_EPOCH }), Err) })
    }
}
