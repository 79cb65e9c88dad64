//! The server in this process, asked over HTTP: every call in both modes, rights, limits, faults, TLS, restarts.

// The configuration allows these in test functions; what stands beside them here runs in tests only, too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod cloud;
mod console;
mod durability;
mod exchange;
mod faults;
mod limits;
mod operator;
mod tls;
mod world;
