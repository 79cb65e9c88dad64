//! Operators that are broken on purpose, to see whether the checks notice.

use std::sync::Arc;

use ferrvault_operator::ferrvault::FerrVault;

use crate::upstream::Upstream;

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {}

impl Variant {
    pub(crate) fn between(self, _client: kube::Client, _upstream: Upstream) -> (kube::Client, Arc<dyn FerrVault>) {
        match self {}
    }
}
