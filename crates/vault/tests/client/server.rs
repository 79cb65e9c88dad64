//! A scripted HTTP server: one reply per connection, written as raw bytes, and every request kept as raw bytes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What happens to one connection once its request has been read.
#[derive(Clone)]
pub(crate) enum Reply {
    /// These bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// These bytes, then nothing, with the connection open.
    Stall(Vec<u8>),
    /// These bytes, then one more space every few milliseconds without end.
    Trickle(Vec<u8>),
    /// These bytes, then the connection is reset.
    Reset(Vec<u8>),
}

/// Runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Replies in order; the last reply is used for every further connection.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        let task = tokio::spawn(async move {
            // Dropped with the task, and the connections with it.
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
                connections.spawn(serve(stream, reply.unwrap(), Arc::clone(&kept)));
            }
        });
        Self { address, requests, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|bytes| String::from_utf8(bytes.clone()).unwrap()).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, reply: Reply, kept: Arc<Mutex<Vec<Vec<u8>>>>) {
    let Some(request) = read_request(&mut stream).await else { return };
    kept.lock().unwrap().push(request);
    // The client may hang up in the middle of a reply; that is its right and shows in its own result.
    match reply {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            std::future::pending::<()>().await;
        }
        Reply::Trickle(bytes) => {
            let _ = stream.write_all(&bytes).await;
            while stream.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Reply::Reset(bytes) => {
            let _ = stream.write_all(&bytes).await;
            stream.set_zero_linger().unwrap();
        }
    }
}

/// The bytes of one request, body included. `None` when the other side hangs up before its end.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    loop {
        if let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = str::from_utf8(&request[..end]).unwrap().to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if request.len() == end + 4 + length.map_or(0, |length| length.parse::<usize>().unwrap()) {
                return Some(request);
            }
        }
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
}

/// A whole response. `headers` are lines that end in CRLF.
pub(crate) fn response(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let head =
        format!("HTTP/1.1 {status} Text\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    Reply::Bytes([head.as_bytes(), body].concat())
}

/// A whole response with JSON.
pub(crate) fn json(status: u16, body: impl AsRef<[u8]>) -> Reply {
    response(status, "content-type: application/json\r\n", body)
}
