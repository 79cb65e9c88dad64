//! The body of an answer: whole, or its first half with a bad end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use super::Cut;

/// The answer ends here because a fault wants it to.
#[derive(Debug, thiserror::Error)]
#[error("cut by a fault rule")]
pub(crate) struct Aborted;

/// How a half body ends.
#[derive(Clone, Debug)]
pub(crate) enum HalfEnd {
    /// The connection is reset.
    Reset(Cut),
    /// Nothing more comes.
    Stall,
}

/// A body.
pub(crate) enum Outgoing {
    Whole(Full<Bytes>),
    Half {
        /// What is sent; `None` once it has been.
        first: Option<Bytes>,
        /// What the header promises.
        promised: u64,
        end: HalfEnd,
        /// Whether the connection had its turn to send the first half off.
        flushed: bool,
    },
}

impl Outgoing {
    pub(crate) fn whole(body: Bytes) -> Self {
        Self::Whole(Full::new(body))
    }

    /// The first half of `body`, at least one byte; the header still promises all of it.
    pub(crate) fn half(body: &Bytes, end: HalfEnd) -> Self {
        let first = body.slice(..body.len().div_ceil(2));
        Self::Half { first: Some(first), promised: body.len() as u64, end, flushed: false }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never: Infallible| match never {}),
            Self::Half { first, end, flushed, .. } => {
                if let Some(first) = first.take() {
                    return Poll::Ready(Some(Ok(Frame::data(first))));
                }
                match end {
                    HalfEnd::Stall => Poll::Pending,
                    // The connection flushes whenever its body has nothing for it. Without this turn the error would
                    // come before the first half has left.
                    HalfEnd::Reset(_) if !*flushed => {
                        *flushed = true;
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                    HalfEnd::Reset(cut) => {
                        cut.cut();
                        Poll::Ready(Some(Err(Aborted)))
                    }
                }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Half { promised, .. } => SizeHint::with_exact(*promised),
        }
    }
}
