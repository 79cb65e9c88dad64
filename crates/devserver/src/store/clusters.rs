//! The clusters whose JWTs may be exchanged for a bearer.

use super::{CLUSTERS, Cluster, Store, StoreError, all_records, decode, encode};

impl Store {
    /// Registers a cluster, replacing an earlier registration of the same identifier: keys and issuers do change.
    pub fn register_cluster(&self, cluster: &Cluster) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut clusters = transaction.open_table(CLUSTERS)?;
            clusters.insert(cluster.id.as_str(), encode("clusters", cluster)?.as_slice())?;
            Ok(())
        })
    }

    /// The cluster with this identifier.
    pub fn cluster(&self, id: &str) -> Result<Option<Cluster>, StoreError> {
        self.read(|transaction| {
            let clusters = transaction.open_table(CLUSTERS)?;
            clusters.get(id)?.map(|bytes| decode("clusters", bytes.value())).transpose()
        })
    }

    /// Every cluster, by identifier.
    pub fn clusters(&self) -> Result<Vec<Cluster>, StoreError> {
        self.read(|transaction| all_records("clusters", &transaction.open_table(CLUSTERS)?))
    }

    /// Forgets a cluster. Bearers that it was given live on until they expire.
    pub fn remove_cluster(&self, id: &str) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut clusters = transaction.open_table(CLUSTERS)?;
            match clusters.remove(id)? {
                Some(_) => Ok(()),
                None => Err(StoreError::Missing),
            }
        })
    }
}
