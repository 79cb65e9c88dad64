//! `cargo xtask test`: all tests of the repository, in the order of what they need, and one line of counts at the end.

mod counts;
mod properties;
mod simulated;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime};

use counts::{Counts, Reader};

use crate::control_plane::{self, build};
use crate::process::XTASK_BIN;
use crate::promtool;
use crate::repository;
use crate::simulation;

/// The package of the simulation.
const SIM: &str = "ferrvault-sim";

/// The package of the end-to-end tests.
const E2E: &str = "ferrvault-e2e";

/// Names the file in which tests note that they were skipped.
const SKIPPED: &str = "FERRVAULT_SKIPPED_TESTS";

/// Why the tests did not all pass.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Some failed; the counts were printed.
    #[error("not all tests passed")]
    Failed,
    /// The operator or the dev server does not compile; the compiler said why.
    #[error("the operator and the dev server do not build")]
    NotBuilt,
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
    /// Leave out what needs a control plane, and the long runs of the simulation.
    pub fast: bool,
    /// Only these packages; empty means all.
    pub packages: Vec<String>,
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
    let mut run = Run {
        options,
        skipped: folder.path().join("skipped"),
        properties: properties::names(&repository::root().join("crates")),
        counts: Counts::default(),
        content: true,
    };
    run.quick()?;
    run.simulation()?;
    if run.wants_end_to_end()
        && let Err(error) = run.end_to_end().await
    {
        // Said before the counts, which are still worth showing and stay the last thing shown.
        eprintln!("error: {error}");
        run.counts.fail_to_run(counts::END_TO_END);
    }
    let Run { skipped, mut counts, content, .. } = run;
    counts.take_skipped(counts::END_TO_END, &std::fs::read_to_string(&skipped).unwrap_or_default());
    let seconds = started.elapsed().as_secs();
    println!("\n{counts}\ntime: {} min {:02} s\n{}", seconds / 60, seconds % 60, counts.total());
    if content && counts.total().failed == 0 { Ok(()) } else { Err(Error::Failed) }
}

/// One run of the tests.
struct Run<'a> {
    options: &'a Options,
    /// Where tests note that they were skipped.
    skipped: PathBuf,
    properties: BTreeSet<String>,
    counts: Counts,
    /// Whether cargo was, every time: a test program that dies says no result.
    content: bool,
}

impl Run<'_> {
    /// Everything that needs no control plane.
    fn quick(&mut self) -> Result<(), Error> {
        let chosen: Vec<&str> = self.options.packages.iter().map(String::as_str).filter(|name| *name != E2E).collect();
        if self.options.packages.is_empty() {
            self.tests(&["--workspace", "--exclude", E2E], "")
        } else if chosen.is_empty() {
            Ok(())
        } else {
            let packages: Vec<&str> = chosen.into_iter().flat_map(|name| ["--package", name]).collect();
            self.tests(&packages, "")
        }
    }

    /// The long runs of the simulation; its tests have run by then.
    fn simulation(&mut self) -> Result<(), Error> {
        let Options { fast, packages, args, .. } = self.options;
        let wanted = packages.is_empty() || packages.iter().any(|name| name == SIM);
        if *fast || !wanted || !args.is_empty() {
            return Ok(());
        }
        for args in simulated::runs(SystemTime::now()) {
            eprintln!("== cargo xtask sim {}", args.join(" "));
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let (sum, held) = simulation::summed_up(&args).map_err(doing("running the simulation"))?;
            self.counts.take_simulation(sum, held);
            self.content &= held;
        }
        Ok(())
    }

    fn wants_end_to_end(&self) -> bool {
        let packages = &self.options.packages;
        !self.options.fast && (packages.is_empty() || packages.iter().any(|name| name == E2E))
    }

    async fn end_to_end(&mut self) -> Result<(), Error> {
        let binaries = build::ensure(self.options.assets.as_deref()).await?;
        for component in binaries.missing() {
            eprintln!("{} has no {component}: tests that need it are skipped", binaries.folder().display());
        }
        if let Err(why) = promtool::ensure() {
            eprintln!("{why}: tests that need it are skipped");
        }
        build_products()?;
        self.tests(&["--package", "xtask", "--test", "control_plane"], counts::END_TO_END)?;
        self.tests(&["--package", E2E], counts::END_TO_END)
    }

    /// Runs `cargo test` for some packages; shows and counts what it says.
    fn tests(&mut self, packages: &[&str], kind: &'static str) -> Result<(), Error> {
        let (output, writer) = std::io::pipe().map_err(doing("making a pipe"))?;
        let errors = writer.try_clone().map_err(doing("making a pipe"))?;
        let mut command = Command::new(repository::cargo());
        command
            .args(["test", "--no-fail-fast", "--color", "never"])
            .args(packages)
            .arg("--")
            .args(&self.options.args)
            .current_dir(repository::root())
            .env(SKIPPED, &self.skipped)
            .env(XTASK_BIN, xtask_bin())
            .env(repository::OPERATOR_BIN, repository::operator_bin())
            .env(repository::DEV_BIN, repository::dev_bin())
            // One stream for both: which program a result belongs to is known from the order of the lines.
            .stdout(writer)
            .stderr(errors)
            .stdin(Stdio::null());
        if let Some(assets) = &self.options.assets {
            command.env(control_plane::KUBEBUILDER_ASSETS, assets);
        }
        eprintln!("== cargo test {}", packages.join(" "));
        let mut child = command.spawn().map_err(doing("running cargo test"))?;
        // Our own ends of the pipe must go, or it never ends.
        drop(command);
        let mut reader = Reader::new(kind, &self.properties);
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(doing("reading what cargo test says"))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            reader.read(&line, &mut self.counts);
        }
        let status = child.wait().map_err(doing("waiting for cargo test"))?;
        reader.end(status.success(), &mut self.counts);
        self.content &= status.success();
        Ok(())
    }
}

/// Builds what the end-to-end tests and the demo run as processes.
pub fn build_products() -> Result<(), Error> {
    let args = ["build", "--package", "ferrvault-operator", "--package", "ferrvault-devserver", "--bins"];
    eprintln!("== cargo {}", args.join(" "));
    let status = Command::new(repository::cargo()).args(args).current_dir(repository::root()).status();
    let status = status.map_err(doing("building the operator and the dev server"))?;
    if status.success() { Ok(()) } else { Err(Error::NotBuilt) }
}

/// Where this program is, even when a build has just replaced the file that it was started from.
pub(crate) fn xtask_bin() -> PathBuf {
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
