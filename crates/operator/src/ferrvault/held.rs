//! What a pass holds of FerrVault's answer: the room in memory that the values take, in whatever form they are by then.
//!
//! Bound to the task of the pass and not to the answer, whose values are moved, transformed, encoded and sent. The end of the
//! sync stage leaves nothing of them, nor does the end of the pass, however it comes; a restart that hangs holds no room.

use std::cell::RefCell;
use std::sync::Arc;

use ferrvault_vault::Claim;

tokio::task_local! {
    static PASS: Pass;
}

struct Pass {
    namespace: Arc<str>,
    /// A second answer takes the place of the first, which was dropped by then.
    claim: RefCell<Option<Claim>>,
}

/// Runs a pass over an object of `namespace`; what it claims is given back when it ends or is cut off.
pub(crate) async fn until_the_end<F: Future>(namespace: Arc<str>, pass: F) -> F::Output {
    PASS.scope(Pass { namespace, claim: RefCell::default() }, pass).await
}

/// The namespace that claims are counted for. Outside of a pass it has no name, and shares with all that have none.
pub(super) fn namespace() -> Arc<str> {
    PASS.try_with(|pass| Arc::clone(&pass.namespace)).unwrap_or_else(|_| Arc::from(""))
}

/// Gives back what the pass has claimed: the stage that held values has returned.
pub(crate) fn nothing_is_left() {
    keep(None);
}

/// Keeps `claim` until nothing is left of the answer. Outside of a pass it is given back at once.
pub(super) fn keep(claim: Option<Claim>) {
    let _ = PASS.try_with(|pass| pass.claim.replace(claim));
}
