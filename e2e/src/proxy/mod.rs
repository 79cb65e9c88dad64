//! A proxy between an operator and its API server: plain HTTP on loopback in, TLS out, the bearer passed on as it comes,
//! answers streamed as they come; and rules that make chosen calls go wrong.
//!
//! It never resets a connection and never answers in the server's name but where a rule says so. A call that is held back
//! goes on when its rule goes, as a packet does that is sent again; unless its caller has given up, which drops it.

mod forward;
mod rule;

use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use self::forward::Forwarder;
use self::rule::Rules;
pub use self::rule::{Calls, Fault};

/// A proxy that runs. Dropping it closes every connection.
pub struct Proxy {
    url: String,
    rules: watch::Sender<Rules>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts one before `server`, whose certificate is issued by `ca_pem`.
    pub async fn start(server: &str, ca_pem: &str) -> Self {
        let ca = reqwest::Certificate::from_pem(ca_pem.as_bytes()).unwrap();
        Self::before(server, reqwest::Client::builder().tls_certs_only([ca])).await
    }

    async fn before(server: &str, client: reqwest::ClientBuilder) -> Self {
        // Fails only if there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = client.no_proxy().http1_only().redirect(reqwest::redirect::Policy::none()).no_gzip();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (rules, held) = watch::channel(Rules::new());
        let forwarder = Arc::new(Forwarder::new(server, client.build().unwrap(), held));
        Self { url, rules, task: tokio::spawn(serve(listener, forwarder)) }
    }

    /// Where to send what is meant for the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on, this happens to these calls, after what rules before it say.
    pub fn spoil(&self, calls: Calls, fault: Fault) {
        self.rules.send_modify(|rules| rules.push((calls, fault)));
    }

    /// From now on nothing goes wrong, and what was held back goes on.
    pub fn heal(&self) {
        self.rules.send_modify(Rules::clear);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, forwarder: Arc<Forwarder>) {
    // Dropped with this task, and every connection with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { continue };
                let _ = socket.set_nodelay(true);
                let forwarder = Arc::clone(&forwarder);
                let service = service_fn(move |request| {
                    let forwarder = Arc::clone(&forwarder);
                    async move { forwarder.forward(request).await }
                });
                connections.spawn(async move {
                    // Whoever breaks a connection off knows why.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

#[cfg(test)]
mod tests;
