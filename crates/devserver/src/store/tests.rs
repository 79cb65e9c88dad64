//! The store by itself: versions, transactions, what a reopened file holds.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Role, Scope, Store, StoreError, Token, TokenKind, Vault, WriteMode};
use crate::credential::mint_token;
use crate::secret_text::SecretText;

fn vault(id: &str, name: &str) -> Vault {
    Vault {
        id: id.to_owned(),
        name: name.to_owned(),
        organization: "acme".to_owned(),
        project: "shop".to_owned(),
        environment: "test".to_owned(),
        created_at: Timestamp::UNIX_EPOCH,
    }
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, SecretText> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), SecretText::new((*value).to_owned()))).collect()
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store.redb")).unwrap();
    (dir, store)
}

#[test]
fn versions_grow_across_deletion_and_never_repeat() {
    let (_dir, store) = store();
    let now = Timestamp::UNIX_EPOCH;
    let write = |value: &str| store.write_secrets("v", &values(&[("A", value)]), WriteMode::Upsert, now).unwrap()["A"];
    assert_eq!(write("one"), 1);
    assert_eq!(write("one"), 2, "the same value again is a version of its own");
    store.delete_secret("v", "A", now).unwrap();
    assert!(store.secrets("v").unwrap().is_empty());
    assert!(matches!(store.delete_secret("v", "A", now), Err(StoreError::Missing)));
    assert_eq!(write("one"), 4, "the deletion was version 3");
}

#[test]
fn one_refused_name_leaves_all_of_its_transaction_unwritten() {
    let (_dir, store) = store();
    let now = Timestamp::UNIX_EPOCH;
    store.write_secrets("v", &values(&[("B", "old")]), WriteMode::Create, now).unwrap();
    let clash = store.write_secrets("v", &values(&[("A", "new"), ("B", "new")]), WriteMode::Create, now);
    assert!(matches!(clash, Err(StoreError::Exists)));
    let secrets = store.secrets("v").unwrap();
    assert_eq!(secrets.keys().collect::<Vec<_>>(), ["B"]);
    assert_eq!(secrets["B"].value.as_ref().unwrap().expose(), "old");
    let absent = store.write_secrets("v", &values(&[("A", "new")]), WriteMode::Update, now);
    assert!(matches!(absent, Err(StoreError::Missing)));
}

#[test]
fn a_vault_sees_its_own_secrets_only() {
    let (_dir, store) = store();
    let now = Timestamp::UNIX_EPOCH;
    for id in ["a", "ab", "b"] {
        store.create_vault(&vault(id, id)).unwrap();
        store.write_secrets(id, &values(&[("K", id)]), WriteMode::Create, now).unwrap();
    }
    assert_eq!(store.secrets("a").unwrap()["K"].value.as_ref().unwrap().expose(), "a");
    assert_eq!(store.secrets("a").unwrap().len(), 1);
    store.delete_vault("a").unwrap();
    assert!(store.secrets("a").unwrap().is_empty());
    assert_eq!(store.secrets("ab").unwrap().len(), 1, "deleting a vault leaves the ones whose id starts alike");
    assert!(store.vault_named("acme", "shop", "a").unwrap().is_none());
}

#[test]
fn a_name_is_unique_within_its_project_only() {
    let (_dir, store) = store();
    store.create_vault(&vault("1", "app")).unwrap();
    assert!(matches!(store.create_vault(&vault("2", "app")), Err(StoreError::Exists)));
    let mut elsewhere = vault("3", "app");
    elsewhere.project = "other".to_owned();
    store.create_vault(&elsewhere).unwrap();
    assert_eq!(store.vault_named("acme", "other", "app").unwrap().unwrap().id, "3");
}

#[test]
fn the_file_holds_no_token_and_a_reopened_store_still_knows_it() {
    let (dir, store) = store();
    let path = dir.path().join("store.redb");
    let token = mint_token(TokenKind::User).unwrap();
    let record = Token {
        id: "t".to_owned(),
        kind: TokenKind::User,
        role: Role::Admin,
        label: "label".to_owned(),
        scope: Scope::Server,
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: Some(Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(60)).unwrap()),
    };
    store.keep_token(&token, &record).unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::InUse { .. })));
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    let needle = token.expose().trim_start_matches("fft_").as_bytes();
    assert!(!bytes.windows(needle.len()).any(|window| window == needle));
    let store = Store::open(&path).unwrap();
    assert_eq!(store.token(token.expose()).unwrap().as_ref(), Some(&record));
    assert_eq!(store.token("fft_other").unwrap(), None);
    assert_eq!(store.purge_expired_tokens(Timestamp::UNIX_EPOCH).unwrap(), 0);
    assert_eq!(store.purge_expired_tokens(record.expires_at.unwrap()).unwrap(), 1);
    assert_eq!(store.token(token.expose()).unwrap(), None);
}

#[test]
fn a_file_of_another_layout_is_refused() {
    let (dir, store) = store();
    store
        .write(|transaction| {
            transaction.open_table(super::META)?.insert("layout", 99)?;
            Ok(())
        })
        .unwrap();
    drop(store);
    let reopened = Store::open(&dir.path().join("store.redb"));
    assert!(matches!(reopened, Err(StoreError::OtherLayout { found: 99 })));
}
