//! Hears what FerrVault answers to a pass, whoever answers for it. A 401 is about the token and so about the connection; the
//! refusal that the resource shows does not tell it from a 403, which is about one vault.

use std::sync::Arc;

use ferrvault_core::content::Answer;
use ferrvault_vault::{Bearer, BearerGrant, Endpoint, RevealRequest, VaultError};
use futures::future::BoxFuture;

use super::{FerrVault, held};

/// Passes every question on, and notes for the pass that asks whether its token was refused.
pub(crate) struct Listener(pub(crate) Arc<dyn FerrVault>);

impl FerrVault for Listener {
    fn reveal<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        bearer: &'a Bearer,
        request: &'a RevealRequest,
    ) -> BoxFuture<'a, Result<Answer, VaultError>> {
        Box::pin(async move {
            let answer = self.0.reveal(endpoint, bearer, request).await;
            held::note(matches!(answer, Err(VaultError::Unauthorized { .. })));
            answer
        })
    }

    fn health<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
        self.0.health(endpoint)
    }

    fn me<'a>(&'a self, endpoint: &'a Endpoint, bearer: &'a Bearer) -> BoxFuture<'a, Result<(), VaultError>> {
        self.0.me(endpoint, bearer)
    }

    fn exchange<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        cluster_id: &'a str,
        jwt: &'a Bearer,
    ) -> BoxFuture<'a, Result<BearerGrant, VaultError>> {
        Box::pin(async move {
            let answer = self.0.exchange(endpoint, cluster_id, jwt).await;
            // No vault was asked for yet: whatever is refused here is who asks.
            let refused = |error: &VaultError| {
                matches!(
                    error,
                    VaultError::Unauthorized { .. } | VaultError::Forbidden { .. } | VaultError::NotFound { .. }
                )
            };
            held::note(answer.as_ref().is_err_and(refused));
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ferrvault_core::content::{Content, SecretBytes};
    use ferrvault_vault::{Scope, UpstreamText};

    use super::super::{token_was_refused, until_the_end};
    use super::*;

    /// Answers whatever it is asked with what comes next.
    struct Answers(Mutex<Vec<Option<VaultError>>>);

    impl Answers {
        fn next(&self) -> Result<(), VaultError> {
            self.0.lock().unwrap().pop().unwrap().map_or(Ok(()), Err)
        }
    }

    impl FerrVault for Answers {
        fn reveal<'a>(
            &'a self,
            _: &'a Endpoint,
            _: &'a Bearer,
            _: &'a RevealRequest,
        ) -> BoxFuture<'a, Result<Answer, VaultError>> {
            let answer = self.next().map(|()| Answer { content: Content::default(), missing: Vec::new() });
            Box::pin(std::future::ready(answer))
        }

        fn health<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<(), VaultError>> {
            Box::pin(std::future::ready(self.next()))
        }

        fn exchange<'a>(
            &'a self,
            _: &'a Endpoint,
            _: &'a str,
            jwt: &'a Bearer,
        ) -> BoxFuture<'a, Result<BearerGrant, VaultError>> {
            let expires_at = jiff::Timestamp::MAX;
            Box::pin(std::future::ready(self.next().map(|()| BearerGrant { bearer: jwt.clone(), expires_at })))
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Question {
        Reveal,
        Exchange,
    }

    #[tokio::test]
    async fn a_token_counts_as_refused_by_a_401_that_was_the_last_word_and_by_an_exchange_refused() {
        let upstream = UpstreamText::default;
        let unauthorized = || Some(VaultError::Unauthorized { upstream: upstream() });
        let forbidden = || Some(VaultError::Forbidden { upstream: upstream() });
        let not_found = || Some(VaultError::NotFound { upstream: upstream() });
        let away = || Some(VaultError::TimedOut { limit: std::time::Duration::from_secs(1) });
        for (answers, expected) in [
            (vec![], false),
            (vec![(Question::Reveal, None)], false),
            (vec![(Question::Reveal, unauthorized())], true),
            (vec![(Question::Reveal, forbidden())], false),
            (vec![(Question::Reveal, not_found())], false),
            (vec![(Question::Reveal, away())], false),
            (vec![(Question::Exchange, unauthorized())], true),
            (vec![(Question::Exchange, forbidden())], true),
            (vec![(Question::Exchange, not_found())], true),
            (vec![(Question::Exchange, away())], false),
            (vec![(Question::Reveal, unauthorized()), (Question::Exchange, None), (Question::Reveal, None)], false),
            (vec![(Question::Reveal, unauthorized()), (Question::Exchange, away())], false),
        ] {
            let questions: Vec<Question> = answers.iter().map(|(question, _)| *question).collect();
            let shown = format!("{answers:?}");
            let answers = answers.into_iter().rev().map(|(_, answer)| answer).collect();
            let listener = Listener(Arc::new(Answers(Mutex::new(answers))));
            let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
            let bearer = Bearer::new(&SecretBytes::from("fvsat_canary")).unwrap();
            let request =
                RevealRequest { scope: Scope::FerrVault, vault: "v".into(), names: Vec::new(), namespace: None };
            let refused = until_the_end("shop".into(), async {
                for question in questions {
                    match question {
                        Question::Reveal => drop(listener.reveal(&endpoint, &bearer, &request).await),
                        Question::Exchange => drop(listener.exchange(&endpoint, "id", &bearer).await),
                    }
                }
                token_was_refused()
            })
            .await;
            assert_eq!(refused, expected, "{shown}");
        }
        assert!(!token_was_refused(), "it ends with the pass");
    }
}
