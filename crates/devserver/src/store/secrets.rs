//! Secrets of one vault, each with a version that only grows.
//!
//! Readers see one transaction: an answer is the vault at one moment, never a mixture of two.

use std::collections::BTreeMap;

use jiff::Timestamp;
use redb::ReadableTable;

use super::{SECRETS, Secret, Store, StoreError, decode, encode};
use crate::secret_text::SecretText;

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// No secret of that name.
    Create,
    /// A secret of that name.
    Update,
    /// Either.
    Upsert,
}

impl Store {
    /// The secrets of a vault by name, without deleted ones.
    pub fn secrets(&self, vault_id: &str) -> Result<BTreeMap<String, Secret>, StoreError> {
        self.read(|transaction| {
            let table = transaction.open_table(SECRETS)?;
            let mut secrets = BTreeMap::new();
            for row in table.range((vault_id, "")..)? {
                let (key, bytes) = row?;
                let (owner, name) = key.value();
                if owner != vault_id {
                    break;
                }
                let secret: Secret = decode("secrets", bytes.value())?;
                if secret.value.is_some() {
                    secrets.insert(name.to_owned(), secret);
                }
            }
            Ok(secrets)
        })
    }

    /// Writes all of `values` or none, and returns the version each name has now.
    pub fn write_secrets(
        &self,
        vault_id: &str,
        values: &BTreeMap<String, SecretText>,
        mode: WriteMode,
        now: Timestamp,
    ) -> Result<BTreeMap<String, i32>, StoreError> {
        self.write(|transaction| {
            let mut table = transaction.open_table(SECRETS)?;
            let mut versions = BTreeMap::new();
            for (name, value) in values {
                let previous = lookup(&table, vault_id, name)?;
                let present = previous.as_ref().is_some_and(|secret| secret.value.is_some());
                match mode {
                    WriteMode::Create if present => return Err(StoreError::Exists),
                    WriteMode::Update if !present => return Err(StoreError::Missing),
                    _ => {}
                }
                let version = next_version(previous.as_ref())?;
                let secret = Secret { version, value: Some(value.clone()), updated_at: now };
                table.insert((vault_id, name.as_str()), encode("secrets", &secret)?.as_slice())?;
                versions.insert(name.clone(), version);
            }
            Ok(versions)
        })
    }

    /// Deletes a secret; [`StoreError::Missing`] when there is none.
    pub fn delete_secret(&self, vault_id: &str, name: &str, now: Timestamp) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut table = transaction.open_table(SECRETS)?;
            let previous = lookup(&table, vault_id, name)?;
            if previous.as_ref().is_none_or(|secret| secret.value.is_none()) {
                return Err(StoreError::Missing);
            }
            let secret = Secret { version: next_version(previous.as_ref())?, value: None, updated_at: now };
            table.insert((vault_id, name), encode("secrets", &secret)?.as_slice())?;
            Ok(())
        })
    }
}

fn lookup(
    table: &impl ReadableTable<(&'static str, &'static str), &'static [u8]>,
    vault_id: &str,
    name: &str,
) -> Result<Option<Secret>, StoreError> {
    table.get((vault_id, name))?.map(|bytes| decode("secrets", bytes.value())).transpose()
}

/// The wire has 32 bits for a version, with a sign.
fn next_version(previous: Option<&Secret>) -> Result<i32, StoreError> {
    previous.map_or(0, |secret| secret.version).checked_add(1).ok_or(StoreError::VersionsExhausted)
}
