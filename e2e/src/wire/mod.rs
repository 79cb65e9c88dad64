//! The wire between an operator and its API server: a TCP proxy that carries bytes as they come, and resets, closes or stalls
//! a connection after exactly as many of them as somebody chose or a seed says.
//!
//! It never looks at what it carries (TLS goes through unopened) and never changes it. What it holds when an operator dies
//! still arrives: a late write, as networks deliver them.

mod carry;
mod fate;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

pub use fate::{End, Fate, Way};

/// What connections meet with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    /// Each gets the fate that is drawn for it.
    Open,
    /// There is no way through.
    Cut,
}

/// The weather, and which one it is: a connection lives no longer than the weather that it began in.
type Sky = (u64, Weather);

type Drawing = Box<dyn FnMut() -> Option<Fate> + Send>;

/// How many connections there were, and how they were ended on purpose.
#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    resets: AtomicUsize,
    closes: AtomicUsize,
    stalls: AtomicUsize,
}

/// A wire. Dropping it resets every connection.
pub struct Wire {
    url: String,
    sky: watch::Sender<Sky>,
    drawing: Arc<Mutex<Drawing>>,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

impl Wire {
    /// Lays one to the server at this URL of 127.0.0.1. It is calm.
    pub async fn to(server: &str) -> Self {
        let (scheme, address) = server.split_once("://").expect("a URL");
        let server: SocketAddr = address.parse().expect("an address of this machine");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (sky, seen) = watch::channel((0, Weather::Open));
        let drawing: Arc<Mutex<Drawing>> = Arc::new(Mutex::new(Box::new(|| None)));
        let counts = Arc::<Counts>::default();
        let task = tokio::spawn(accept(listener, server, seen, Arc::clone(&drawing), Arc::clone(&counts)));
        Self { url, sky, drawing, counts, task }
    }

    /// Where clients go, under the scheme of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on each connection gets a fate from `draw`; those that are there are reset.
    pub fn choose(&self, draw: impl FnMut() -> Option<Fate> + Send + 'static) {
        *self.drawing.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(draw);
        self.change(Weather::Open);
    }

    /// From now on most connections do not last, by this seed; those that are there are reset.
    pub fn rough(&self, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        self.choose(move || Fate::draw(&mut random));
    }

    /// From now on connections last. Those that are there are reset: some of them hang.
    pub fn calm(&self) {
        self.choose(|| None);
    }

    /// Lets nothing through any more until the wire is calm or rough again.
    pub fn cut(&self) {
        self.change(Weather::Cut);
    }

    fn change(&self, weather: Weather) {
        self.sky.send_modify(|sky| *sky = (sky.0 + 1, weather));
    }

    /// How many connections were ended on purpose, those that a change of weather ended left out.
    pub fn ended(&self) -> usize {
        let Counts { resets, closes, stalls, .. } = &*self.counts;
        [resets, closes, stalls].into_iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { connections, resets, closes, stalls } = &*self.counts;
        let [connections, resets, closes, stalls] =
            [connections, resets, closes, stalls].map(|count| count.load(Ordering::Relaxed));
        write!(f, "{connections} connections, of which {resets} were reset, {closes} closed and {stalls} stalled")
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    sky: watch::Receiver<Sky>,
    drawing: Arc<Mutex<Drawing>>,
    counts: Arc<Counts>,
) {
    // Ends with this task, and every connection with it.
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let now = *sky.borrow();
        if now.1 == Weather::Cut {
            carry::reset(&client);
            continue;
        }
        counts.connections.fetch_add(1, Ordering::Relaxed);
        let fate = (drawing.lock().unwrap_or_else(PoisonError::into_inner))();
        let (counts, mut sky) = (Arc::clone(&counts), sky.clone());
        connections.spawn(async move {
            let over = async move {
                // A closed channel means that the wire is gone.
                let _ = sky.wait_for(|sky| sky.0 != now.0).await;
            };
            let met = carry::connection(client, server, fate, over).await;
            let count = match met {
                Some(End::Reset) => &counts.resets,
                Some(End::Close) => &counts.closes,
                Some(End::Stall) => &counts.stalls,
                None => return,
            };
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
}

#[cfg(test)]
mod tests;
