//! The one thread that starts children.
//!
//! The signal that ties a child to its parent is bound to the *thread* that started it. A test's runtime, and with it
//! its threads, ends before other tests are done with a shared child; this thread lasts as long as the process.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

struct Job {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// Starts `command` on the lasting thread.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static JOBS: OnceLock<Sender<Job>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts processes is gone");
    let jobs = JOBS.get_or_init(|| {
        let (jobs, inbox) = channel::<Job>();
        std::thread::spawn(move || {
            for mut job in inbox {
                let child = job.command.spawn();
                // Nobody waiting any more means that the caller is gone; the child must not stay alone.
                if let Err(unclaimed) = job.reply.send(child)
                    && let Ok(mut child) = unclaimed.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        });
        jobs
    });
    let (reply, answer) = channel();
    jobs.send(Job { command, reply }).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}
