//! What ships instead of the hooks: nothing.

use std::time::Duration;

use jiff::Timestamp;

pub(crate) const fn start() {}

pub(crate) const fn wall(now: Timestamp) -> Timestamp {
    now
}

pub(crate) const fn patience(threshold: Duration) -> Duration {
    threshold
}

pub(crate) const fn stretched(age: Duration) -> Duration {
    age
}

pub(crate) const fn held<F: Future>(pass: F) -> F {
    pass
}

pub(crate) const fn held_queue<F: Future>(queue: F) -> F {
    queue
}
