//! The few doors through which an end-to-end test stops the process from within: hold its passes or its queues, block its
//! runtime, set its clock, make its patience a fraction of what it is.
//!
//! Under the feature `test-hooks` alone, which no build that ships has. Without it every function here is the identity,
//! and nothing of them is left in the program, which a test looks at. With it, the program that the tests have for
//! themselves arms the doors, which the one that ships never does, and the folder that `FERRVAULT_TEST_HOOKS` names is
//! looked at ten times a second: a file in it is a wish, and the wish ends when the file goes.

// What ships is optimised: so not even a build with every feature can ship with doors.
#[cfg(all(feature = "test-hooks", not(debug_assertions)))]
compile_error!("the feature test-hooks is for debug builds alone: what ships must have no doors for tests");

#[cfg(feature = "test-hooks")]
mod doors;
#[cfg(not(feature = "test-hooks"))]
mod walls;

#[cfg(feature = "test-hooks")]
pub use self::doors::arm;
#[cfg(feature = "test-hooks")]
pub(crate) use self::doors::{held, held_queue, patience, start, stretched, wall};
#[cfg(not(feature = "test-hooks"))]
pub(crate) use self::walls::{held, held_queue, patience, start, stretched, wall};
