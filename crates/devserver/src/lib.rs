//! A FerrVault-compatible server over an embedded store, for trying out and for tests, and its client verbs.
//!
//! It speaks both modes of the HTTP API, keeps its data over restarts, and has an admin side that makes chosen calls go
//! wrong. It is not a vault: values lie unencrypted in its file, readable by whoever may read the data directory.
//!
//! A call travels through `transport` (sockets) to `front` (counts it, applies the fault it meets) and from there to
//! [`api`] (decides who may do what) and [`store`] (one transaction, durable before it is answered).

mod admin;
pub mod api;
pub mod cli;
pub mod clock;
pub mod credential;
pub mod data_dir;
pub mod faults;
mod front;
pub mod ledger;
mod limit;
mod oidc;
pub mod outbound;
pub mod secret_text;
mod server;
pub mod store;
mod tls;
mod transport;

pub use server::{Config, DEFAULT_BEARER_LIFETIME, DEFAULT_RATE_LIMIT, Server, StartError};
