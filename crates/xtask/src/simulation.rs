//! `cargo xtask sim`: hands over to the simulation, built with its own profile: it runs millions of small worlds.
//!
//! `cargo xtask sim --model small|large` explores the rollout protocol as an explicit-state model instead; that one lives
//! beside the decisions it is about, as a test program of `ferrvault-core`.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::repository;

/// The environment variable that tells the model how far to go.
const MODEL: &str = "FERRVAULT_MODEL";

/// It did not hold, or could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Cargo cannot be started.
    #[error("cargo cannot be started: {0}")]
    Cargo(#[from] std::io::Error),
    /// The simulation said so itself.
    #[error("the simulation does not hold")]
    DoesNotHold,
    /// No such model.
    #[error("--model takes small or large, and nothing else goes with it")]
    NoSuchModel,
}

/// Runs it with these arguments.
pub fn run(args: &[OsString]) -> Result<(), Error> {
    let status = match args.first().and_then(|first| first.to_str()) {
        Some("--model") => model(args.get(1..).unwrap_or_default())?.status()?,
        _ => simulation(args).status()?,
    };
    if status.success() { Ok(()) } else { Err(Error::DoesNotHold) }
}

/// Runs it with these arguments, shows what it says, and keeps the last line: the sum. Tells whether it held.
pub(crate) fn summed_up(args: &[&str]) -> std::io::Result<(String, bool)> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let mut child = simulation(&args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut sum = String::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            if !line.trim().is_empty() {
                sum = line.into_owned();
            }
        }
    }
    let held = child.wait()?.success();
    Ok((sum, held))
}

fn simulation(args: &[OsString]) -> Command {
    let mut command = Command::new(repository::cargo());
    command
        .args(["run", "--quiet", "--profile", "sim", "--package", "ferrvault-sim", "--"])
        .args(args)
        .current_dir(repository::root());
    command
}

/// All bounds of the model; the profile is the one for many small worlds.
fn model(args: &[OsString]) -> Result<Command, Error> {
    let bound = match args {
        [bound] if bound == "small" || bound == "large" => bound,
        _ => return Err(Error::NoSuchModel),
    };
    let mut command = Command::new(repository::cargo());
    command
        .args(["test", "--quiet", "--profile", "sim", "--package", "ferrvault-core", "--test", "protocol"])
        .args(["--", "--nocapture"])
        .env(MODEL, bound)
        .current_dir(repository::root());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Result<Command, Error> {
        model(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_model_has_two_bounds_and_takes_nothing_else() {
        for bound in ["small", "large"] {
            let command = of(&[bound]).unwrap();
            assert!(command.get_envs().any(|(name, value)| name == MODEL && value == Some(bound.as_ref())));
        }
        for wrong in [&[][..], &["huge"], &["large", "--seed"]] {
            assert!(matches!(of(wrong), Err(Error::NoSuchModel)), "{wrong:?}");
        }
    }
}
