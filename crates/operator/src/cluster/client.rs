//! The clients: one for requests, one for watches, one for the watchdog, from one configuration.
//!
//! The library leaves a request unbounded (no read timeout) and replays refused ones for minutes inside the call. Both
//! are turned off here: waiting is the callers' business, who know what it costs. The limits below are the second line,
//! at the socket; the first is [`super::error::deadline`] around each call.
//!
//! Connections are not counted here. The protocol is HTTP/1.1, so a request in flight holds one connection and a pool
//! as large as the passes running side by side builds up by itself; idle ones are closed after 90 s. A limit below would
//! only let a workload whose admission is slow hold up the passes of every other (invariant I9).

use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::client::ClientBuilder;
use kube::config::{InClusterError, KubeConfigOptions, KubeconfigError};
use kube::{Client, Config};
use tower::timeout::TimeoutLayer;

use super::error::CALL_DEADLINE;
use super::watch::{LIST_PAGE_DEADLINE, SILENCE_LIMIT};

/// To open a connection: a handshake inside a cluster takes milliseconds, and half a call's deadline must remain.
const CONNECT: Duration = Duration::from_secs(5);

/// Longest wait of the watchdog for one answer: half of what a pass waits. It writes little, and has to come round to every
/// resource while a server hangs.
pub const WATCHDOG_DEADLINE: Duration = Duration::from_secs(5);

/// Silence on the socket of a watch: above the limit that the watch itself keeps, which says better what happened.
const WATCH_READ: Duration = Duration::from_secs(SILENCE_LIMIT.as_secs() + 5);

/// Where the configuration came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The pod's service account.
    InCluster,
    /// A kubeconfig, named by `KUBECONFIG` or at its default place.
    Kubeconfig,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::InCluster => "service account",
            Self::Kubeconfig => "kubeconfig",
        })
    }
}

/// No cluster to talk to.
#[derive(Debug, thiserror::Error)]
pub enum NoCluster {
    /// In a pod, but its service account cannot be used.
    #[error("the pod's service account cannot be used: {0}")]
    InCluster(#[source] InClusterError),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {}. Set KUBECONFIG to a file that names a cluster", spelled(.0))]
    Kubeconfig(#[source] KubeconfigError),
    /// The configuration was read but no client can be made of it.
    #[error("no client can be made of the {source_name}: {error}")]
    Client {
        /// Where the configuration came from.
        source_name: &'static str,
        /// Why.
        #[source]
        error: Box<kube::Error>,
    },
}

/// The library quotes a path within quotes; for the one mistake that everybody makes once, words of our own.
fn spelled(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(why, path) => format!("{} cannot be read: {why}", path.display()),
        other => other.to_string(),
    }
}

/// Finds the cluster: `KUBECONFIG` if set, else the service account inside a pod, else the default kubeconfig.
///
/// The explicit setting wins, so that a process started inside some pod can be pointed at another cluster.
pub async fn configuration() -> Result<(Config, Source), NoCluster> {
    let explicit = std::env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty());
    let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    if in_pod && !explicit {
        return Config::incluster().map(|config| (config, Source::InCluster)).map_err(NoCluster::InCluster);
    }
    Config::from_kubeconfig(&KubeConfigOptions::default())
        .await
        .map(|config| (config, Source::Kubeconfig))
        .map_err(NoCluster::Kubeconfig)
}

/// The clients of one cluster. Cheap to clone.
#[derive(Clone)]
pub struct Clients {
    /// For reads and writes: short patience.
    pub request: Client,
    /// For watches and their lists: long answers.
    pub watch: Client,
}

impl Clients {
    /// Makes both from `config`. Nothing is sent yet. Must be called inside a tokio runtime.
    pub fn new(config: Config) -> Result<Self, kube::Error> {
        let mut watch = shared(config);
        let mut request = watch.clone();
        request.read_timeout = Some(CALL_DEADLINE);
        watch.read_timeout = Some(WATCH_READ);
        Ok(Self { request: build(request, CALL_DEADLINE)?, watch: build(watch, LIST_PAGE_DEADLINE)? })
    }

    /// The watchdog's client. It shares neither connections nor worker with the others, so what holds those up does not
    /// hold it up; to be made inside the runtime that it is used in.
    pub fn for_watchdog(config: Config) -> Result<Client, kube::Error> {
        let mut config = shared(config);
        config.read_timeout = Some(WATCHDOG_DEADLINE);
        build(config, WATCHDOG_DEADLINE)
    }

    /// Both roles played by one client: for tests, whose API server sits in memory.
    pub fn of(client: Client) -> Self {
        Self { request: client.clone(), watch: client }
    }
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

fn shared(mut config: Config) -> Config {
    config.connect_timeout = Some(CONNECT);
    config.write_timeout = Some(CALL_DEADLINE);
    // Or the time that a pooled connection sat idle would count against the next answer on it.
    config.reset_reader_on_write = true;
    config.default_retry = false;
    let agent = concat!("ferrvault-operator/", env!("CARGO_PKG_VERSION"));
    config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    config
}

fn build(config: Config, headers_within: Duration) -> Result<Client, kube::Error> {
    Ok(ClientBuilder::try_from(config)?.with_layer(&TimeoutLayer::new(headers_within)).build())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;
    use crate::cluster::error::CallError;

    fn config(address: &str) -> Config {
        Config::new(format!("http://{address}").parse().unwrap())
    }

    #[test]
    fn a_kubeconfig_that_is_not_there_is_named_without_quotes() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = NoCluster::Kubeconfig(KubeconfigError::ReadConfig(missing, "/home/me/.kube/config".into()));
        let said = error.to_string();
        assert!(said.contains("used: /home/me/.kube/config cannot be read: "), "{said}");
        assert!(!said.contains(['\'', '"']), "{said}");
    }

    #[test]
    fn no_wait_is_left_to_the_library() {
        let config = shared(config("127.0.0.1:1"));
        assert_eq!(config.connect_timeout, Some(CONNECT));
        assert_eq!(config.write_timeout, Some(CALL_DEADLINE));
        assert!(config.reset_reader_on_write);
        assert!(!config.default_retry);
        assert!(WATCH_READ > SILENCE_LIMIT, "or the socket would end a watch before the watch can say why");
        assert!(SILENCE_LIMIT < Duration::from_mins(4), "load balancers drop idle connections then");
    }

    /// Reads one request and refuses it; the head of the request.
    async fn refuse_one(listener: &TcpListener) -> String {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            assert_ne!(connection.read_buf(&mut head).await.unwrap(), 0, "the head of a request was broken off");
        }
        let answer =
            b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        connection.write_all(answer).await.unwrap();
        String::from_utf8(head).unwrap()
    }

    #[tokio::test]
    async fn a_refused_request_says_who_asks_and_is_not_sent_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let clients = Clients::new(config(&listener.local_addr().unwrap().to_string())).unwrap();
        for client in [clients.request, clients.watch] {
            let asked = tokio::spawn(async move { client.apiserver_version().await });
            let head = refuse_one(&listener).await;
            assert!(head.contains(concat!("user-agent: ferrvault-operator/", env!("CARGO_PKG_VERSION"))), "{head}");
            let error = CallError::from(asked.await.unwrap().unwrap_err());
            // It came back after one answer; had it been sent again, it would wait for a second one.
            assert!(matches!(error, CallError::Refused { code: 503, .. }), "{error:?}");
        }
    }

    #[tokio::test]
    async fn a_closed_door_is_told_in_words() {
        // Bound and not listening: nobody else can get the port while this runs.
        let door = TcpSocket::new_v4().unwrap();
        door.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = door.local_addr().unwrap().to_string();
        let error = Clients::new(config(&address)).unwrap().request.apiserver_version().await.unwrap_err();
        let error = CallError::from(error);
        assert!(matches!(&error, CallError::Unreachable { message } if message.contains("refused")), "{error:?}");
    }
}
