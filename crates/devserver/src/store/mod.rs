//! The embedded store: one redb file with vaults, secrets, tokens and clusters.
//!
//! Every write is one transaction and is on disk when its function returns; nothing may be answered before that. What a
//! killed process leaves behind is therefore the state after some prefix of its answered writes, never a part of one.
//! The functions block: callers inside the runtime go through `spawn_blocking`.

mod clusters;
mod records;
mod secrets;
mod tokens;
mod vaults;

use std::path::{Path, PathBuf};

use redb::{Database, ReadTransaction, ReadableDatabase as _, ReadableTable, TableDefinition, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

pub use records::{Cluster, DEFAULT_PLACE, KeySource, Role, Scope, Secret, Token, TokenKind, Vault};
pub use secrets::WriteMode;

/// The layout of the tables below. A file of another layout is refused instead of misread.
const LAYOUT: u32 = 1;

const META: TableDefinition<'static, &str, u32> = TableDefinition::new("meta");
/// Vault id -> [`Vault`].
const VAULTS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("vaults");
/// Organization, project, name -> vault id.
const VAULT_IDS: TableDefinition<'static, (&str, &str, &str), &str> = TableDefinition::new("vault-ids");
/// Vault id, name -> [`Secret`].
const SECRETS: TableDefinition<'static, (&str, &str), &[u8]> = TableDefinition::new("secrets");
/// SHA-256 of the token -> [`Token`].
const TOKENS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("tokens");
/// Cluster id -> [`Cluster`].
const CLUSTERS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("clusters");

/// Why the store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the file.
    #[error("{path} is in use by another server; stop it, or choose another directory with --data")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by another version of the program.
    #[error("the store has layout {found}, this program reads layout {LAYOUT}; choose a new directory with --data")]
    OtherLayout {
        /// Layout of the file.
        found: u32,
    },
    /// What shall be created is there.
    #[error("it exists already")]
    Exists,
    /// What shall be changed is not there.
    #[error("it does not exist")]
    Missing,
    /// A secret was written as often as its version can count.
    #[error("the version of this secret cannot grow further")]
    VersionsExhausted,
    /// A record is not what this program writes. The cause is left out: it may quote the record.
    #[error("a record in table {table} cannot be read")]
    Record {
        /// The table.
        table: &'static str,
    },
    /// The engine failed.
    #[error("the store failed: {0}")]
    Engine(#[source] Box<redb::Error>),
}

/// The engine has an error type for each kind of call; here they are one.
macro_rules! engine_errors {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for StoreError {
            fn from(error: redb::$error) -> Self {
                Self::Engine(Box::new(error.into()))
            }
        }
    )*};
}
engine_errors!(DatabaseError, TransactionError, TableError, StorageError, CommitError);

/// The store. Holds the lock on its file as long as it lives.
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens the file at `path`, creating it when there is none and repairing it after a crash.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Database::create(path).map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { path: path.to_owned() },
            other => other.into(),
        })?;
        let store = Self { database };
        store.write(|transaction| {
            let mut meta = transaction.open_table(META)?;
            let found = meta.get("layout")?.map(|layout| layout.value());
            match found {
                None => {
                    meta.insert("layout", LAYOUT)?;
                }
                Some(LAYOUT) => {}
                Some(found) => return Err(StoreError::OtherLayout { found }),
            }
            // Opening creates: from here on a reader finds every table.
            transaction.open_table(VAULTS)?;
            transaction.open_table(VAULT_IDS)?;
            transaction.open_table(SECRETS)?;
            transaction.open_table(TOKENS)?;
            transaction.open_table(CLUSTERS)?;
            Ok(())
        })?;
        Ok(store)
    }

    /// One transaction: all of `work` or, when it fails, nothing. Durable on return, which is redb's default.
    fn write<T>(&self, work: impl FnOnce(&WriteTransaction) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let transaction = self.database.begin_write()?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    fn read<T>(&self, work: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>) -> Result<T, StoreError> {
        work(&self.database.begin_read()?)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

fn encode<T: Serialize>(table: &'static str, record: &T) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    serde_json::to_vec(record).map(Zeroizing::new).map_err(|_| StoreError::Record { table })
}

fn decode<T: DeserializeOwned>(table: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|_| StoreError::Record { table })
}

/// Every record of a table whose keys do not matter to the caller.
fn all_records<K: redb::Key + 'static, T: DeserializeOwned>(
    name: &'static str,
    table: &impl ReadableTable<K, &'static [u8]>,
) -> Result<Vec<T>, StoreError> {
    let mut records = Vec::new();
    for row in table.iter()? {
        let (_, bytes) = row?;
        records.push(decode(name, bytes.value())?);
    }
    Ok(records)
}

#[cfg(test)]
mod tests;
