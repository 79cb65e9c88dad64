//! Every call to the Kubernetes API, and nothing else that leaves the process.
//!
//! One file per kind of call. Whatever is sent from here ends within a deadline of its own ([`error::deadline`]): a call
//! that never returns once held a pass for hours, and the client library bounds none of them by itself. Watches are fed
//! by a client of their own, so that their long answers and short patience do not leak into requests, nor the reverse.
//!
//! Only metadata of Secrets is watched; nothing here keeps the data of one.

pub mod access;
pub mod answers;
pub mod backoff;
pub mod client;
pub mod error;
pub mod events;
mod message;
pub mod operator_key;
pub mod resources;
pub mod rights;
pub mod secrets;
pub mod store;
pub mod watch;
pub mod workloads;

#[cfg(test)]
pub(crate) mod mock;
