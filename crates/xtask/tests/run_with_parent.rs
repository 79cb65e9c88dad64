//! The stage through which `xtask` starts its children, seen from outside.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const XTASK: &str = env!("CARGO_BIN_EXE_xtask");

/// Long enough for a kill to take effect on a machine that is busy with builds.
const SOON: Duration = Duration::from_secs(20);

/// Whether the process runs. One that ended and that nobody has collected yet does not.
fn runs(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = state.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn a_child_ends_when_its_parent_is_killed() {
    // The shell is the parent; it has no way to clean up when it is killed.
    let script = format!("{XTASK} run-with-parent $$ -- sh -c 'echo $$; exec sleep 300' & wait");
    let mut parent = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let child = first_line(&mut parent);
    assert!(runs(&child), "{child:?}");
    parent.kill().unwrap();
    parent.wait().unwrap();
    let deadline = Instant::now() + SOON;
    while runs(&child) {
        assert!(Instant::now() < deadline, "process {child} outlived its parent");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_child_whose_parent_has_gone_already_does_not_start() {
    let output = Command::new(XTASK).args(["run-with-parent", "1", "--", "echo", "started"]).output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(says.contains("gone"), "{says}");
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let parent = std::process::id().to_string();
    let output = Command::new(XTASK).args(["run-with-parent", &parent, "--", "/no/such/program"]).output().unwrap();
    assert!(!output.status.success());
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(says.contains("/no/such/program"), "{says}");
}

#[test]
fn the_help_shows_where_to_begin_and_hides_the_stage() {
    let output = Command::new(XTASK).arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(help.contains("control-plane") && help.contains("test"), "{help}");
    assert!(!help.contains("run-with-parent"), "{help}");
}
