//! Names, looked up by the system, each of them once at a time.
//!
//! The system's lookup has no deadline: one whose name servers are silent blocks its thread for half a minute, however soon
//! its caller gives up. Callers that each had a thread of their own would use up those that all blocking work of the process
//! shares. So whoever asks for a name that is being looked up shares that answer (I9).

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Lookups at a time: half of the 512 threads that tokio has for blocking work. The other half is for reading tokens and
/// files, however many names hang.
const MOST: usize = 256;

/// Those among them that may be of names which nobody has answered for yet: whoever makes up names that hang leaves as
/// many places to those that are in use.
const MOST_OF_STRANGERS: usize = MOST / 2;

/// Names in use that are remembered: each connection has one, so that is a cluster of many. At 253 bytes, 1 MB at most.
const REMEMBERED: usize = 4096;

/// A lookup that has not ended by now is not waited for by who comes later: another one may fare better. The system gives
/// up on silent name servers after half a minute.
const FRESH: Duration = Duration::from_secs(30);

type Ask = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;
type Answer = Result<Vec<SocketAddr>, io::ErrorKind>;

/// No thread is left to look a name up.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many host names are being looked up and not answered")]
pub(crate) struct TooMany;

/// Lookups under way. A clone shares them.
#[derive(Clone)]
pub(crate) struct Lookups {
    ask: Arc<Ask>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The latest lookup of each name that is being looked up.
    running: HashMap<String, Running>,
    /// Threads at work, those included that nobody waits for.
    threads: usize,
    /// The threads among them that look up strangers.
    strangers: usize,
    /// Names that were answered for.
    known: BTreeSet<String>,
    begun: u64,
}

struct Running {
    number: u64,
    since: Instant,
    answer: watch::Receiver<Option<Answer>>,
}

/// A thread at work; ends with it, also where the system's lookup panics.
struct Thread {
    lookups: Lookups,
    name: String,
    number: u64,
    is_stranger: bool,
}

/// Those of the process: clients of different addresses may have the host in common.
pub(crate) static SYSTEM: LazyLock<Lookups> =
    // The port is set by who connects.
    LazyLock::new(|| Lookups::new(|name| Ok((name, 0).to_socket_addrs()?.collect())));

impl Lookups {
    fn new(ask: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), state: Arc::default() }
    }

    /// The addresses of `name`. Whoever drops this gives up waiting; the lookup goes on.
    pub(crate) async fn of(&self, name: String) -> io::Result<Vec<SocketAddr>> {
        let mut answer = self.join(name)?;
        // Nobody tells any more: the lookup panicked, or the runtime ends.
        let told = answer.wait_for(Option::is_some).await.map_err(io::Error::other)?;
        told.clone().unwrap_or(Err(io::ErrorKind::Other)).map_err(io::Error::from)
    }

    fn join(&self, name: String) -> io::Result<watch::Receiver<Option<Answer>>> {
        let mut state = self.state();
        if let Some(running) = state.running.get(&name)
            && running.since.elapsed() < FRESH
        {
            return Ok(running.answer.clone());
        }
        let is_stranger = !state.known.contains(&name);
        if state.threads >= MOST || (is_stranger && state.strangers >= MOST_OF_STRANGERS) {
            return Err(io::Error::other(TooMany));
        }
        state.threads += 1;
        state.strangers += usize::from(is_stranger);
        state.begun += 1;
        let (tell, answer) = watch::channel(None);
        let running = Running { number: state.begun, since: Instant::now(), answer: answer.clone() };
        let thread = Thread { lookups: self.clone(), name: name.clone(), number: state.begun, is_stranger };
        state.running.insert(name, running);
        drop(state);
        tokio::task::spawn_blocking(move || {
            let found = (thread.lookups.ask)(&thread.name).map_err(|error| error.kind());
            if found.is_ok() {
                thread.lookups.state().know(thread.name.clone());
            }
            // Taken out first: whoever comes later wants an answer of its own time.
            drop(thread);
            tell.send_replace(Some(found));
        });
        Ok(answer)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn know(&mut self, name: String) {
        if self.known.len() >= REMEMBERED {
            // Whichever: one that is in use is known again with its next answer.
            self.known.pop_first();
        }
        self.known.insert(name);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let mut state = self.lookups.state();
        state.threads -= 1;
        state.strangers -= usize::from(self.is_stranger);
        if state.running.get(&self.name).is_some_and(|latest| latest.number == self.number) {
            state.running.remove(&self.name);
        }
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

    /// The same, when each of them has joined: a question begins with its first poll.
    async fn asking_by_now(
        lookups: &Lookups,
        name: &str,
        count: usize,
    ) -> Vec<tokio::task::JoinHandle<io::Result<usize>>> {
        let begun = Arc::new(AtomicUsize::new(0));
        let ask = |_| {
            let (lookups, name, begun) = (lookups.clone(), name.to_owned(), Arc::clone(&begun));
            tokio::spawn(async move {
                begun.fetch_add(1, Ordering::SeqCst);
                lookups.of(name).await.map(|found| found.len())
            })
        };
        let waiting = (0..count).map(ask).collect();
        until(|| begun.load(Ordering::SeqCst) == count).await;
        waiting
    }

    #[tokio::test]
    async fn a_name_that_hangs_takes_one_thread_however_many_ask_for_it_and_delays_no_other() {
        let servers = Servers::default();
        let _freed = Freed(&servers);
        let lookups = servers.lookups();
        // Far more than there are threads.
        let waiting = asking_by_now(&lookups, "hung", 2_000).await;
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
        lookups.of("in-use".to_owned()).await.unwrap();
        let waiting = asking(&lookups, (0..MOST_OF_STRANGERS).map(|index| format!("hung{index}")));
        until(|| servers.asked() == MOST_OF_STRANGERS + 1).await;
        let refused = lookups.of("one-more".to_owned()).await.unwrap_err();
        assert!(refused.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooMany>), "{refused}");
        assert_eq!(lookups.of("in-use".to_owned()).await.unwrap().len(), 1, "names in use have places of their own");
        assert_eq!(tokio::task::spawn_blocking(|| 7).await.unwrap(), 7);
        servers.set_free();
        for waiting in waiting {
            assert_eq!(waiting.await.unwrap().unwrap(), 1);
        }
        assert!(lookups.of("one-more".to_owned()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_never_ends_does_not_take_its_name_along() {
        let servers = Servers::default();
        let _freed = Freed(&servers);
        let lookups = servers.lookups();
        let first = asking_by_now(&lookups, "hung", 1).await;
        until(|| servers.asked() == 1).await;
        tokio::time::advance(FRESH).await;
        let later = asking_by_now(&lookups, "hung", 10).await;
        until(|| servers.asked() == 2).await;
        assert_eq!(lookups.state().threads, 2, "both are counted");
        servers.set_free();
        for asked in first.into_iter().chain(later) {
            assert_eq!(asked.await.unwrap().unwrap(), 1);
        }
        until(|| lookups.state().threads == 0).await;
        assert!(lookups.state().running.is_empty());
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
        let state = lookups.state();
        assert!(state.running.is_empty() && state.threads == 0 && state.strangers == 0);
        assert!(state.known.contains("known") && state.known.len() == 1);
    }
}
