//! The accept loop: one task per connection, all of them ended with the server.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::cut::CuttableStream;
use super::{Aborted, Cut, Outgoing};

/// A client that has not finished its TLS handshake by then is dropped: 10 s, what a client gives a whole call.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// Longest silence between two requests: 2 min, more than the 90 s for which clients usually keep an idle connection. So
/// it is the client that closes, and no request meets a connection that the server is just closing.
const IDLE_LIMIT: Duration = Duration::from_mins(2);

/// How long calls may go on when the server stops: long enough for one that waits for the disk, and stalled ones must
/// not hold up the stop.
const GRACE: Duration = Duration::from_secs(2);

/// Pause after a failed accept. It fails when descriptors have run out, and trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers requests; the error ends the connection without an answer.
pub(crate) trait Handler: Send + Sync + 'static {
    fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        cut: Cut,
    ) -> impl Future<Output = Result<Response<Outgoing>, Aborted>> + Send;
}

/// Serves until `stop` says true or its sender is gone. Dropping the future ends every connection at once.
pub(crate) async fn serve<H: Handler>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, tls.clone(), Arc::clone(&handler), stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    // What is left after the grace is aborted when the set is dropped.
    let _ = tokio::time::timeout(GRACE, ended).await;
}

/// Resolves when the server stops. (The guard that `wait_for` returns must not live across an await.)
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|&stop| stop).await;
}

async fn connection<H: Handler>(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    stop: watch::Receiver<bool>,
) {
    // Small answers must not wait for the acknowledgement of the ones before.
    let _ = stream.set_nodelay(true);
    let cut = Cut::default();
    let stream = CuttableStream::new(stream, cut.clone());
    match tls {
        None => speak_http(stream, cut, handler, stop).await,
        Some(tls) => match tokio::time::timeout(HANDSHAKE_DEADLINE, tls.accept(stream)).await {
            Ok(Ok(stream)) => speak_http(stream, cut, handler, stop).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        },
    }
}

async fn speak_http<S, H>(stream: S, cut: Cut, handler: Arc<H>, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let service = service_fn(move |request| Arc::clone(&handler).handle(request, cut.clone()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
