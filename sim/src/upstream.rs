//! FerrVault as an operator of a simulation reaches it: the scripted one of the test kit, behind the faults of the plan.
//!
//! The product's own client has deadlines and tries a failed call again; what is simulated here is what a pass sees of a
//! call in the end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ferrvault_core::content::{Answer, SecretBytes};
use ferrvault_operator::ferrvault::FerrVault;
use ferrvault_testkit::{ApiServer, ScriptedVault, VaultFailure};
use ferrvault_vault::{Bearer, BearerGrant, Endpoint, RevealRequest, UpstreamText, VaultError};
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::check::Ledger;
use crate::faults::Faults;
use crate::plan::{Place, Trouble};
use crate::story::Notes;

/// The longest call of the product's client, rounded: three attempts of 10 s and the pauses between them.
const LONGEST_CALL: Duration = Duration::from_secs(30);
/// Where the client stops reading.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

/// The token as each process last read it.
pub(crate) type TokensRead = Arc<Mutex<std::collections::BTreeMap<String, SecretBytes>>>;

/// One process's way to FerrVault.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) who: String,
    pub(crate) api: ApiServer,
    pub(crate) vault: ScriptedVault,
    pub(crate) ledger: Ledger,
    pub(crate) faults: Faults,
    pub(crate) tokens: TokensRead,
    pub(crate) notes: Notes,
    pub(crate) born: Instant,
}

impl Upstream {
    fn note(&self, place: Option<Place>, what: &str, trouble: Option<Trouble>, outcome: &str) {
        let place = place.map_or_else(String::new, |place| format!("{place} "));
        let trouble = trouble.map_or_else(String::new, |trouble| format!(" [{trouble}]"));
        let line = format!("{place}{} asks FerrVault: {what}{trouble} -> {outcome}", self.who);
        self.notes.add(line);
    }

    /// What becomes of a call, before it is answered.
    async fn course(&self, what: &str) -> Result<Course, VaultError> {
        let (place, trouble) = self.faults.at_vault(&self.who);
        if self.api.has_ended(&self.who) {
            self.note(place, what, trouble, "no answer");
            return std::future::pending().await;
        }
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        let told = |outcome| self.note(place, what, trouble, outcome);
        match trouble {
            None => told("asked"),
            Some(Trouble::Late(_) | Trouble::Slow(_)) => told("takes its time"),
            Some(Trouble::Hang) => told("never an answer"),
            Some(Trouble::Empty) => told("an answer without any key"),
            Some(_) => told("fails"),
        }
        match trouble {
            None => Ok(Course::Answered(Duration::ZERO)),
            Some(Trouble::Refuse(code)) => Err(failed(VaultFailure::Status(code, None))),
            Some(Trouble::LostRequest) => {
                sleep(LONGEST_CALL).await;
                Err(VaultError::TimedOut { limit: LONGEST_CALL / 3 })
            }
            Some(Trouble::Hang) => std::future::pending().await,
            Some(Trouble::Late(by)) => {
                sleep(seconds(by)).await;
                Ok(Course::Answered(Duration::ZERO))
            }
            Some(Trouble::Slow(by)) => Ok(Course::Answered(seconds(by))),
            Some(Trouble::Nonsense) => Err(failed(VaultFailure::Nonsense)),
            Some(Trouble::TooLarge) => Err(failed(VaultFailure::TooLarge)),
            Some(Trouble::Empty) => Ok(Course::Empty),
            Some(_) => Err(failed(VaultFailure::Unreachable)),
        }
    }

    /// Waits for as long as the answer is under way; for ever, if its process ends meanwhile.
    async fn under_way(&self, takes: Duration) {
        if !takes.is_zero() {
            sleep(takes).await;
        }
        if self.api.has_ended(&self.who) {
            std::future::pending::<()>().await;
        }
    }
}

/// How a call goes on that does not fail.
enum Course {
    /// It is answered with what is there now, and the answer takes this long.
    Answered(Duration),
    /// The answer has no key in it, neither found nor missing.
    Empty,
}

fn failed(failure: VaultFailure) -> VaultError {
    let upstream = UpstreamText::default;
    match failure {
        VaultFailure::Status(401, _) => VaultError::Unauthorized { upstream: upstream() },
        VaultFailure::Status(403, _) => VaultError::Forbidden { upstream: upstream() },
        VaultFailure::Status(404, _) => VaultError::NotFound { upstream: upstream() },
        VaultFailure::Status(429, after) => {
            let after = after.map(|seconds| Duration::from_secs(u64::from(seconds)));
            VaultError::Throttled { after, upstream: upstream() }
        }
        VaultFailure::Status(status @ 500.., _) => VaultError::ServerError { status, upstream: upstream() },
        VaultFailure::Status(status, _) => VaultError::Rejected { status, upstream: upstream() },
        VaultFailure::Unreachable => VaultError::Unreachable { why: "connection refused".to_owned() },
        VaultFailure::Nonsense => VaultError::BrokenAnswer { what: "no JSON".to_owned() },
        VaultFailure::TooLarge => VaultError::TooLarge { limit: BODY_LIMIT },
    }
}

impl FerrVault for Upstream {
    fn reveal<'a>(
        &'a self,
        _endpoint: &'a Endpoint,
        _bearer: &'a Bearer,
        request: &'a RevealRequest,
    ) -> BoxFuture<'a, Result<Answer, VaultError>> {
        Box::pin(async move {
            let token = self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(&self.who).cloned();
            let what = format!("reveal vault {}", request.vault);
            let answer = match self.course(&what).await? {
                Course::Empty => Answer::default(),
                Course::Answered(takes) => {
                    let token = token.as_ref().map(SecretBytes::expose);
                    let answer = self.vault.reveal(token, &request.vault, &request.names).await.map_err(failed);
                    self.under_way(takes).await;
                    answer?
                }
            };
            let (at, content) = (self.born.elapsed(), answer.content.clone());
            self.ledger.answered(at, &self.who, &request.vault, &request.names, content);
            Ok(answer)
        })
    }

    fn health<'a>(&'a self, _endpoint: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async move {
            if let Course::Answered(takes) = self.course("health").await? {
                let well = self.vault.health().await.map_err(failed);
                self.under_way(takes).await;
                well?;
            }
            Ok(())
        })
    }

    fn exchange<'a>(
        &'a self,
        _endpoint: &'a Endpoint,
        _cluster_id: &'a str,
        _jwt: &'a Bearer,
    ) -> BoxFuture<'a, Result<BearerGrant, VaultError>> {
        // No connection of a simulation asks with an identity.
        Box::pin(async { Err(failed(VaultFailure::Status(401, None))) })
    }
}
