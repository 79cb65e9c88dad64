//! One door for people and CI: what `cargo xtask` does, as a library, so that the end-to-end tests start the same control
//! plane and the same processes as the demo.
//!
//! Stands outside of the product: nothing that ships imports it.

pub mod checks;
pub mod control_plane;
pub mod crds;
pub mod demo;
pub mod end_to_end;
pub mod process;
pub mod programs;
pub mod promtool;
pub mod repository;
pub mod simulation;
pub mod test_run;
