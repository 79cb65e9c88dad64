//! The description of a child before it runs. Starting it is the only thing here that touches the system.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Process, ProcessError, guard, spawner};

/// What to start: a program, its arguments and where its output goes.
#[derive(Clone, Debug)]
pub struct Launch {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    envs: Vec<(OsString, Option<OsString>)>,
    folder: Option<PathBuf>,
    log: PathBuf,
}

impl Launch {
    /// `program`, called `name` in messages, with its output going to the file `log`.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            envs: Vec::new(),
            folder: None,
            log: log.into(),
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Takes an environment variable away.
    #[must_use]
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), None));
        self
    }

    /// The folder to run in.
    #[must_use]
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Where its output will go.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Starts it. A log that exists already is continued, so that a restarted child keeps its history.
    pub fn start(&self) -> Result<Process, ProcessError> {
        let (output, errors) = self.open_log()?;
        let mut command = guard::guarded(&self.program);
        command.args(&self.args).stdin(Stdio::null()).stdout(output).stderr(errors);
        for (name, value) in &self.envs {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        own_group(&mut command);
        let child = spawner::spawn(command).map_err(|source| ProcessError::NotStarted {
            name: self.name.clone(),
            program: self.program.clone(),
            source,
        })?;
        Ok(Process::adopt(self.name.clone(), self.log.clone(), child))
    }

    fn open_log(&self) -> Result<(File, File), ProcessError> {
        let at = |source| ProcessError::File { path: self.log.clone(), source };
        let output = OpenOptions::new().create(true).append(true).open(&self.log).map_err(at)?;
        let errors = output.try_clone().map_err(at)?;
        Ok((output, errors))
    }
}

/// A group of its own: Ctrl-C at the terminal reaches this process alone, which then ends its children in order.
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}
