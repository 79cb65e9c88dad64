//! Each way of stopping, and what shows it: on the resource, in a metric, in the probes, and after how many seconds.
//!
//! The whole, unmodified controllers with their watchdog between an API server in memory and a scripted FerrVault, under
//! paused time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed, and clippy only knows the functions marked as tests"
)]

mod asked;
mod contained;
mod held_up;
mod refused;
mod rights;
#[allow(dead_code, reason = "shared with the tests of the controllers, which use the rest of it")]
#[path = "../controllers/script.rs"]
mod script;
mod standby;
mod suspended;
mod unreachable;
mod ward;
