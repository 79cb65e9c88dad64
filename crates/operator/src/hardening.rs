//! What keeps secret values of the process out of files: it leaves no memory image behind when it dies.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Turns core dumps off for good.
///
/// The limit alone does not do it: where the kernel pipes dumps into a program, as most distributions set it up, a limit
/// of 0 is not looked at. Not being dumpable is, and keeps other processes of the same user from reading the memory, too.
pub fn forbid_memory_images() -> rustix::io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}
