//! The doors for whoever runs the operator: probes and metrics, on a thread and runtime of their own.
//!
//! Nothing here runs on the main runtime, so when that one stands still the probes say so instead of standing still with
//! it. Every page is computed when it is asked for, from state that others keep; nothing is pushed here and nothing that
//! a page does may wait for the main runtime.

pub mod families;
mod heartbeat;
mod liveness;
pub mod metrics;
mod negotiate;
mod objects;
mod readiness;
mod server;
mod standing;
pub mod vitals;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::oneshot;

pub use self::heartbeat::Heartbeat;
pub use self::liveness::Liveness;
pub use self::metrics::Metrics;
pub use self::negotiate::Format;
pub use self::objects::{ConnectionSeries, ObjectSeries, ResourceSeries};
pub use self::readiness::{Part, Readiness};
use self::server::{Answer, Pages};
use crate::settings::{BindAddress, CannotListen};

/// The sockets, before anybody serves them: so that an address that is taken ends the start and not a thread.
#[derive(Debug)]
pub struct Sockets {
    metrics: Option<TcpListener>,
    probes: Option<TcpListener>,
}

/// What the pages tell about.
#[derive(Clone, Debug)]
pub struct Subjects {
    /// Whether the main runtime lives.
    pub heartbeat: Heartbeat,
    /// Whether the process lives, the runtime included.
    pub liveness: Liveness,
    /// Whether the process can do its work.
    pub readiness: Readiness,
    /// What it did.
    pub metrics: Metrics,
}

/// The running servers. They end when this is dropped.
#[derive(Debug)]
pub struct Admin {
    _stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Sockets {
    /// Begins to listen where the settings say.
    pub fn bind(metrics: &BindAddress, probes: &BindAddress) -> Result<Self, CannotListen> {
        Ok(Self { metrics: metrics.listen()?, probes: probes.listen()? })
    }

    /// Where metrics are served, with the port that was really taken.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Where the probes are served, with the port that was really taken.
    pub fn probe_address(&self) -> Option<SocketAddr> {
        self.probes.as_ref()?.local_addr().ok()
    }
}

impl Admin {
    /// Serves `sockets` from a thread of their own.
    pub fn start(sockets: Sockets, subjects: &Subjects) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let metrics = sockets.metrics.map(|socket| (socket, metrics_pages(subjects)));
        let probes = sockets.probes.map(|socket| (socket, probe_pages(subjects)));
        let log = subjects.liveness.clone().keep_log();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        thread::Builder::new().name("admin".to_owned()).spawn(move || {
            // Held until the thread ends, in whatever way.
            let _ending: oneshot::Sender<()> = ending;
            runtime.block_on(async {
                let servers = [metrics, probes].into_iter().flatten();
                let servers = futures::future::join_all(
                    servers.map(|(socket, pages)| server::serve(socket, pages, server::LIMITS)),
                );
                tokio::select! {
                    // Without any server there is nothing to do but wait.
                    () = async { servers.await; std::future::pending().await } => {}
                    () = log => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { _stop: stop, ended })
    }

    /// Waits until the thread has ended, which it does not by itself.
    pub async fn ended(mut self) {
        // Nobody sends; that the other end is gone is the news.
        let _ = (&mut self.ended).await;
    }
}

fn metrics_pages(subjects: &Subjects) -> Pages {
    let metrics = subjects.metrics.clone();
    Pages::default().page("/metrics", move |headers| {
        let format = Format::wanted(headers);
        match metrics.page(format) {
            Ok(body) => Answer { status: StatusCode::OK, content_type: format.content_type(), body },
            Err(_) => Answer::text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written down"),
        }
    })
}

fn probe_pages(subjects: &Subjects) -> Pages {
    let Subjects { liveness, readiness, .. } = subjects.clone();
    Pages::default()
        .page("/healthz", move |_| Answer::verdict(liveness.verdict()))
        .page("/readyz", move |_| Answer::verdict(readiness.verdict()))
}

impl Answer {
    fn verdict(verdict: Result<(), String>) -> Self {
        match verdict {
            Ok(()) => Self::text(StatusCode::OK, "ok"),
            Err(why) => Self::text(StatusCode::SERVICE_UNAVAILABLE, &why),
        }
    }
}

impl Subjects {
    /// All of them, new, for a process that is stalled after `stall_threshold`.
    pub fn new(stall_threshold: Duration) -> Self {
        let heartbeat = Heartbeat::new(stall_threshold);
        let subjects = Self {
            liveness: Liveness::new(heartbeat.clone(), stall_threshold),
            heartbeat,
            readiness: Readiness::default(),
            metrics: Metrics::default(),
        };
        let Self { heartbeat, liveness, readiness, metrics } = subjects.clone();
        metrics.tell(families::ALIVE, "", move || f64::from(liveness.verdict().is_ok()));
        metrics.tell(families::READY, "", move || f64::from(readiness.verdict().is_ok()));
        metrics.tell(families::RUNTIME_SILENCE, "", move || heartbeat.silence().as_secs_f64());
        subjects
    }
}

#[cfg(test)]
mod tests;
