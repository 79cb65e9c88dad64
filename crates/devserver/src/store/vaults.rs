//! Vaults: created, found by identifier or by name, deleted with everything in them.

use redb::ReadableTable as _;

use super::{SECRETS, Store, StoreError, VAULT_IDS, VAULTS, Vault, all_records, decode, encode};

impl Store {
    /// Creates a vault; [`StoreError::Exists`] when its name is taken in its project.
    pub fn create_vault(&self, vault: &Vault) -> Result<(), StoreError> {
        self.write(|transaction| {
            let place = (vault.organization.as_str(), vault.project.as_str(), vault.name.as_str());
            let mut ids = transaction.open_table(VAULT_IDS)?;
            if ids.get(place)?.is_some() {
                return Err(StoreError::Exists);
            }
            ids.insert(place, vault.id.as_str())?;
            let mut vaults = transaction.open_table(VAULTS)?;
            vaults.insert(vault.id.as_str(), encode("vaults", vault)?.as_slice())?;
            Ok(())
        })
    }

    /// The vault with this identifier.
    pub fn vault(&self, id: &str) -> Result<Option<Vault>, StoreError> {
        self.read(|transaction| {
            let vaults = transaction.open_table(VAULTS)?;
            vaults.get(id)?.map(|bytes| decode("vaults", bytes.value())).transpose()
        })
    }

    /// The vault with this name in this project.
    pub fn vault_named(&self, organization: &str, project: &str, name: &str) -> Result<Option<Vault>, StoreError> {
        self.read(|transaction| {
            let ids = transaction.open_table(VAULT_IDS)?;
            let Some(id) = ids.get((organization, project, name))? else {
                return Ok(None);
            };
            let vaults = transaction.open_table(VAULTS)?;
            vaults.get(id.value())?.map(|bytes| decode("vaults", bytes.value())).transpose()
        })
    }

    /// Every vault, sorted by organization, project and name.
    pub fn vaults(&self) -> Result<Vec<Vault>, StoreError> {
        let mut vaults: Vec<Vault> =
            self.read(|transaction| all_records("vaults", &transaction.open_table(VAULTS)?))?;
        vaults.sort_by(|a, b| (&a.organization, &a.project, &a.name).cmp(&(&b.organization, &b.project, &b.name)));
        Ok(vaults)
    }

    /// Deletes a vault and its secrets. Tokens bound to it stay: what they ask for is then not found.
    pub fn delete_vault(&self, id: &str) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut vaults = transaction.open_table(VAULTS)?;
            let vault: Vault = match vaults.remove(id)? {
                Some(bytes) => decode("vaults", bytes.value())?,
                None => return Err(StoreError::Missing),
            };
            let mut ids = transaction.open_table(VAULT_IDS)?;
            ids.remove((vault.organization.as_str(), vault.project.as_str(), vault.name.as_str()))?;
            let mut secrets = transaction.open_table(SECRETS)?;
            secrets.retain(|(vault_id, _), _| vault_id != id)?;
            Ok(())
        })
    }
}
