//! Tokens, found by the hash of what the caller sent. The token itself is never stored.

use jiff::Timestamp;
use redb::ReadableTable as _;

use super::{Store, StoreError, TOKENS, Token, all_records, decode, encode};
use crate::credential::digest;
use crate::secret_text::SecretText;

impl Store {
    /// Keeps `record` under the hash of `token`.
    pub fn keep_token(&self, token: &SecretText, record: &Token) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut tokens = transaction.open_table(TOKENS)?;
            tokens.insert(digest(token.expose()).as_slice(), encode("tokens", record)?.as_slice())?;
            Ok(())
        })
    }

    /// The record of what a caller sent, expired or not.
    pub fn token(&self, presented: &str) -> Result<Option<Token>, StoreError> {
        self.read(|transaction| {
            let tokens = transaction.open_table(TOKENS)?;
            tokens.get(digest(presented).as_slice())?.map(|bytes| decode("tokens", bytes.value())).transpose()
        })
    }

    /// Every token, oldest first.
    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let mut tokens: Vec<Token> =
            self.read(|transaction| all_records("tokens", &transaction.open_table(TOKENS)?))?;
        tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(tokens)
    }

    /// Stops accepting the token with this identifier.
    pub fn revoke_token(&self, id: &str) -> Result<(), StoreError> {
        match self.remove_tokens(|token| token.id == id)? {
            0 => Err(StoreError::Missing),
            _ => Ok(()),
        }
    }

    /// Forgets the tokens that expired before `now`, so that exchanged bearers do not pile up.
    pub fn purge_expired_tokens(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.remove_tokens(|token| token.expires_at.is_some_and(|end| end <= now))
    }

    fn remove_tokens(&self, unwanted: impl Fn(&Token) -> bool) -> Result<usize, StoreError> {
        self.write(|transaction| {
            let mut tokens = transaction.open_table(TOKENS)?;
            let mut keys = Vec::new();
            for row in tokens.iter()? {
                let (key, bytes) = row?;
                if unwanted(&decode("tokens", bytes.value())?) {
                    keys.push(key.value().to_vec());
                }
            }
            for key in &keys {
                tokens.remove(key.as_slice())?;
            }
            Ok(keys.len())
        })
    }
}
