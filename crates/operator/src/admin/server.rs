//! A small HTTP server for pages that are a function of nothing but the moment.
//!
//! One request per connection, few connections, all of them short: the port is open to the whole cluster, and nobody
//! who holds on to it may use up the file descriptors that the operator needs for its real work.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What strangers may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Connections at once.
    pub(super) connections: usize,
    /// From the connection to the last byte.
    pub(super) time: Duration,
}

/// Two probes and a few scrapers need no more than one connection each. A page of ten thousand resources has 6 MB and
/// takes two seconds over a poor line; the usual scrape timeout is ten.
pub(super) const LIMITS: Limits = Limits { connections: 64, time: Duration::from_secs(10) };

/// After the system refused a connection, most likely for want of file descriptors: long enough not to spin.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// The pages of one server, by path.
#[derive(Clone, Default)]
pub(super) struct Pages(Vec<(&'static str, Page)>);

/// From the headers of the request to what is answered.
type Page = Arc<dyn Fn(&HeaderMap) -> Answer + Send + Sync>;

/// What a page says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

impl Pages {
    /// These, and `page` at `path`.
    pub(super) fn page(
        mut self,
        path: &'static str,
        page: impl Fn(&HeaderMap) -> Answer + Send + Sync + 'static,
    ) -> Self {
        self.0.push((path, Arc::new(page)));
        self
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<String> {
        let path = request.uri().path();
        let Some((_, page)) = self.0.iter().find(|(known, _)| *known == path) else {
            let known: Vec<_> = self.0.iter().map(|(known, _)| *known).collect();
            return Answer::text(StatusCode::NOT_FOUND, &format!("nothing here but {}", known.join(" "))).response();
        };
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut response = Answer::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD").response();
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        page(request.headers()).response()
    }
}

impl Answer {
    /// A line of plain text.
    pub(super) fn text(status: StatusCode, text: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{text}\n") }
    }

    fn response(self) -> Response<String> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(path, _)| path)).finish()
    }
}

/// Serves `pages` on `socket` for ever.
pub(super) async fn serve(socket: std::net::TcpListener, pages: Pages, limits: Limits) {
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "cannot serve a socket");
            return;
        }
    };
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        // The place first: who finds none waits in the kernel's queue, where he costs nothing.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = pages.clone();
                tokio::spawn(async move {
                    // Too slow or broken off: neither is worth a line in the log.
                    let _ = tokio::time::timeout(limits.time, one_request(stream, pages)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(REFUSED_PAUSE).await,
        }
    }
}

async fn one_request(stream: TcpStream, pages: Pages) -> hyper::Result<()> {
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let response = pages.answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service).await
}
