//! The operator process: watches, queue, passes, probes.
//!
//! `main` parses and hands over to `runtime`; everything else is a room of its own, reachable from tests.

pub mod admin;
pub mod announce;
pub mod args;
pub mod clock;
pub mod cluster;
pub mod connection;
pub mod context;
pub mod controllers;
pub mod entropy;
pub mod ferrvault;
pub mod hardening;
#[cfg(not(feature = "test-hooks"))]
mod hooks;
#[cfg(feature = "test-hooks")]
pub mod hooks;
pub mod key;
pub mod leader;
pub mod logging;
pub mod progress;
pub mod pulse;
pub mod queue;
pub mod runtime;
pub mod secret;
mod series;
pub mod settings;
pub mod signals;
pub mod supervision;
pub mod surroundings;
pub mod term;
pub mod triggers;
pub mod watchdog;
