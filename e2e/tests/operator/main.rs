//! The scenarios of the operator on a real control plane, as one program: they share what they can and wait side by side.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a step that fails is a test that fails"
)]

mod connections;
mod deletions;
mod guards;
mod metrics;
mod oidc;
mod process;
mod reasons;
mod register;
mod replicas;
mod requests;
mod restarts;
mod rights;
mod rotation;
mod secrecy;
mod silence;
mod storm;
mod upgrade;

use std::process::ExitCode;

use ferrvault_e2e::runner;
use ferrvault_e2e::world::World;

fn main() -> ExitCode {
    let scenarios = [
        // The slowest first.
        silence::scenarios(),
        replicas::scenarios(),
        oidc::scenarios(),
        process::scenarios(),
        rights::scenarios(),
        upgrade::scenarios(),
        reasons::scenarios(),
        rotation::scenarios(),
        restarts::scenarios(),
        connections::scenarios(),
        deletions::scenarios(),
        guards::scenarios(),
        metrics::scenarios(),
        requests::scenarios(),
        secrecy::scenarios(),
        storm::scenarios(),
        vec![process::the_end()],
    ];
    let scenarios = scenarios.into_iter().flatten().collect();
    runner::main(World::default, scenarios)
}
