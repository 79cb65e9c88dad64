//! Operators that are broken on purpose: a checker that cannot fail is worth nothing, so each of these has to be caught.
//!
//! None of them is a switch in the product. The real controllers run unmodified, and a man in the middle undoes one rule
//! on the way to the API server or to FerrVault.

mod between;
mod memory;
mod requests;
mod sights;
mod upstream;

use std::sync::Arc;

use ferrvault_operator::ferrvault::FerrVault;

use self::between::Lie;
use crate::upstream::Upstream;

/// A rule that is left out.
#[derive(Clone, Copy)]
pub struct Variant {
    /// What it is called.
    pub name: &'static str,
    /// What is left out.
    pub about: &'static str,
    /// Scenarios in which it should be seen; they are tried first.
    pub seen_in: &'static [&'static str],
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    /// Between the operator and its API server.
    Api(fn() -> Arc<dyn Lie>),
    /// Between the operator and FerrVault.
    Vault(fn(Upstream) -> Arc<dyn FerrVault>),
}

impl std::fmt::Debug for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Variant {
    const fn api(
        name: &'static str,
        about: &'static str,
        seen_in: &'static [&'static str],
        lie: fn() -> Arc<dyn Lie>,
    ) -> Self {
        Self { name, about, seen_in, how: How::Api(lie) }
    }

    const fn vault(
        name: &'static str,
        about: &'static str,
        seen_in: &'static [&'static str],
        lie: fn(Upstream) -> Arc<dyn FerrVault>,
    ) -> Self {
        Self { name, about, seen_in, how: How::Vault(lie) }
    }

    /// What a process reaches the API server and FerrVault through.
    pub(crate) fn between(self, client: kube::Client, upstream: Upstream) -> (kube::Client, Arc<dyn FerrVault>) {
        match self.how {
            How::Api(lie) => (between::between(client, lie()), Arc::new(upstream)),
            How::Vault(lie) => (client, lie(upstream)),
        }
    }
}

/// Every broken operator there is.
pub fn all() -> Vec<Variant> {
    [requests::ALL, memory::ALL, sights::ALL, upstream::ALL].concat()
}
