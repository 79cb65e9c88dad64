//! The program itself: the verbs as a person types them, and what a killed server leaves behind.

// The configuration allows these in test functions; what stands beside them here runs in tests only, too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod killed;
mod program;
mod secrecy;
mod verbs;
