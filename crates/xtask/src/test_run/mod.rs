//! `cargo xtask test`: all tests of the repository, in the order of what they need, and one line of counts at the end.

mod counts;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use counts::{Counts, Reader};

use crate::control_plane::{self, build};
use crate::process::XTASK_BIN;
use crate::repository;

/// Names the file in which tests note that they were skipped.
const SKIPPED: &str = "FERRVAULT_SKIPPED_TESTS";

/// Why the tests did not all pass.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Some failed; the counts were printed.
    #[error("not all tests passed")]
    Failed,
    /// No control plane for the end-to-end tests.
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),
    /// A command could not be run.
    #[error("{doing}: {source}")]
    Command {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Leave out what needs a control plane.
    pub fast: bool,
    /// The user's folder of control plane programs.
    pub assets: Option<PathBuf>,
    /// Arguments for the test programs, such as a part of a test's name.
    pub args: Vec<String>,
}

/// Notes that the running test is skipped and why; the test then returns as if it had passed, and is counted as skipped.
pub fn skip(test: &str, why: &str) {
    eprintln!("skipped: {test}: {why}");
    let Some(path) = std::env::var_os(SKIPPED) else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // One write per line, so that tests side by side do not mix theirs.
    let noted = file.and_then(|mut file| file.write_all(format!("{test}: {why}\n").as_bytes()));
    if let Err(error) = noted {
        eprintln!("this could not be noted: {error}");
    }
}

/// Runs the tests and prints the counts; the last line is `N passed, N failed, N skipped`.
pub async fn run(options: &Options) -> Result<(), Error> {
    let started = Instant::now();
    let folder = tempfile::tempdir().map_err(doing("making a temporary folder"))?;
    let skipped = folder.path().join("skipped");
    let mut counts = Counts::default();
    let mut complete = tests(&["--workspace", "--exclude", "ferrvault-e2e"], "", options, &skipped, &mut counts)?;
    if !options.fast {
        match end_to_end(options, &skipped, &mut counts).await {
            Ok(all) => complete &= all,
            // The counts so far are still worth showing.
            Err(error) => {
                counts.fail_to_run(counts::END_TO_END);
                print_counts(&counts, started);
                return Err(error);
            }
        }
    }
    counts.take_skipped(counts::END_TO_END, &std::fs::read_to_string(&skipped).unwrap_or_default());
    print_counts(&counts, started);
    if complete && counts.total().failed == 0 { Ok(()) } else { Err(Error::Failed) }
}

fn print_counts(counts: &Counts, started: Instant) {
    let seconds = started.elapsed().as_secs();
    println!("\n{counts}\ntime: {} min {:02} s\n{}", seconds / 60, seconds % 60, counts.total());
}

async fn end_to_end(options: &Options, skipped: &Path, counts: &mut Counts) -> Result<bool, Error> {
    let binaries = build::ensure(options.assets.as_deref()).await?;
    for component in binaries.missing() {
        eprintln!("{} has no {component}: tests that need it are skipped", binaries.folder().display());
    }
    build_products()?;
    let plane = ["--package", "xtask", "--test", "control_plane"];
    let mut complete = tests(&plane, counts::END_TO_END, options, skipped, counts)?;
    complete &= tests(&["--package", "ferrvault-e2e"], counts::END_TO_END, options, skipped, counts)?;
    Ok(complete)
}

/// Builds what the end-to-end tests and the demo run as processes.
pub fn build_products() -> Result<(), Error> {
    let args = ["build", "--package", "ferrvault-operator", "--package", "ferrvault-devserver", "--bins"];
    eprintln!("== cargo {}", args.join(" "));
    let status = Command::new(repository::cargo()).args(args).current_dir(repository::root()).status();
    let status = status.map_err(doing("building the operator and the dev server"))?;
    if status.success() { Ok(()) } else { Err(Error::Failed) }
}

/// Runs `cargo test` for some packages; shows and counts what it says. Returns whether cargo was content, too: a test
/// program that dies says no result.
fn tests(
    packages: &[&str],
    kind: &'static str,
    options: &Options,
    skipped: &Path,
    counts: &mut Counts,
) -> Result<bool, Error> {
    let (output, writer) = std::io::pipe().map_err(doing("making a pipe"))?;
    let errors = writer.try_clone().map_err(doing("making a pipe"))?;
    let mut command = Command::new(repository::cargo());
    command
        .args(["test", "--no-fail-fast", "--color", "never"])
        .args(packages)
        .arg("--")
        .args(&options.args)
        .current_dir(repository::root())
        .env(SKIPPED, skipped)
        .env(XTASK_BIN, xtask_bin())
        .env(repository::OPERATOR_BIN, repository::operator_bin())
        .env(repository::DEV_BIN, repository::dev_bin())
        // One stream for both: which program a result belongs to is known from the order of the lines.
        .stdout(writer)
        .stderr(errors)
        .stdin(Stdio::null());
    if let Some(assets) = &options.assets {
        command.env(control_plane::KUBEBUILDER_ASSETS, assets);
    }
    eprintln!("== cargo test {}", packages.join(" "));
    let mut child = command.spawn().map_err(doing("running cargo test"))?;
    // Our own ends of the pipe must go, or it never ends.
    drop(command);
    let mut reader = Reader::new(kind);
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(doing("reading what cargo test says"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        reader.read(&line, counts);
    }
    let status = child.wait().map_err(doing("waiting for cargo test"))?;
    reader.end(status.success(), counts);
    Ok(status.success())
}

/// Where this program is, even when a build has just replaced the file that it was started from.
fn xtask_bin() -> PathBuf {
    let path = std::env::current_exe().unwrap_or_default();
    match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(text) => PathBuf::from(text),
        None => path,
    }
}

fn doing(what: &str) -> impl FnOnce(std::io::Error) -> Error {
    let doing = what.to_owned();
    |source| Error::Command { doing, source }
}
