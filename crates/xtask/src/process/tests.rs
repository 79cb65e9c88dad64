//! Real children, because what is tested is what the system does with them.

use std::time::Duration;

use rustix::process::{Pid, test_kill_process};

use super::*;

/// Long enough for a shell to start on a machine that is busy with builds.
const SOON: Duration = Duration::from_secs(20);

fn shell(script: &str) -> (tempfile::TempDir, Launch) {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new("shell", "/bin/sh", folder.path().join("shell.log")).args(["-c", script]);
    (folder, launch)
}

fn exists(pid: i32) -> bool {
    test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

#[tokio::test]
async fn a_line_is_found_once_it_is_complete() {
    let (_folder, launch) = shell("printf 'listening on '; printf '127.0.0.1:4711\\n'; exec sleep 60");
    let process = launch.start().unwrap();
    let line = process.wait_for_line("listening on", SOON).await.unwrap();
    assert_eq!(line, "listening on 127.0.0.1:4711");
    assert!(process.is_running());
}

#[tokio::test]
async fn an_early_end_is_told_with_the_status_and_the_last_words() {
    let (_folder, launch) = shell("echo one; echo two >&2; exit 3");
    let process = launch.start().unwrap();
    let error = process.wait_for_line("never said", SOON).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ProcessError::Ended { .. }), "{text}");
    assert!(text.contains("exit status: 3") && text.contains("one\ntwo"), "{text}");
}

#[tokio::test]
async fn a_last_line_without_a_newline_is_found_too() {
    let (_folder, launch) = shell("printf ready");
    let process = launch.start().unwrap();
    assert_eq!(process.wait_for_line("ready", SOON).await.unwrap(), "ready");
}

#[tokio::test]
async fn a_silent_child_is_reported_when_the_time_is_over() {
    let (_folder, launch) = shell("exec sleep 60");
    let process = launch.start().unwrap();
    let error = process.wait_for_line("ready", Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, ProcessError::NotInTime { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no-such-program");
    let launch = Launch::new("ghost", &missing, folder.path().join("ghost.log"));
    // Behind a guard the guard itself starts and then says what is missing.
    let text = match launch.start() {
        Err(error) => error.to_string(),
        Ok(process) => process.wait_for_line("never said", SOON).await.unwrap_err().to_string(),
    };
    assert!(text.contains("no-such-program"), "{text}");
}

#[tokio::test]
async fn dropping_a_process_ends_it() {
    let (_folder, launch) = shell("exec sleep 60");
    let process = launch.start().unwrap();
    let pid = process.pid();
    assert!(exists(pid));
    drop(process);
    assert!(!exists(pid));
}

#[tokio::test]
async fn a_signal_after_the_end_goes_nowhere() {
    let (_folder, launch) = shell("exit 0");
    let process = launch.start().unwrap();
    assert!(process.wait().await.unwrap().success());
    assert!(!process.signal(Signal::KILL));
}

#[tokio::test]
async fn terminate_waits_for_an_orderly_end() {
    let (_folder, launch) = shell("trap 'exit 7' TERM; echo armed; while :; do sleep 0.05; done");
    let process = launch.start().unwrap();
    process.wait_for_line("armed", SOON).await.unwrap();
    let status = process.terminate(SOON).await.unwrap();
    assert_eq!(status.and_then(|status| status.code()), Some(7));
}

#[tokio::test]
async fn terminate_kills_what_will_not_end_and_says_so() {
    let (_folder, launch) = shell("trap '' TERM; echo armed; while :; do sleep 0.05; done");
    let process = launch.start().unwrap();
    process.wait_for_line("armed", SOON).await.unwrap();
    let error = process.terminate(Duration::from_millis(100)).await.unwrap_err();
    assert!(matches!(error, ProcessError::NotInTime { .. }), "{error}");
    assert!(!process.is_running());
}

#[test]
fn a_tail_holds_the_last_lines_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    std::fs::write(&path, "1\n2\n3\n4\n").unwrap();
    assert_eq!(tail(&path, 2), "3\n4");
    assert_eq!(tail(&path, 9), "1\n2\n3\n4");
    assert_eq!(tail(&folder.path().join("absent"), 2), "");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn children_outlive_the_thread_that_asked_for_them() {
    // They end with the process, not with a runtime of one test.
    let (_folder, launch) = shell("echo up; exec sleep 60");
    let process = std::thread::spawn(move || launch.start().unwrap()).join().unwrap();
    process.wait_for_line("up", SOON).await.unwrap();
    assert!(process.is_running());
}
