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

    /// Drops what no pass reads, and the room that lists were given to grow: a list of one takes the room of four when it
    /// was read from an answer.
    fn slim(&mut self);
}

impl Keep for FerrVaultSecret {
    fn references(&self) -> Vec<(Relation, &str)> {
        vec![(Relation::Connection, self.spec.connection_ref.name.as_str()), (Relation::Target, self.target_name())]
    }

    fn slim(&mut self) {
        slim_custom(&mut self.metadata);
        self.spec.rollout_restart.shrink_to_fit();
        self.spec.transforms.shrink_to_fit();
        if let Some(selector) = &mut self.spec.selector {
            selector.names.shrink_to_fit();
        }
        if let Some(status) = &mut self.status {
            status.conditions.shrink_to_fit();
            status.rollouts.shrink_to_fit();
            status.synced_keys.shrink_to_fit();
            status.missing_keys.shrink_to_fit();
        }
    }
}

impl Keep for FerrVaultConnection {
    fn references(&self) -> Vec<(Relation, &str)> {
        let token = self.spec.token_secret_ref.as_ref();
        token.map(|token| (Relation::Token, token.name.as_str())).into_iter().collect()
    }

    fn slim(&mut self) {
        slim_custom(&mut self.metadata);
        if let Some(status) = &mut self.status {
            status.conditions.shrink_to_fit();
        }
    }
}
