//! Prometheus's own checker, for the tests of metrics and alerts: found, or fetched from Debian's archive.
//!
//! Only the one program is taken out of the package, into the user's cache folder. Installing the package would start a
//! server that listens to the whole network. On a system without `apt-get` nothing is fetched and the tests that need the
//! program are skipped, and counted as skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::repository;

/// The environment variable that names the program, where another one than that in PATH is wanted.
pub const PROMTOOL: &str = "FERRVAULT_PROMTOOL";

/// The Debian package that it is in.
const PACKAGE: &str = "prometheus";

/// The program, where there is one: as `FERRVAULT_PROMTOOL` says, else in PATH, else as fetched before.
pub fn locate() -> Option<PathBuf> {
    let named = std::env::var_os(PROMTOOL).filter(|value| !value.is_empty()).map(PathBuf::from);
    let in_path =
        std::env::var_os("PATH").into_iter().flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let candidates = named.into_iter().chain(in_path.map(|folder| folder.join("promtool"))).chain(cached());
    candidates.into_iter().find(|path| path.is_file())
}

/// The program, fetched if need be; or one line that says why there is none.
pub fn ensure() -> Result<PathBuf, String> {
    if let Some(found) = locate() {
        return Ok(found);
    }
    let place = cached().ok_or("there is no cache folder to keep promtool in")?;
    eprintln!("== promtool: fetching the Debian package {PACKAGE}");
    fetch(&place).map_err(|why| format!("no promtool in PATH, and it cannot be fetched: {why}"))?;
    Ok(place)
}

fn cached() -> Option<PathBuf> {
    Some(repository::cache_dir()?.join("promtool"))
}

fn fetch(place: &Path) -> Result<(), String> {
    let parent = place.parent().ok_or("its folder has no parent")?;
    std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    // Beside its place, so that the move at the end cannot leave half a program there.
    let folder = tempfile::tempdir_in(parent).map_err(|error| error.to_string())?;
    let download = || run(Command::new("apt-get").args(["download", "--quiet", PACKAGE]).current_dir(folder.path()));
    if let Err(first) = download() {
        // A fresh machine has no list of packages yet. Where that may not be read anew, the first refusal says more.
        run(Command::new("apt-get").args(["update", "--quiet"])).map_err(|_| first)?;
        download()?;
    }
    let package = std::fs::read_dir(folder.path())
        .map_err(|error| error.to_string())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or("apt-get left no package behind")?;
    run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(folder.path().join("files")))?;
    std::fs::rename(folder.path().join("files/usr/bin/promtool"), place).map_err(|error| error.to_string())
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stderr, .. } = command.output().map_err(|error| format!("{name}: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{name}: {status}: {last}"))
}
