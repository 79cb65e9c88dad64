//! When the API server last answered a request, whatever it said.
//!
//! Tells a server that is away from one that refuses, and a watch that is dead from a server that is: a restart of this
//! process cures neither refusal nor outage. Written beside each call, read by anybody; holds no answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::error::CallError;

/// The time of the last answer. Clones share it.
#[derive(Clone, Debug)]
pub struct Answers(Arc<Mutex<Instant>>);

impl Default for Answers {
    /// Nothing was asked yet, so nothing is missing.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Answers {
    /// How long ago the last answer came; before the first one, since the process began to ask.
    pub fn silence(&self) -> Duration {
        Instant::now().saturating_duration_since(*self.lock())
    }

    /// Notes what became of a call: a refusal is an answer, a broken connection is none.
    pub fn note<T>(&self, result: &Result<T, CallError>) {
        if result.as_ref().err().is_none_or(is_answer) {
            *self.lock() = Instant::now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a failure was told by the server itself.
pub(super) fn is_answer(error: &CallError) -> bool {
    !matches!(error, CallError::TimedOut | CallError::Unreachable { .. } | CallError::NotLeading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_an_answer_and_a_broken_connection_is_none() {
        let forbidden = CallError::Forbidden { message: String::new() };
        let broken = CallError::Unreachable { message: String::new() };
        for (result, is_answer) in [
            (Ok(()), true),
            (Err(forbidden), true),
            (Err(CallError::Conflict), true),
            (Err(CallError::Throttled { after: None }), true),
            (Err(broken), false),
            (Err(CallError::TimedOut), false),
            (Err(CallError::NotLeading), false),
        ] {
            let answers = Answers::default();
            tokio::time::advance(Duration::from_secs(7)).await;
            answers.note(&result);
            let expected = if is_answer { Duration::ZERO } else { Duration::from_secs(7) };
            assert_eq!(answers.silence(), expected, "{result:?}");
        }
    }
}
