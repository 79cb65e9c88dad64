//! Names, looked up by the system, each of them once at a time.
//!
//! The system's lookup has no deadline: one whose name servers are silent blocks its thread for half a minute, however soon
//! its caller gives up. Callers that each had a thread of their own would use up those that all blocking work of the process
//! shares. So whoever asks for a name that is being looked up shares that answer (I9).

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Names that may be looked up at a time: half of the 512 threads that tokio has for blocking work. The other half is for
/// reading tokens and files, however many names hang.
const MOST: usize = 256;

type Ask = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;
type Answer = Result<Vec<SocketAddr>, io::ErrorKind>;

/// Lookups under way, by name. A clone shares them.
#[derive(Clone)]
pub(crate) struct Lookups {
    ask: Arc<Ask>,
    running: Arc<Mutex<HashMap<String, watch::Receiver<Option<Answer>>>>>,
}

/// Those of the process: clients of different addresses may have the host in common.
pub(crate) static SYSTEM: LazyLock<Lookups> =
    // The port is set by who connects.
    LazyLock::new(|| Lookups::new(|name| Ok((name, 0).to_socket_addrs()?.collect())));

impl Lookups {
    fn new(ask: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), running: Arc::default() }
    }

    /// The addresses of `name`. Whoever drops this gives up waiting; the lookup goes on.
    pub(crate) async fn of(&self, name: String) -> io::Result<Vec<SocketAddr>> {
        let mut answer = self.join(name)?;
        // Nobody tells any more: the lookup panicked, or the runtime ends.
        let told = answer.wait_for(Option::is_some).await.map_err(io::Error::other)?;
        told.clone().unwrap_or(Err(io::ErrorKind::Other)).map_err(io::Error::from)
    }

    fn join(&self, name: String) -> io::Result<watch::Receiver<Option<Answer>>> {
        let mut running = self.running();
        running.retain(|_, answer| answer.has_changed().is_ok());
        if let Some(answer) = running.get(&name) {
            return Ok(answer.clone());
        }
        if running.len() >= MOST {
            return Err(io::Error::other("too many host names are being looked up"));
        }
        let (tell, answer) = watch::channel(None);
        running.insert(name.clone(), answer.clone());
        let this = self.clone();
        tokio::task::spawn_blocking(move || {
            let found = (this.ask)(&name).map_err(|error| error.kind());
            // Taken out first: whoever comes later wants an answer of its own time.
            this.running().remove(&name);
            tell.send_replace(Some(found));
        });
        Ok(answer)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Option<Answer>>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Name servers that are silent about names that begin with `hung`, until they are set free.
    #[derive(Clone, Default)]
    struct Servers {
        asked: Arc<AtomicUsize>,
        free: Arc<(Mutex<bool>, Condvar)>,
    }

    impl Servers {
        fn lookups(&self) -> Lookups {
            let this = self.clone();
            Lookups::new(move |name| {
                this.asked.fetch_add(1, Ordering::SeqCst);
                if name.starts_with("hung") {
                    let free = this.free.0.lock().unwrap();
                    drop(this.free.1.wait_while(free, |free| !*free).unwrap());
                }
                match name {
                    "unknown" => Err(io::ErrorKind::NotFound.into()),
                    "broken" => panic!("as the test asked for"),
                    _ => Ok(vec!["127.0.0.1:0".parse().unwrap()]),
                }
            })
        }

        fn set_free(&self) {
            *self.free.0.lock().unwrap() = true;
            self.free.1.notify_all();
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::SeqCst)
        }
    }

    /// A test that fails frees the threads, which its runtime would wait for.
    struct Freed<'a>(&'a Servers);

    impl Drop for Freed<'_> {
        fn drop(&mut self) {
            self.0.set_free();
        }
    }

    async fn until(reached: impl Fn() -> bool) {
        while !reached() {
            tokio::task::yield_now().await;
        }
    }

    fn asking(
        lookups: &Lookups,
        names: impl Iterator<Item = String>,
    ) -> Vec<tokio::task::JoinHandle<io::Result<usize>>> {
        let ask = |name| {
            let lookups = lookups.clone();
            tokio::spawn(async move { lookups.of(name).await.map(|found| found.len()) })
        };
        names.map(ask).collect()
    }

    #[tokio::test]
    async fn a_name_that_hangs_takes_one_thread_however_many_ask_for_it_and_delays_no_other() {
        let servers = Servers::default();
        let _freed = Freed(&servers);
        let lookups = servers.lookups();
        // Far more than there are threads.
        let waiting = asking(&lookups, std::iter::repeat_n("hung".to_owned(), 2_000));
        until(|| servers.asked() == 1).await;
        assert_eq!(lookups.of("other".to_owned()).await.unwrap().len(), 1);
        waiting.iter().take(500).for_each(tokio::task::JoinHandle::abort);
        assert_eq!(servers.asked(), 2);
        servers.set_free();
        for waiting in waiting.into_iter().skip(500) {
            assert_eq!(waiting.await.unwrap().unwrap(), 1);
        }
        assert_eq!(servers.asked(), 2);
        lookups.of("hung".to_owned()).await.unwrap();
        assert_eq!(servers.asked(), 3, "whoever comes later has an answer of its own time");
    }

    #[tokio::test]
    async fn names_that_hang_leave_threads_to_other_work() {
        let servers = Servers::default();
        let _freed = Freed(&servers);
        let lookups = servers.lookups();
        let waiting = asking(&lookups, (0..MOST).map(|index| format!("hung{index}")));
        until(|| servers.asked() == MOST).await;
        assert!(lookups.of("one-more".to_owned()).await.is_err(), "refused at once");
        assert_eq!(tokio::task::spawn_blocking(|| 7).await.unwrap(), 7);
        servers.set_free();
        for waiting in waiting {
            assert_eq!(waiting.await.unwrap().unwrap(), 1);
        }
        assert!(lookups.of("one-more".to_owned()).await.is_ok());
    }

    #[tokio::test]
    async fn a_lookup_that_fails_says_so_to_all_and_leaves_nothing_behind() {
        let servers = Servers::default();
        let lookups = servers.lookups();
        for name in ["unknown", "unknown", "broken", "broken"] {
            for failed in asking(&lookups, std::iter::repeat_n(name.to_owned(), 3)) {
                let error = failed.await.unwrap().unwrap_err();
                assert_eq!(error.kind() == io::ErrorKind::NotFound, name == "unknown", "{error}");
            }
        }
        assert!(lookups.of("known".to_owned()).await.is_ok());
        assert!(lookups.running().is_empty());
    }
}
