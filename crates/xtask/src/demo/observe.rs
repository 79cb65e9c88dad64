//! Waiting for what the story says, seen through the API. What does not come about in time ends the demo, with what there
//! was instead.

use std::time::{Duration, Instant};

use super::{Error, narrate};
use crate::process::Process;

/// How long anything of the story may take: the operator's refresh of a few seconds, and a rollout of three pods whose
/// image a user's cluster may have to fetch first.
const LIMIT: Duration = Duration::from_secs(90);

/// Between two looks.
const POLL: Duration = Duration::from_millis(100);

/// What one look found.
pub(super) enum Look<T> {
    /// What was waited for.
    Seen(T),
    /// Something else; the text says what, without any value.
    NotYet(String),
}

/// Looks until it is seen, then says so. A program that ends meanwhile ends the waiting.
pub(super) async fn observe<T, F>(
    what: &str,
    operator: Option<&Process>,
    mut look: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<Look<T>, kube::Error>>,
{
    let started = Instant::now();
    loop {
        let seen = match look().await {
            Ok(Look::Seen(found)) => {
                narrate::observed(what, started.elapsed());
                return Ok(found);
            }
            Ok(Look::NotYet(instead)) => instead,
            // One call that fails may be followed by one that does not.
            Err(error) => error.to_string(),
        };
        if let Some(operator) = operator.filter(|operator| !operator.is_running()) {
            return Err(operator.ended_error().await.into());
        }
        if started.elapsed() >= LIMIT {
            let log = operator.map(Process::log_tail).unwrap_or_default();
            return Err(Error::NotObserved { what: what.to_owned(), seconds: LIMIT.as_secs(), seen, log });
        }
        tokio::time::sleep(POLL).await;
    }
}
