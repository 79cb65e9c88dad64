//! Answers without values: who a token is, what an exchange grants, which keys a vault has.

use std::fmt;

use jiff::Timestamp;

use crate::bearer::Bearer;
use crate::error::VaultError;
use crate::wire;

/// What a token may do in its vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reads and writes.
    Writer,
    /// Reads, writes and manages.
    Admin,
}

impl Role {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Writer => "writer",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What FerrVault knows of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenIdentity {
    /// Its id, which is not the token.
    pub token_id: String,
    /// Id of the vault it is bound to.
    pub vault_id: String,
    /// Name of the vault it is bound to.
    pub vault_slug: String,
    /// What it may do there.
    pub role: Role,
    /// What a person called it.
    pub token_label: Option<String>,
    /// When it ends; never, when absent.
    pub expires_at: Option<Timestamp>,
}

/// A token won by an exchange.
#[derive(Clone, Debug)]
pub struct BearerGrant {
    /// The token.
    pub bearer: Bearer,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A key and its version, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretVersion {
    /// The key.
    pub name: String,
    /// Counts up with each change.
    pub version: i32,
    /// When it last changed.
    pub updated_at: Timestamp,
}

pub(crate) fn read_me(body: &[u8]) -> Result<TokenIdentity, VaultError> {
    let me: wire::MeAnswer<'_> = wire::decode(body)?;
    let role = [Role::Viewer, Role::Writer, Role::Admin]
        .into_iter()
        .find(|role| role.as_str() == me.role)
        .ok_or_else(|| VaultError::broken("role is none of viewer, writer and admin"))?;
    Ok(TokenIdentity {
        token_id: me.token_id,
        vault_id: me.vault_id,
        vault_slug: me.vault_slug,
        role,
        token_label: me.token_label,
        expires_at: me.expires_at.map(|text| wire::time("expires_at", &text)).transpose()?,
    })
}

pub(crate) fn read_grant(body: &[u8]) -> Result<BearerGrant, VaultError> {
    let grant: wire::ExchangeAnswer<'_> = wire::decode(body)?;
    if grant.token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(VaultError::broken("token_type is not Bearer"));
    }
    let token = wire::secret_text("access_token", grant.access_token)?;
    let bearer = Bearer::new(&token).map_err(|_| VaultError::broken("access_token is no token"))?;
    Ok(BearerGrant { bearer, expires_at: wire::time("expires_at", &grant.expires_at)? })
}

pub(crate) fn read_list(body: &[u8]) -> Result<Vec<SecretVersion>, VaultError> {
    let list: wire::Bounded<wire::ListedSecret<'_>> = wire::decode(body)?;
    let mut versions = list
        .0
        .into_iter()
        .map(|listed| {
            let updated_at = wire::time("updated_at", &listed.updated_at)?;
            Ok(SecretVersion { name: listed.name.into_owned(), version: listed.version, updated_at })
        })
        .collect::<Result<Vec<_>, VaultError>>()?;
    versions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_token_is_described() {
        let body = br#"{"token_id":"t","vault_id":"i","vault_slug":"v","role":"writer","token_label":"ci",
            "expires_at":"2026-01-02T03:04:05Z"}"#;
        let me = read_me(body).unwrap();
        assert_eq!((me.role, me.token_label.as_deref()), (Role::Writer, Some("ci")));
        assert_eq!(me.expires_at, Some(at("2026-01-02T03:04:05Z")));
        let endless =
            br#"{"token_id":"t","vault_id":"i","vault_slug":"v","role":"admin","token_label":null,"expires_at":null}"#;
        assert_eq!(read_me(endless).unwrap().expires_at, None);
        let odd = br#"{"token_id":"t","vault_id":"i","vault_slug":"v","role":"owner"}"#;
        assert_eq!(read_me(odd), Err(VaultError::broken("role is none of viewer, writer and admin")));
    }

    #[test]
    fn a_grant_is_a_token_with_an_end() {
        let body = br#"{"access_token":"ffclust_canary","expires_at":"2026-01-02T03:04:05Z","token_type":"Bearer"}"#;
        let grant = read_grant(body).unwrap();
        assert_eq!(grant.bearer.expose(), b"ffclust_canary");
        assert_eq!(grant.expires_at, at("2026-01-02T03:04:05Z"));
        assert!(!format!("{grant:?}").contains("canary"));
        for (body, what) in [
            (r#"{"access_token":"","expires_at":"2026-01-02T03:04:05Z"}"#, "access_token is no token"),
            (r#"{"access_token":"canary\n x","expires_at":"2026-01-02T03:04:05Z"}"#, "access_token is no token"),
            (r#"{"access_token":7,"expires_at":"2026-01-02T03:04:05Z"}"#, "\"access_token\" is not a text"),
            (r#"{"access_token":"canary","expires_at":"canary"}"#, "expires_at is not an RFC 3339 time"),
            (
                r#"{"access_token":"canary","expires_at":"2026-01-02T03:04:05Z","token_type":"canary"}"#,
                "token_type is not Bearer",
            ),
        ] {
            assert_eq!(read_grant(body.as_bytes()).unwrap_err(), VaultError::broken(what), "{body}");
        }
    }

    #[test]
    fn a_list_is_sorted() {
        let body = br#"[{"name":"B","version":2,"updated_at":"2026-01-02T03:04:05Z"},
            {"name":"A","version":1,"updated_at":"2026-01-02T03:04:05Z"}]"#;
        let names: Vec<_> = read_list(body).unwrap().into_iter().map(|listed| (listed.name, listed.version)).collect();
        assert_eq!(names, [("A".to_owned(), 1), ("B".to_owned(), 2)]);
        assert!(read_list(br#"[{"name":"A","version":2147483648,"updated_at":"2026-01-02T03:04:05Z"}]"#).is_err());
        assert!(read_list(br#"{"error":"x"}"#).is_err());
    }
}
