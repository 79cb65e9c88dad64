//! Waiting for something to be so, with an end. What does not come about in time fails with what there was instead.

use std::time::{Duration, Instant};

/// How long anything may take that should come at once. On an idle machine most of it takes a second or two; the rest is
/// for one that compiles on all its cores meanwhile.
pub const SOON: Duration = Duration::from_mins(1);

/// Between two looks.
const POLL: Duration = Duration::from_millis(100);

/// Looks until `look` finds what is waited for; its error says what there is instead.
pub async fn eventually<T>(what: &str, limit: Duration, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        let instead = match look().await {
            Ok(found) => return found,
            Err(instead) => instead,
        };
        let seconds = limit.as_secs();
        assert!(started.elapsed() < limit, "not within {seconds} s: {what}\nseen last:\n{instead}");
        tokio::time::sleep(POLL).await;
    }
}

/// An object as a person reads it.
pub fn yaml<T: serde::Serialize>(object: &T) -> String {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_saphyr::to_string(&value).unwrap_or_else(|_| value.to_string())
}
