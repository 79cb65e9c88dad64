//! Child processes that cannot outlive the work they were started for.
//!
//! A [`Process`] writes into a log file of its own, is killed when it is dropped, and dies with this process even when
//! this process is killed outright. It is always addressed by the id of a child that is known to exist still: an id
//! that the system may have given to somebody else is never signalled.

mod guard;
mod launch;
mod log;
mod spawner;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::sync::watch;

pub use guard::{RUN_WITH_PARENT, exec_with_parent};
pub(crate) use guard::{XTASK_BIN, find_in_path};
pub use launch::Launch;
pub use log::tail;

/// How often a log is looked at while somebody waits for a line: short against anything a person notices, long against
/// the cost of reading a few new bytes.
const LOG_POLL: Duration = Duration::from_millis(20);

/// How long a drop waits for a killed child. The largest, an API server of 300 MB, is gone within 50 ms.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Between two looks at a killed child.
const GONE_POLL: Duration = Duration::from_millis(1);

/// Lines of a log that an error quotes: enough for a Go program's last words, little enough to read.
const TAIL_LINES: usize = 15;

/// What can go wrong with a child process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started at all.
    #[error("{name} could not be started from {}: {source}", program.display())]
    NotStarted {
        /// What it was to be called.
        name: String,
        /// The program that was to run.
        program: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It ended although it was still needed.
    #[error("{name} ended ({status}); the end of {}:\n{tail}", log.display())]
    Ended {
        /// What it was called.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// Where its output went.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// It runs, but did not say or do what was waited for.
    #[error("{name} did not show {wanted} within {} s; the end of {}:\n{tail}", limit.as_secs(), log.display())]
    NotInTime {
        /// What it is called.
        name: String,
        /// What was waited for.
        wanted: String,
        /// How long.
        limit: Duration,
        /// Where its output goes.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// A file that belongs to it could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// Whether the child is still there to be signalled. Behind a lock, because reaping a child frees its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Reaped,
}

/// A running child. Dropping it kills it and waits until it is gone.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    pid: Pid,
    state: Arc<Mutex<State>>,
    ended: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    /// Takes a child over and starts the thread that reaps it.
    fn adopt(name: String, log: PathBuf, mut child: std::process::Child) -> Self {
        let pid = Pid::from_child(&child);
        let state = Arc::new(Mutex::new(State::Running));
        let (tell, ended) = watch::channel(None);
        let shared = Arc::clone(&state);
        // A thread and not a task: the child must be reaped even when no runtime is left.
        std::thread::spawn(move || {
            // First wait without reaping, so that the id stays taken until the state says that it is free.
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let status = child.wait();
            *state = State::Reaped;
            drop(state);
            tell.send_replace(status.ok());
        });
        Self { name, log, pid, state, ended }
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its output.
    pub fn log_tail(&self) -> String {
        tail(&self.log, TAIL_LINES)
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) == State::Running
    }

    /// Sends `signal` if the child still exists; returns whether it did.
    pub fn signal(&self, signal: Signal) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock is held over the call: the reaper cannot free the id in between.
        *state == State::Running && kill_process(self.pid, signal).is_ok()
    }

    /// Waits for its end, however long that takes.
    pub async fn wait(&self) -> Option<ExitStatus> {
        let mut ended = self.ended.clone();
        // A closed channel means that the reaper is gone, and the child with it.
        match ended.wait_for(Option::is_some).await {
            Ok(status) => *status,
            Err(_) => None,
        }
    }

    /// Kills it and waits until it is gone and its ports are free.
    pub async fn kill(&self) {
        self.signal(Signal::KILL);
        self.wait().await;
    }

    /// Asks it to end (SIGTERM), waits up to `grace`, and returns how it ended; an overstayed grace is an error, after
    /// which it is killed.
    pub async fn terminate(&self, grace: Duration) -> Result<Option<ExitStatus>, ProcessError> {
        self.signal(Signal::TERM);
        if let Ok(status) = tokio::time::timeout(grace, self.wait()).await {
            return Ok(status);
        }
        let error = self.not_in_time("its end after SIGTERM", grace);
        self.kill().await;
        Err(error)
    }

    /// Waits until a line of its output contains `needle` and returns that line.
    pub async fn wait_for_line(&self, needle: &str, limit: Duration) -> Result<String, ProcessError> {
        let wanted = format!("a line with {needle:?}");
        self.find_in_log(&wanted, limit, |line| line.contains(needle).then(|| line.to_owned())).await
    }

    /// Waits until `find` makes something of a line of its output. Every line is shown to `find` once, from the first
    /// one on, and only when it is complete. `wanted` says in an error what was waited for.
    pub async fn find_in_log<T>(
        &self,
        wanted: &str,
        limit: Duration,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, ProcessError> {
        let deadline = Instant::now() + limit;
        let mut lines = log::Lines::open(&self.log)?;
        loop {
            // Asked before reading: what a child wrote before its end is then certainly in the file.
            let running = self.is_running();
            while let Some(line) = lines.next(!running)? {
                if let Some(found) = find(&line) {
                    return Ok(found);
                }
            }
            if !running {
                return Err(self.ended_error().await);
            }
            if Instant::now() >= deadline {
                return Err(self.not_in_time(wanted, limit));
            }
            tokio::time::sleep(LOG_POLL).await;
        }
    }

    /// The error that says that it ended, with its last words.
    pub async fn ended_error(&self) -> ProcessError {
        let status = self.wait().await.unwrap_or_default();
        ProcessError::Ended { name: self.name.clone(), status, log: self.log.clone(), tail: self.log_tail() }
    }

    /// The error that says that it did not show `wanted` in time.
    pub fn not_in_time(&self, wanted: &str, limit: Duration) -> ProcessError {
        ProcessError::NotInTime {
            name: self.name.clone(),
            wanted: wanted.to_owned(),
            limit,
            log: self.log.clone(),
            tail: self.log_tail(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // Gone means gone: its ports are free and it writes no more files when the drop returns. After SIGKILL that takes
        // the system a few milliseconds; a process stuck in the kernel is left to the reaper thread.
        let deadline = Instant::now() + GONE_WITHIN;
        while self.is_running() && Instant::now() < deadline {
            std::thread::sleep(GONE_POLL);
        }
    }
}

#[cfg(test)]
mod tests;
