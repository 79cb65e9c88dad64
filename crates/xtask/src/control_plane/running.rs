//! Which control planes `cargo xtask control-plane up` keeps running for this user, for `status` and `down` in another
//! shell.
//!
//! Each one has a file that its process holds locked. The lock, and not the process id in the file, says that it still
//! runs: locks go with their process, ids are given out again.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::{ControlPlane, Error};
use crate::repository;

/// How long an orderly end may take: killing five processes and removing a folder is far below a second.
const DOWN_WITHIN: Duration = Duration::from_secs(15);

/// Between two looks at a lock.
const POLL: Duration = Duration::from_millis(50);

/// What is known of a running control plane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    /// The process that keeps it.
    pub pid: i32,
    /// When it came up.
    pub since: jiff::Timestamp,
    /// Its API server.
    pub server: String,
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    /// Its temporary folder.
    pub folder: PathBuf,
    /// Its processes, by name.
    pub processes: Vec<(String, i32)>,
}

/// The entry of a running control plane; it goes when this is dropped, or with the process.
#[derive(Debug)]
pub(super) struct Entry {
    path: PathBuf,
    _lock: File,
}

impl Entry {
    /// Lists `plane` as running.
    pub(super) fn announce(plane: &ControlPlane) -> Result<Self, Error> {
        let running = Running {
            pid: i32::try_from(std::process::id()).unwrap_or_default(),
            since: jiff::Timestamp::now(),
            server: plane.server(),
            kubeconfig: plane.kubeconfig().to_owned(),
            folder: plane.folder().to_owned(),
            processes: plane.processes(),
        };
        Self::announce_in(&entries_dir()?, &running)
    }

    fn announce_in(entries: &Path, running: &Running) -> Result<Self, Error> {
        let path = entries.join(format!("{}.json", running.pid));
        let at = |source| Error::File { path: path.clone(), source };
        std::fs::create_dir_all(entries).map_err(at)?;
        // Locked and complete before it has its name: nobody ever sees an entry that looks abandoned.
        let unnamed = entries.join(format!("{}.new", running.pid));
        let mut file = File::create(&unnamed).map_err(at)?;
        file.lock().map_err(at)?;
        file.write_all(&serde_json::to_vec_pretty(running).map_err(|error| at(error.into()))?).map_err(at)?;
        std::fs::rename(&unnamed, &path).map_err(at)?;
        Ok(Self { path, _lock: file })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The control planes that run now, oldest first. What a killed one left behind is cleared away.
pub fn list() -> Result<Vec<Running>, Error> {
    Ok(list_in(&entries_dir()?))
}

fn list_in(entries: &Path) -> Vec<Running> {
    let files = std::fs::read_dir(entries).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found = Vec::new();
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
        let (Ok(file), Ok(text)) = (File::open(&path), std::fs::read_to_string(&path)) else {
            continue;
        };
        let running = serde_json::from_str::<Running>(&text).ok();
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            found.extend(running);
        } else {
            clear_away(&path, running.as_ref());
        }
    }
    found.sort_by_key(|running| running.since);
    found
}

/// Removes what a control plane left that was killed outright. Its processes went with it.
fn clear_away(entry: &Path, running: Option<&Running>) {
    let _ = std::fs::remove_file(entry);
    // Only a folder that has the name we give: the entry is a file that anybody could have written.
    let ours = |folder: &&PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(super::FOLDER_PREFIX)
    };
    if let Some(folder) = running.map(|running| &running.folder).filter(ours) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Ends the control plane of process `pid`, or the only one there is.
pub async fn stop(pid: Option<i32>) -> Result<Running, Error> {
    let entries = entries_dir()?;
    let running = choose(list_in(&entries), pid)?;
    let Some(id) = Pid::from_raw(running.pid) else {
        return Err(Error::Running(format!("{} is no process id", running.pid)));
    };
    for signal in [Signal::TERM, Signal::KILL] {
        let _ = kill_process(id, signal);
        let deadline = Instant::now() + DOWN_WITHIN;
        while Instant::now() < deadline {
            if list_in(&entries).iter().all(|other| other.pid != running.pid) {
                return Ok(running);
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Err(Error::NotInTime { what: format!("the end of process {}", running.pid), seconds: 2 * DOWN_WITHIN.as_secs() })
}

fn choose(mut all: Vec<Running>, pid: Option<i32>) -> Result<Running, Error> {
    if let Some(pid) = pid {
        let found = all.into_iter().find(|running| running.pid == pid);
        return found.ok_or_else(|| Error::Running(format!("no control plane runs under process {pid}")));
    }
    let pids: Vec<String> = all.iter().map(|running| running.pid.to_string()).collect();
    match (all.pop(), all.is_empty()) {
        (None, _) => Err(Error::Running("no control plane is running".to_owned())),
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(Error::Running(format!(
            "more than one control plane is running; name the process of one: {}",
            pids.join(", ")
        ))),
    }
}

fn entries_dir() -> Result<PathBuf, Error> {
    repository::cache_dir().map(|cache| cache.join("running")).ok_or(Error::NoCacheFolder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(pid: i32, folder: &Path) -> Running {
        Running {
            pid,
            since: jiff::Timestamp::UNIX_EPOCH,
            server: "https://127.0.0.1:1".to_owned(),
            kubeconfig: folder.join("kubeconfig"),
            folder: folder.to_owned(),
            processes: Vec::new(),
        }
    }

    #[test]
    fn an_entry_is_listed_while_its_lock_is_held_and_not_longer() {
        let entries = tempfile::tempdir().unwrap();
        let entry = Entry::announce_in(entries.path(), &running(7, Path::new("/nowhere"))).unwrap();
        assert_eq!(list_in(entries.path()).iter().map(|running| running.pid).collect::<Vec<_>>(), [7]);
        drop(entry);
        assert!(list_in(entries.path()).is_empty());
    }

    #[test]
    fn what_a_killed_one_left_is_cleared_away_but_no_folder_of_another_name() {
        let entries = tempfile::tempdir().unwrap();
        let ours = entries.path().join(format!("{}x", super::super::FOLDER_PREFIX));
        let foreign = entries.path().join("precious");
        for (pid, folder) in [(1, &ours), (2, &foreign)] {
            std::fs::create_dir(folder).unwrap();
            let text = serde_json::to_string(&running(pid, folder)).unwrap();
            std::fs::write(entries.path().join(format!("{pid}.json")), text).unwrap();
        }
        assert!(list_in(entries.path()).is_empty());
        assert!(!ours.exists());
        assert!(foreign.exists());
        assert!(!entries.path().join("1.json").exists());
    }

    #[test]
    fn the_only_one_needs_no_name_and_of_several_one_must_be_named() {
        let here = Path::new("/nowhere");
        assert_eq!(choose(vec![running(1, here)], None).unwrap().pid, 1);
        assert_eq!(choose(vec![running(1, here), running(2, here)], Some(2)).unwrap().pid, 2);
        let error = choose(vec![running(1, here), running(2, here)], None).unwrap_err().to_string();
        assert!(error.contains("1, 2"), "{error}");
        assert!(choose(Vec::new(), None).unwrap_err().to_string().contains("no control plane"));
        assert!(choose(vec![running(1, here)], Some(3)).unwrap_err().to_string().contains('3'));
    }
}
