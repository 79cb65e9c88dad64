//! The numbers of a running operator, against what happened: the whole, unmodified controllers between an API server in
//! memory and a scripted FerrVault, under paused time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed, and counts are whole numbers"
)]
#![allow(
    clippy::pedantic,
    reason = "the room is shared with the tests of the controllers, whose tables name things as they come"
)]

#[allow(dead_code, reason = "shared with the tests of the controllers, which use the rest of it")]
#[path = "../controllers/invariants.rs"]
mod invariants;
mod objects;
mod process;
mod propagation;
#[allow(dead_code, reason = "shared with the tests of the controllers, which use the rest of it")]
#[path = "../controllers/room.rs"]
mod room;
#[allow(dead_code, reason = "shared with the tests of the controllers, which use the rest of it")]
#[path = "../controllers/script.rs"]
mod script;
