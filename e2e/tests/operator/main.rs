//! The scenarios of the operator on a real control plane, as one program: they share what they can and wait side by side.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a step that fails is a test that fails"
)]

mod reasons;
mod register;
mod rotation;

use std::process::ExitCode;

use ferrvault_e2e::runner;
use ferrvault_e2e::world::World;

fn main() -> ExitCode {
    let scenarios = [rotation::scenarios(), reasons::scenarios()].into_iter().flatten().collect();
    runner::main(World::default, scenarios)
}
