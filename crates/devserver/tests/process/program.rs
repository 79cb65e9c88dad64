//! Runs `ferrvault-dev`: verbs to their end, and a server that dies with its test.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest a test waits for a process: far above what a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The program, without whatever the environment of the test says about servers.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferrvault-dev"));
    for name in ["DATA", "URL", "TOKEN", "CA", "LOG"] {
        command.env_remove(format!("FERRVAULT_DEV_{name}"));
    }
    command
}

/// A server as a process, killed when it is dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) ready: Value,
    data: PathBuf,
}

impl Served {
    /// Starts one on `data`, its output in the files `out` and `err` beside it.
    pub(crate) fn start(data: &Path, arguments: &[&str]) -> Self {
        let ready_file = data.with_extension("ready");
        let _ = std::fs::remove_file(&ready_file);
        let file = |extension| std::fs::File::create(data.with_extension(extension)).unwrap();
        let child = program()
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"])
            .arg(data)
            .arg("--ready-file")
            .arg(&ready_file)
            .args(arguments)
            .env("FERRVAULT_DEV_LOG", "debug")
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap();
        let mut served = Self { child, ready: Value::Null, data: data.to_owned() };
        let start = Instant::now();
        while !ready_file.exists() {
            assert!(start.elapsed() < PATIENCE, "the server is not ready: {}", served.printed());
            let ended = served.child.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended with {ended:?}: {}", served.printed());
            std::thread::sleep(Duration::from_millis(10));
        }
        // The file is put in place as a whole, so what is there can be read.
        served.ready = serde_json::from_slice(&std::fs::read(&ready_file).unwrap()).unwrap();
        served
    }

    pub(crate) fn url(&self) -> &str {
        self.ready["url"].as_str().unwrap()
    }

    pub(crate) fn token(&self) -> &str {
        self.ready["token"].as_str().unwrap()
    }

    /// Everything it has printed.
    pub(crate) fn printed(&self) -> String {
        ["out", "err"].map(|part| std::fs::read_to_string(self.data.with_extension(part)).unwrap()).concat()
    }

    /// A verb on its data directory.
    pub(crate) fn verb(&self, arguments: &[&str]) -> Output {
        self.verb_with_input(arguments, "")
    }

    pub(crate) fn verb_with_input(&self, arguments: &[&str], input: &str) -> Output {
        run(program().args(arguments).arg("--data").arg(&self.data), input)
    }

    /// A verb that has to succeed; what it printed.
    pub(crate) fn told(&self, arguments: &[&str]) -> String {
        let output = self.verb(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A verb that has to fail; what it said.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.verb(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    }

    /// SIGKILL: no handler, no flush, no goodbye.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and how it ends then.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the server does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A verb that reads nothing may be gone before it is written to.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}
