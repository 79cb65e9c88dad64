//! A running server: started from a configuration, stopped in good order or dropped on the spot.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::SignedDuration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::admin::Admin;
use crate::api::Service;
use crate::clock::Clock;
use crate::credential::{NoRandomness, mint_token, new_uuid};
use crate::data_dir::{Address, DataDir, FileError};
use crate::faults::Faults;
use crate::front::Front;
use crate::ledger::Ledger;
use crate::limit::RateLimiter;
use crate::secret_text::SecretText;
use crate::store::{Role, Scope, Store, StoreError, Token, TokenKind};
use crate::tls::{self, TlsError};
use crate::transport::serve;

/// Calls per minute that a service-account token has, as the service has it.
pub const DEFAULT_RATE_LIMIT: u32 = 60;

/// How long a bearer from an OIDC exchange is accepted: 15 min.
pub const DEFAULT_BEARER_LIFETIME: SignedDuration = SignedDuration::from_mins(15);

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it keeps its data.
    pub data_dir: PathBuf,
    /// Where the API listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where the admin side listens, if there shall be one; loopback only.
    pub admin: Option<SocketAddr>,
    /// Whether the API speaks TLS.
    pub tls: bool,
    /// Calls per minute and service-account token; 0 is no limit.
    pub rate_limit: u32,
    /// How long a bearer from an OIDC exchange is accepted.
    pub bearer_lifetime: SignedDuration,
    /// A path before all others, such as `/vault`; empty for none.
    pub base_path: String,
    /// Allows `listen` to be an address that other machines reach.
    pub expose: bool,
    /// Where it takes the time from.
    pub clock: Clock,
}

impl Config {
    /// Everything at its default, on a free port of loopback, with an admin side on another.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            data_dir: data_dir.into(),
            listen: any_port,
            admin: Some(any_port),
            tls: false,
            rate_limit: DEFAULT_RATE_LIMIT,
            bearer_lifetime: DEFAULT_BEARER_LIFETIME,
            base_path: String::new(),
            expose: false,
            clock: Clock::system(),
        }
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The admin side can make calls fail and asks for no token.
    #[error("the admin side listens on loopback only, not on {0}; use an address such as 127.0.0.1:8201")]
    AdminBeyondLoopback(SocketAddr),
    /// Others would reach it.
    #[error(
        "{0} can be reached by other machines, and this server keeps values unencrypted; add --expose if that is meant"
    )]
    BeyondLoopback(SocketAddr),
    /// The prefix is no path.
    #[error("the base path {0:?} has to begin with a slash, end without one and hold no '?', '#' or '%'")]
    BasePath(String),
    /// The port cannot be had.
    #[error("cannot listen on {address}: {source}; port 0 takes a free one")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Random bytes.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

/// A running server. Dropping it ends every connection at once, as if the process had been killed.
#[derive(Debug)]
pub struct Server {
    address: Address,
    admin_token: SecretText,
    data_dir: DataDir,
    faults: Arc<Faults>,
    ledger: Arc<Ledger>,
    stop: watch::Sender<bool>,
    sides: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the data directory and listens. The server is reachable when this returns.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        check(&config)?;
        let data_dir = DataDir::new(&config.data_dir);
        data_dir.create()?;
        let store = Store::open(&data_dir.store())?;
        store.purge_expired_tokens(config.clock.now())?;
        let admin_token = bootstrap(&store, &data_dir, &config.clock)?;

        let (listener, local) = bind(config.listen).await?;
        let acceptor = config.tls.then(|| tls::acceptor(&data_dir, local.ip(), config.clock.now())).transpose()?;
        let admin_listener = match config.admin {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let scheme = if config.tls { "https" } else { "http" };
        let address = Address {
            url: format!("{scheme}://{local}{}", config.base_path),
            admin_url: admin_listener.as_ref().map(|(_, local)| format!("http://{local}")),
            // Absolute, because whoever reads it may stand in another directory.
            ca: config.tls.then(|| std::path::absolute(data_dir.ca()).unwrap_or_else(|_| data_dir.ca())),
        };

        let (stop, stopped) = watch::channel(false);
        let (faults, ledger) = (Arc::new(Faults::default()), Arc::new(Ledger::default()));
        let service = Arc::new(Service {
            store,
            clock: config.clock,
            limiter: RateLimiter::new(config.rate_limit),
            bearer_lifetime: config.bearer_lifetime,
        });
        let front =
            Front { service, faults: Arc::clone(&faults), ledger: Arc::clone(&ledger), base_path: config.base_path };
        let mut sides = vec![tokio::spawn(serve(listener, acceptor, Arc::new(front), stopped.clone()))];
        if let Some((listener, _)) = admin_listener {
            let admin = Admin { faults: Arc::clone(&faults), ledger: Arc::clone(&ledger) };
            sides.push(tokio::spawn(serve(listener, None, Arc::new(admin), stopped)));
        }
        data_dir.keep_address(&address)?;
        Ok(Self { address, admin_token, data_dir, faults, ledger, stop, sides })
    }

    /// Base URL of the API.
    pub fn url(&self) -> &str {
        &self.address.url
    }

    /// Base URL of the admin side.
    pub fn admin_url(&self) -> Option<&str> {
        self.address.admin_url.as_deref()
    }

    /// Where it is, all at once.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A token that may do everything.
    pub fn admin_token(&self) -> &SecretText {
        &self.admin_token
    }

    /// The rules that make calls go wrong.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What the server was asked.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Stops in good order: no new connections, running calls get a moment to end, the file is closed.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        self.data_dir.forget_address();
        for side in std::mem::take(&mut self.sides) {
            let _ = side.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for side in &self.sides {
            side.abort();
        }
    }
}

fn check(config: &Config) -> Result<(), StartError> {
    if let Some(admin) = config.admin
        && !admin.ip().is_loopback()
    {
        return Err(StartError::AdminBeyondLoopback(admin));
    }
    if !config.listen.ip().is_loopback() && !config.expose {
        return Err(StartError::BeyondLoopback(config.listen));
    }
    let path = &config.base_path;
    if !path.is_empty() && (!path.starts_with('/') || path.ends_with('/') || path.contains(['?', '#', '%'])) {
        return Err(StartError::BasePath(path.clone()));
    }
    Ok(())
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    Ok((listener, local))
}

/// The admin token of the directory. The file is written first and the store is told at every start, so a crash between
/// the two leaves nothing that the next start does not finish.
fn bootstrap(store: &Store, data_dir: &DataDir, clock: &Clock) -> Result<SecretText, StartError> {
    let token = if let Some(token) = data_dir.admin_token()? {
        token
    } else {
        let token = mint_token(TokenKind::User)?;
        data_dir.keep_admin_token(&token)?;
        token
    };
    if store.token(token.expose())?.is_none() {
        let record = Token {
            id: new_uuid()?,
            kind: TokenKind::User,
            role: Role::Admin,
            label: "bootstrap".to_owned(),
            scope: Scope::Server,
            created_at: clock.now(),
            expires_at: None,
        };
        store.keep_token(&token, &record)?;
    }
    Ok(token)
}
