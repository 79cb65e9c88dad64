//! `cargo xtask e2e`: the long stories on a real control plane, each a program of the package `ferrvault-e2e`.
//!
//! Builds what they run as processes and hands over; what there is to say is said by the program itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::control_plane::{self, build};
use crate::process::XTASK_BIN;
use crate::{promtool, repository, test_run};

/// The operator that ships.
const OPERATOR: &str = "ferrvault-operator";

/// The operator with the hooks of its tests compiled in: a program of its own, beside the one that ships.
const OPERATOR_WITH_HOOKS: &str = "ferrvault-operator-with-test-hooks";

/// The environment variable that names it.
const OPERATOR_WITH_HOOKS_BIN: &str = "FERRVAULT_OPERATOR_WITH_HOOKS_BIN";

/// Why a story was not told to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No control plane.
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),
    /// A program could not be built.
    #[error(transparent)]
    NotBuilt(#[from] test_run::Error),
    /// Cargo could not be started.
    #[error("cargo cannot be started: {0}")]
    Cargo(#[from] std::io::Error),
    /// The program said what did not hold.
    #[error("it does not hold")]
    DoesNotHold,
}

/// Builds the products and runs the program `name` with `args`.
pub async fn run(name: &str, args: &[OsString]) -> Result<(), Error> {
    if !args.iter().any(|arg| arg == "--help" || arg == "--list") {
        build::ensure(None).await?;
        // What cannot be judged without it says so itself.
        if let Err(why) = promtool::ensure() {
            eprintln!("{why}");
        }
        test_run::build_products()?;
    }
    start(name, args, &repository::operator_bin(), &repository::dev_bin(), &[])
}

fn start(name: &str, args: &[OsString], operator: &Path, dev: &Path, others: &[(&str, &Path)]) -> Result<(), Error> {
    let status = Command::new(repository::cargo())
        .args(["run", "--quiet", "--package", "ferrvault-e2e", "--bin", name, "--"])
        .args(args)
        .current_dir(repository::root())
        .env(XTASK_BIN, test_run::xtask_bin())
        .env(repository::OPERATOR_BIN, operator)
        .env(repository::DEV_BIN, dev)
        .envs(others.iter().copied())
        .status()?;
    if status.success() { Ok(()) } else { Err(Error::DoesNotHold) }
}

/// Runs `storm`, with the optimized operator if `--release` is among `args`.
///
/// It starts the operator again and again, so it gets copies of the programs: whatever is built meanwhile, every start is
/// one of the same program.
pub async fn storm(args: &[OsString]) -> Result<(), Error> {
    if args.iter().any(|arg| arg == "--help") {
        return run("storm", args).await;
    }
    build::ensure(None).await?;
    test_run::build_products()?;
    let mut operator = repository::operator_bin();
    if args.iter().any(|arg| arg == "--release") {
        build_optimized_operator()?;
        operator = repository::target_dir().join("release").join(OPERATOR);
    }
    let copies = tempfile::tempdir()?;
    let copy = |program: PathBuf, name: &str| -> std::io::Result<PathBuf> {
        let copy = copies.path().join(name);
        std::fs::copy(program, &copy)?;
        Ok(copy)
    };
    let (operator, dev) = (copy(operator, OPERATOR)?, copy(repository::dev_bin(), "ferrvault-dev")?);
    start("storm", args, &operator, &dev, &[])
}

fn build_optimized_operator() -> Result<(), Error> {
    let args = ["build", "--release", "--package", "ferrvault-operator", "--bin", OPERATOR];
    eprintln!("== cargo {}", args.join(" "));
    let status = Command::new(repository::cargo()).args(args).current_dir(repository::root()).status()?;
    if status.success() { Ok(()) } else { Err(test_run::Error::NotBuilt.into()) }
}

/// Runs `silence`, which needs the operator with hooks besides. It tries for minutes and gets copies as well.
pub async fn silence(args: &[OsString]) -> Result<(), Error> {
    if args.iter().any(|arg| arg == "--help" || arg == "--list") {
        return run("silence", args).await;
    }
    build::ensure(None).await?;
    if let Err(why) = promtool::ensure() {
        eprintln!("{why}: nobody judges the alerts");
    }
    test_run::build_products()?;
    build_operator_with_hooks()?;
    let copies = tempfile::tempdir()?;
    let copy = |program: PathBuf, name: &str| -> std::io::Result<PathBuf> {
        let copy = copies.path().join(name);
        std::fs::copy(program, &copy)?;
        Ok(copy)
    };
    let hooked = copy(operator_with_hooks_bin(), OPERATOR_WITH_HOOKS)?;
    let (operator, dev) = (copy(repository::operator_bin(), OPERATOR)?, copy(repository::dev_bin(), "ferrvault-dev")?);
    start("silence", args, &operator, &dev, &[(OPERATOR_WITH_HOOKS_BIN, &hooked)])
}

/// Where the operator with hooks is: as `FERRVAULT_OPERATOR_WITH_HOOKS_BIN` says, else where a debug build leaves it.
pub fn operator_with_hooks_bin() -> PathBuf {
    let built = || repository::target_dir().join("debug").join(OPERATOR_WITH_HOOKS);
    std::env::var_os(OPERATOR_WITH_HOOKS_BIN).map_or_else(built, PathBuf::from)
}

/// Builds the operator with the hooks of its tests, beside the one that ships.
pub fn build_operator_with_hooks() -> Result<(), Error> {
    // The same packages as for the products, so that what both need is built the same, once.
    let args = [
        ["build", "--package", "ferrvault-operator", "--package", "ferrvault-devserver"].as_slice(),
        &["--features", "ferrvault-operator/test-hooks", "--bin", OPERATOR_WITH_HOOKS],
    ]
    .concat();
    eprintln!("== cargo {}", args.join(" "));
    let status = Command::new(repository::cargo()).args(args).current_dir(repository::root()).status()?;
    if status.success() { Ok(()) } else { Err(test_run::Error::NotBuilt.into()) }
}
