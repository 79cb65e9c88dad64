//! Watches, stores, the operator key and the election against an API server in memory, under paused time, with every
//! fault it knows. What is asserted holds for all of them: nothing stays unseen, nobody leads beside another.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed, and clippy only knows the functions marked as tests"
)]

mod election;
mod operator_key;
mod store;
