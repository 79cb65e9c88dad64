//! The operator as a process: its doors, its signals and its exit statuses, beside an API server that takes connections
//! and never says a word. Loopback only; every wait has an end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test file: a failed step is a failed test"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// For anything that should come at once, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that the kernel answers for: connections open, and nothing else happens.
struct SilentServer {
    _socket: TcpListener,
    kubeconfig: PathBuf,
}

impl SilentServer {
    fn start(name: &str) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.kubeconfig"));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}]\n\
             users: [{{name: u, user: {{}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u, namespace: home}}}}]\n"
        );
        std::fs::write(&kubeconfig, text).unwrap();
        Self { _socket: socket, kubeconfig }
    }
}

struct Operator {
    child: Child,
    lines: Receiver<String>,
}

impl Operator {
    fn start(flags: &[&str], kubeconfig: &std::path::Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ferrvault-operator"))
            .args(flags)
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let log = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines }
    }

    /// On free ports, with logs to be read by a machine.
    fn beside(server: &SilentServer) -> Self {
        let here =
            ["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0", "--log-format=json"];
        Self::start(&here, &server.kubeconfig)
    }

    /// The next log line with `message`.
    fn logged(&self, message: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let line = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())).expect(message);
            let line: Value = serde_json::from_str(&line).expect("a log line is JSON");
            if line.get("message").and_then(Value::as_str) == Some(message) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the process does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// How it ended, and the last line that it wrote.
    fn refused(flags: &[&str], kubeconfig: &std::path::Path) -> (Option<i32>, String) {
        let mut operator = Self::start(flags, kubeconfig);
        let status = operator.end();
        (status.code(), operator.lines.iter().last().unwrap_or_default())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn beside_a_silent_api_server_it_lives_is_not_ready_says_why_and_ends_when_asked() {
    let server = SilentServer::start("silent");
    let mut operator = Operator::beside(&server);
    let started = operator.logged("started");
    assert_eq!(started["namespace"], "home", "of the kubeconfig's context");
    let (probes, metrics) = (started["probes"].as_str().unwrap(), started["metrics"].as_str().unwrap());

    assert!(get(probes, "/healthz").starts_with("HTTP/1.1 200 "));
    assert!(get(metrics, "/metrics").contains("\nferrvault_secret_sync_errors_total{"));
    // The first thing it needs is its key, and that is what it waits for.
    let until = Instant::now() + PATIENCE;
    let unready = loop {
        let answer = get(probes, "/readyz");
        if answer.contains("operator key") || Instant::now() > until {
            break answer;
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert!(unready.starts_with("HTTP/1.1 503 "), "{unready}");
    assert!(unready.contains("operator key: Secret home/ferrvault-operator-key"), "{unready}");

    operator.signal(Signal::TERM);
    assert_eq!(operator.logged("stopping: no new pass is started")["signal"], "SIGTERM");
    operator.logged("stopped");
    assert_eq!(operator.end().code(), Some(0));
}

#[test]
fn an_interrupt_from_a_terminal_is_as_good() {
    let server = SilentServer::start("interrupt");
    let mut operator = Operator::beside(&server);
    operator.logged("started");
    operator.signal(Signal::INT);
    assert_eq!(operator.end().code(), Some(0));
}

#[test]
fn its_memory_is_not_written_to_files() {
    let server = SilentServer::start("memory");
    let operator = Operator::beside(&server);
    operator.logged("started");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", operator.child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"]);
}

#[test]
fn settings_that_cannot_be_used_end_it_with_status_2_and_one_line() {
    let none = PathBuf::from("/nonexistent");
    let (code, line) = Operator::refused(&["--reconcile-timeout=30s"], &none);
    assert_eq!(code, Some(2));
    assert_eq!(
        line,
        "ferrvault-operator: --reconcile-timeout=30s is too short: it has to be at least 30.625s, the longest that one \
         call to FerrVault takes with its retries"
    );
    assert_eq!(Operator::refused(&["--no-such-flag"], &none).0, Some(2));
}

#[test]
fn an_address_that_is_taken_ends_it_with_status_1_and_names_the_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let flag = format!("--health-probe-bind-address={}", taken.local_addr().unwrap());
    let (code, line) = Operator::refused(&["--metrics-bind-address=0", &flag], &PathBuf::from("/nonexistent"));
    assert_eq!(code, Some(1));
    assert!(line.contains(&flag) && line.contains("cannot listen there"), "{line}");
}

#[test]
fn without_a_cluster_to_work_for_it_says_what_to_set() {
    let flags = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let (code, line) = Operator::refused(&flags, &PathBuf::from("/nonexistent/kubeconfig"));
    assert_eq!(code, Some(1));
    assert!(line.contains("KUBECONFIG"), "{line}");
}
