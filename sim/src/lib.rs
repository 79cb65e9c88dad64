//! The simulation: the real controllers, unmodified, between an API server in memory and a scripted FerrVault, under
//! virtual time and from one seed, with every fault at every call.
//!
//! A scenario ([`scenario`]) is run once without a fault, which counts its calls; then once for each fault ([`plan`]) at
//! each of them, and for pairs of faults. The invariants (`check`) are read off the objects, from outside. Outside the
//! product: nothing of it may import this.

mod act;
mod broken;
mod cast;
mod check;
mod explore;
mod faults;
mod logs;
pub mod plan;
mod process;
pub mod reality;
mod run;
pub mod scenario;
mod server;
mod story;
mod upstream;
mod world;

pub use act::{Act, Kind, SEALED};
pub use broken::{Variant, all as variants};
pub use check::{End, Invariant, Violation};
pub use explore::{Catch, Effort, Failure, Pairs, Progress, Shard, Tally, catch, pairs, singles};
pub use faults::Occasion;
pub use run::{Outcome, Setup, run};
