//! Builds the control plane once per set of sources, flags and Go version, into the user's cache folder.
//!
//! A build becomes visible by a rename when it is complete, and never before. Two builders do not meet: the second
//! waits for the first and finds its result. An interrupted build goes on where it stopped.

use std::fs::{File, TryLockError};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::binaries::builds_dir;
use super::recipe::{self, Recipe};
use super::{Binaries, Component, Error};
use crate::process::Process;

/// How often a terminal sees the elapsed time grow.
const TICK: Duration = Duration::from_secs(1);

/// How many ticks pass between two lines where output is not a terminal: one line in half a minute is a sign of life
/// in a CI log and no more.
const TICKS_PER_LINE: u64 = 30;

/// What the user named or what was built before; builds it if there is neither.
pub async fn ensure(assets: Option<&Path>) -> Result<Binaries, Error> {
    if let Some(binaries) = Binaries::from_user(assets)? {
        return Ok(binaries);
    }
    if let Some(binaries) = Binaries::from_cache()? {
        return Ok(binaries);
    }
    let (go, version) = recipe::find_go()?;
    let recipe = Recipe::read()?;
    let builds = builds_dir()?;
    std::fs::create_dir_all(&builds).map_err(at(&builds))?;
    let _lock = lock(builds.join("lock")).await?;
    let folder = builds.join(recipe.folder(&version));
    if !folder.is_dir() {
        let partial = builds.join(format!("{}.partial", recipe.folder(&version)));
        std::fs::create_dir_all(&partial).map_err(at(&partial))?;
        build_all(&recipe, &go, &partial).await?;
        std::fs::rename(&partial, &folder).map_err(at(&folder))?;
    }
    Ok(Binaries::built(folder))
}

/// Takes the lock of all builders; it goes with the file, and so with the process.
async fn lock(path: PathBuf) -> Result<File, Error> {
    let file = File::create(&path).map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => eprintln!("another build of the control plane is running; waiting for it"),
        Err(TryLockError::Error(source)) => return Err(Error::File { path, source }),
    }
    let waiting = tokio::task::spawn_blocking(move || file.lock().map(|()| file));
    waiting.await.map_err(std::io::Error::other).flatten().map_err(at(&path))
}

async fn build_all(recipe: &Recipe, go: &Path, folder: &Path) -> Result<(), Error> {
    let started = Instant::now();
    eprintln!(
        "building the control plane with {}, once for this machine; about five minutes on two cores",
        go.display()
    );
    for (index, component) in Component::ALL.into_iter().enumerate() {
        let label = format!("{component} ({} of {})", index + 1, Component::ALL.len());
        let finished = folder.join(component.name());
        if finished.is_file() {
            eprintln!("{label}: built before");
            continue;
        }
        // The linker writes in place; a name of its own keeps half a binary from ever being taken for a whole one.
        let unfinished = folder.join(format!("{component}.unfinished"));
        let log = folder.join(format!("{component}.log"));
        let process = recipe.launch(go, component, &unfinished, &log).start()?;
        let took = wait_showing_time(&process, &label).await?;
        std::fs::rename(&unfinished, &finished).map_err(at(&finished))?;
        let _ = std::fs::remove_file(&log);
        eprintln!("{label}: built in {}", seconds(took));
    }
    eprintln!("the control plane is built; it took {}", seconds(started.elapsed()));
    Ok(())
}

/// Waits for the end of a build while the elapsed time is shown.
async fn wait_showing_time(process: &Process, label: &str) -> Result<Duration, Error> {
    let started = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let mut ticks: u64 = 0;
    let status = loop {
        if let Ok(status) = tokio::time::timeout(TICK, process.wait()).await {
            break status;
        }
        ticks += 1;
        if terminal {
            eprint!("\r{label}: {} ", seconds(started.elapsed()));
            let _ = std::io::stderr().flush();
        } else if ticks.is_multiple_of(TICKS_PER_LINE) {
            eprintln!("{label}: {}", seconds(started.elapsed()));
        }
    };
    if terminal {
        eprint!("\r");
    }
    if status.is_some_and(|status| status.success()) {
        Ok(started.elapsed())
    } else {
        Err(process.ended_error().await.into())
    }
}

/// A duration as a person says it.
fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    if whole < 60 { format!("{whole} s") } else { format!("{} min {:02} s", whole / 60, whole % 60) }
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        assert_eq!(seconds(Duration::from_millis(59_900)), "59 s");
        assert_eq!(seconds(Duration::from_secs(65)), "1 min 05 s");
    }

    #[tokio::test]
    async fn a_second_builder_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = lock(path.clone()).await.unwrap();
        let mut second = Box::pin(lock(path));
        assert!(tokio::time::timeout(Duration::from_millis(100), &mut second).await.is_err());
        drop(first);
        tokio::time::timeout(Duration::from_secs(20), second).await.unwrap().unwrap();
    }
}
