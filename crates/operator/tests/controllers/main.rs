//! The whole, unmodified controllers between an API server in memory and a scripted FerrVault, under paused time.
//!
//! Every room checks, beside what its test asserts, what must hold at every write of every run: see [`invariants`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed, and clippy only knows the functions marked as tests"
)]
#![allow(clippy::pedantic, reason = "tables of cases name, count and shape things as they come")]
#![allow(clippy::type_complexity, reason = "a row of a table is a tuple")]

mod claims;
mod connections;
mod drift;
mod faults;
mod guards;
mod invariants;
mod isolation;
mod lapse;
mod legacy;
mod looks;
mod passes;
mod reasons;
mod regressions;
mod rollout;
mod room;
mod script;
mod targets;
mod token_target;
mod triggers;
mod upgrade;
mod voice;
