//! The name of one object in the cluster, as queue, caches and logs know it.
//!
//! Cheap to clone, because one key sits in several maps at once. It names, and never holds anything of the object.

use std::fmt;
use std::sync::Arc;

/// Namespace and name of one resource, connection, Secret or workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace it is in.
    pub namespace: Arc<str>,
    /// Its name there.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of `name` in `namespace`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of another object in the same namespace.
    #[must_use]
    pub fn beside(&self, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: Arc::clone(&self.namespace), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_namespace_slash_name() {
        assert_eq!(ObjectKey::new("shop", "db").to_string(), "shop/db");
    }

    #[test]
    fn sorts_by_namespace_first() {
        let mut keys = [ObjectKey::new("b", "a"), ObjectKey::new("a", "z"), ObjectKey::new("a", "b")];
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["a/b", "a/z", "b/a"]);
    }

    #[test]
    fn beside_stays_in_the_namespace() {
        assert_eq!(ObjectKey::new("shop", "db").beside("token"), ObjectKey::new("shop", "token"));
    }
}
