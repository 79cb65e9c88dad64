//! Sockets: accepting, TLS, HTTP/1.1, and cutting a connection where a fault wants it cut.

mod accept;
mod cut;
mod outgoing;

pub(crate) use accept::{Handler, serve};
pub(crate) use cut::Cut;
pub(crate) use outgoing::{Aborted, HalfEnd, Outgoing};
