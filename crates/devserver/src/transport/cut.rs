//! A TCP stream that can be cut from above: whatever lies on it (TLS, HTTP) gets no chance to say goodbye.
//!
//! A cut connection ends with a TCP reset, not with an orderly end, because that is what a crashed peer or a
//! dropped NAT entry looks like to a client.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Cuts the connection that it was made with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut(Arc<AtomicBool>);

impl Cut {
    /// From now on nothing more is read or written, and closing resets.
    pub(crate) fn cut(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_cut(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The stream.
pub(super) struct CuttableStream {
    stream: TcpStream,
    cut: Cut,
}

impl CuttableStream {
    pub(super) fn new(stream: TcpStream, cut: Cut) -> Self {
        Self { stream, cut }
    }

    fn refuse_if_cut(&self) -> io::Result<()> {
        if self.cut.is_cut() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl Drop for CuttableStream {
    fn drop(&mut self) {
        if self.cut.is_cut() {
            // Closing with a linger time of zero sends RST. If it cannot be set, the peer sees an early end instead.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.refuse_if_cut()?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.refuse_if_cut()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.refuse_if_cut()?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.refuse_if_cut()?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
