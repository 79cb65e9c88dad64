//! Keeps something running in the foreground until a person, a signal, a failure or the end of the parent ends it.

use std::time::Duration;

use rustix::process::getppid;
use tokio::signal::unix::{SignalKind, signal};

use super::running::Entry;
use super::{ControlPlane, Error, StartOptions};

/// How often parent and components are looked at. Half a second is soon enough for things that never happen in a day
/// without trouble.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Starts a control plane, says how to use it, and keeps it until Ctrl-C, a signal, the parent's end, or the failure of
/// one of its programs, which is an error.
pub async fn up(options: StartOptions) -> Result<(), Error> {
    let mut stop = Stop::new()?;
    let started = std::time::Instant::now();
    // A Ctrl-C during the start drops the half-started control plane in order.
    let plane = tokio::select! {
        plane = ControlPlane::start(options) => plane?,
        why = stop.requested() => {
            eprintln!("{why}: not started");
            return Ok(());
        }
    };
    let _entry = Entry::announce(&plane)?;
    println!(
        "A control plane is up at {} after {:.1} s. In another shell:",
        plane.server(),
        started.elapsed().as_secs_f64()
    );
    println!("  export KUBECONFIG={}", plane.kubeconfig().display());
    println!("  {}", plane.tools().export_of_cache());
    println!("  export PATH={}:$PATH    # kubectl, helm", plane.binaries().folder().display());
    println!("Ctrl-C ends it, or `cargo xtask control-plane down` from elsewhere; nothing of it is kept.");
    let why = stop.requested_or_failed(&plane).await?;
    eprintln!("{why}: ending the control plane");
    Ok(())
}

/// All the ways in which somebody says that it is enough.
pub struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    parent: Option<rustix::process::Pid>,
}

impl Stop {
    /// From here on the signals no longer end the process by themselves.
    pub fn new() -> Result<Self, Error> {
        let on = |kind| signal(kind).map_err(|source| Error::File { path: "signals".into(), source });
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
            parent: getppid(),
        })
    }

    /// Waits for a reason to stop, and names it.
    pub async fn requested(&mut self) -> &'static str {
        let parent = self.parent;
        tokio::select! {
            why = self.signalled() => why,
            () = parent_gone(parent) => "the parent is gone",
        }
    }

    /// The same, but a parent that has gone is no reason any more: for what must still be done at the end.
    pub async fn signalled(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }

    /// The same, but a program of `plane` that ends by itself is an error.
    pub async fn requested_or_failed(&mut self, plane: &ControlPlane) -> Result<&'static str, Error> {
        tokio::select! {
            why = self.requested() => Ok(why),
            error = failed(plane) => Err(error),
        }
    }
}

/// Looks instead of asking for a signal: that would come when the *thread* of the parent ends that started us.
async fn parent_gone(parent: Option<rustix::process::Pid>) {
    while getppid() == parent {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn failed(plane: &ControlPlane) -> Error {
    loop {
        if let Some(error) = plane.failure().await {
            return error;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
