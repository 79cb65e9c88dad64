//! Every decision of the operator, as pure functions from values to values.
//!
//! Nothing here is async, has a client, reads a clock or draws a random number: `now`, nonces and jitter are handed in.
//! So every decision can be tested as a table, and the same functions can be model-checked.

pub mod connection;
pub mod content;
pub mod duration;
#[cfg(test)]
mod fixtures;
pub mod freshness;
pub mod refusal;
pub mod restart;
pub mod schedule;
pub mod status;
pub mod sync;
pub mod transform;
pub mod version;
