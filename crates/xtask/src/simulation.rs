//! `cargo xtask sim`: hands over to the simulation, built with its own profile: it runs millions of small worlds.

use std::ffi::OsString;
use std::process::Command;

use crate::repository;

/// It did not hold, or could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Cargo cannot be started.
    #[error("cargo cannot be started: {0}")]
    Cargo(#[from] std::io::Error),
    /// The simulation said so itself.
    #[error("the simulation does not hold")]
    DoesNotHold,
}

/// Runs it with these arguments.
pub fn run(args: &[OsString]) -> Result<(), Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--profile", "sim", "--package", "ferrvault-sim", "--"])
        .args(args)
        .current_dir(repository::root())
        .status()?;
    if status.success() { Ok(()) } else { Err(Error::DoesNotHold) }
}
