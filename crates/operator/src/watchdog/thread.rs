//! The watchdog in the process: on a thread and a runtime of its own, so that it goes on when the main runtime does not.

use std::io;
use std::thread;

use kube::Config;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Watchdog;
use crate::cluster::client::Clients;

/// A watchdog that runs. It does not end by itself.
#[derive(Debug)]
pub struct Running {
    ended: oneshot::Receiver<()>,
}

impl Running {
    /// Waits until it has ended, in whatever way.
    pub async fn ended(self) {
        // Nobody sends; that the other end is gone is the news.
        let _ = self.ended.await;
    }
}

impl Watchdog {
    /// Runs it on a thread of its own until `stop`.
    pub fn start(self, config: Config, stop: CancellationToken) -> io::Result<Running> {
        let (ending, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            // Held until the thread ends, by a panic as well.
            let _ending: oneshot::Sender<()> = ending;
            runtime.block_on(async {
                match Clients::for_watchdog(config) {
                    Ok(client) => self.run(client, stop).await,
                    Err(error) => tracing::error!(%error, "no client for the watchdog can be made"),
                }
            });
        })?;
        Ok(Running { ended })
    }
}
