//! The simulation held against a real API server: the same scenario is played on both, and the objects have to be the same
//! after each stage of it.
//!
//! The simulation goes first and says what there has to be whenever its script waits. The real play goes on to the next
//! stage when it has come to the same picture, however long that takes on its machine: what is compared is what comes
//! about and how often, never how soon. Ids, times and versions have names in a picture, because they differ by nature.

mod hands;
mod picture;
mod play;
mod predict;
mod restarts;

pub use picture::{Difference, Picture};
pub use play::{Ground, NotAsSimulated, play};
pub(crate) use predict::URL;
pub use predict::{Stage, predict};
