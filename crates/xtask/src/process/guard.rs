//! Ties the life of a child to ours, even when we are killed and cannot clean up.
//!
//! Linux sends a child a signal of its choice when the thread that started it ends. Asking for it must happen in the
//! child, between fork and exec, which safe Rust does not offer; so the child first runs a small program that asks and
//! then turns into the real one, keeping its process id. That program is this one, when it is `xtask` itself, or
//! `setpriv` of util-linux. On other systems children end with `Drop` and Ctrl-C only.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The hidden subcommand of `xtask` that asks for the signal and becomes the given program.
pub const RUN_WITH_PARENT: &str = "run-with-parent";

/// The environment variable by which `xtask` tells the tests it starts where it lives.
pub(crate) const XTASK_BIN: &str = "FERRVAULT_XTASK_BIN";

/// How children are guarded on this machine.
enum Guard {
    /// Through `xtask run-with-parent`, found here.
    Xtask(PathBuf),
    /// Through `setpriv --pdeathsig KILL`.
    Setpriv(PathBuf),
    /// Not at all.
    None,
}

/// A command that runs `program` guarded; arguments may be added to it.
pub(super) fn guarded(program: &Path) -> Command {
    static GUARD: OnceLock<Guard> = OnceLock::new();
    match GUARD.get_or_init(choose) {
        Guard::Xtask(xtask) => {
            let mut command = Command::new(xtask);
            command.arg(RUN_WITH_PARENT).arg(std::process::id().to_string()).arg("--").arg(program);
            command
        }
        Guard::Setpriv(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        Guard::None => Command::new(program),
    }
}

fn choose() -> Guard {
    if !cfg!(target_os = "linux") {
        return Guard::None;
    }
    let ourselves = std::env::current_exe().unwrap_or_default();
    // A build that replaced our file meanwhile makes the name end in " (deleted)".
    let name = ourselves.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.trim_end_matches(" (deleted)") == "xtask" {
        // By this path and not by name, because it stays ours when the file is replaced.
        return Guard::Xtask(PathBuf::from("/proc/self/exe"));
    }
    if let Some(xtask) = std::env::var_os(XTASK_BIN).map(PathBuf::from).filter(|path| path.is_file()) {
        return Guard::Xtask(xtask);
    }
    setpriv_with_pdeathsig().map_or(Guard::None, Guard::Setpriv)
}

/// `setpriv`, if it is the one that knows the option: busybox has a smaller one of the same name.
fn setpriv_with_pdeathsig() -> Option<PathBuf> {
    let setpriv = find_in_path("setpriv")?;
    let help = Command::new(&setpriv).arg("--help").output().ok()?;
    String::from_utf8_lossy(&help.stdout).contains("--pdeathsig").then_some(setpriv)
}

/// The program `name` in the folders of PATH.
pub(crate) fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Becomes `program`, to be killed when the parent ends. Returns only on failure.
pub fn exec_with_parent(parent: u32, program: &Path, args: &[std::ffi::OsString]) -> std::io::Error {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)) {
        return error.into();
    }
    // The parent may have gone before the signal was asked for; then nobody will send it.
    if rustix::process::getppid().is_none_or(|pid| pid.as_raw_nonzero().get().unsigned_abs() != parent) {
        return std::io::Error::other("the process that asked for this one is gone");
    }
    Command::new(program).args(args).exec()
}
