//! The operator process: watches, queue, passes, probes.
//!
//! `main` parses and hands over to `runtime`; everything else is a room of its own, reachable from tests.

pub mod clock;
pub mod entropy;
pub mod key;
pub mod queue;
