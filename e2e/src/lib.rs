//! What the end-to-end scenarios are played with: a real control plane with the chart installed, the operator as a process
//! under exactly the service account that the chart makes, a dev server of FerrVault, and a namespace per scenario.
//!
//! Nothing here looks into the operator: what is asserted is what the API server holds, what the probes and metrics
//! answer, and what was asked for according to the API server's audit log.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "everything here serves tests: a step that fails is a test that fails"
)]

pub mod audit;
pub mod canaries;
pub mod cluster;
pub mod dev;
pub mod eventually;
pub mod objects;
pub mod own;
pub mod proxy;
pub mod runner;
pub mod scene;
pub mod silence;
pub mod storm;
pub mod templates;
pub mod wire;
pub mod world;
