//! What the store has to know of a kind: whom its objects refer to, and how they are made small.

use ferrvault_api::connection::FerrVaultConnection;
use ferrvault_api::secret::FerrVaultSecret;
use kube::Resource;

use crate::cluster::watch::slim_custom;

/// How one object refers to another of the same namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// A resource to the connection it reads through.
    Connection,
    /// A resource to the Secret it keeps.
    Target,
    /// A connection to the Secret that holds its token.
    Token,
}

/// A kind of object that is kept.
pub trait Keep: Resource<DynamicType = ()> + Send + Sync + 'static {
    /// Every reference to another object by name. An empty name refers to nothing.
    fn references(&self) -> Vec<(Relation, &str)>;

    /// Drops what no pass reads.
    fn slim(&mut self) {
        slim_custom(self.meta_mut());
    }
}

impl Keep for FerrVaultSecret {
    fn references(&self) -> Vec<(Relation, &str)> {
        vec![(Relation::Connection, self.spec.connection_ref.name.as_str()), (Relation::Target, self.target_name())]
    }
}

impl Keep for FerrVaultConnection {
    fn references(&self) -> Vec<(Relation, &str)> {
        let token = self.spec.token_secret_ref.as_ref();
        token.map(|token| (Relation::Token, token.name.as_str())).into_iter().collect()
    }
}
