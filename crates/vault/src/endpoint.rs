//! The base address of a FerrVault, checked once and then trusted.
//!
//! An [`Endpoint`] is pure data: nothing here opens a socket or looks a name up. It never holds credentials, a query
//! or a fragment, so its text may be shown anywhere.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use url::{Host, Url};

use crate::address::{is_metadata, is_metadata_name};

/// Why a text is not the base address of a FerrVault. No variant repeats the text: a refused one may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EndpointError {
    /// Neither `http://` nor `https://` at its start.
    #[error("the URL must start with https:// (or http:// where plain HTTP is allowed)")]
    Scheme,
    /// Not an address at all.
    #[error("the URL is not valid ({0}); write it as https://host[:port][/prefix]")]
    Malformed(#[from] url::ParseError),
    /// Spaces, tabs, line ends or backslashes, which URL parsers silently drop or turn into something else.
    #[error("the URL contains white space, a control character or a backslash; remove it")]
    StrayCharacter,
    /// `user:password@`.
    #[error("the URL contains a user name or password; remove it and put the token into a Secret")]
    Credentials,
    /// `?…`.
    #[error("the URL contains a query (?); remove it, only a path prefix may follow the host")]
    Query,
    /// `#…`.
    #[error("the URL contains a fragment (#); remove it, only a path prefix may follow the host")]
    Fragment,
}

/// A checked base address: scheme, host, port and path prefix.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    url: Url,
}

impl Endpoint {
    /// Checks `text`. A path prefix is kept, slashes at its end are dropped.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(EndpointError::StrayCharacter);
        }
        // The parser takes `https:host` and `https:///host` for `https://host`; a person who wrote that meant
        // something else, and the CRD's own pattern wants the two slashes.
        let rest = strip_scheme(text).ok_or(EndpointError::Scheme)?;
        if rest.starts_with('/') {
            return Err(EndpointError::Malformed(url::ParseError::EmptyHost));
        }
        let mut url = Url::parse(text)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Credentials);
        }
        if url.query().is_some() {
            return Err(EndpointError::Query);
        }
        if url.fragment().is_some() {
            return Err(EndpointError::Fragment);
        }
        let prefix = url.path().trim_end_matches('/').to_owned();
        url.set_path(&prefix);
        Ok(Self { url })
    }

    /// Whether values would travel unencrypted.
    pub fn is_plain_http(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// Whether the host is this machine or a service of this cluster: loopback, `*.svc` or `*.svc.*`.
    ///
    /// The name alone decides; nothing is looked up. A service is called `SERVICE.NAMESPACE.svc`, so a name with further
    /// labels behind `svc` needs two before it: `vault.svc.example.com` is somebody's host in the internet. What a cluster
    /// calls its own domain cannot be known here.
    pub fn host_is_local(&self) -> bool {
        match self.url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
            Some(Host::Domain(name)) => {
                // `vault.ns.svc.cluster.local.` is the same host, written as a rooted name.
                let name = name.strip_suffix('.').unwrap_or(name);
                name == "localhost" || name.ends_with(".localhost") || is_service_name(name)
            }
            None => false,
        }
    }

    /// Whether the host is written as an address of the link, of the node or of its cloud's metadata service, or as a name
    /// that stands for one.
    pub fn is_metadata(&self) -> bool {
        match self.url.host() {
            Some(Host::Ipv4(address)) => is_metadata(address.into()),
            Some(Host::Ipv6(address)) => is_metadata(address.into()),
            Some(Host::Domain(name)) => is_metadata_name(name.strip_suffix('.').unwrap_or(name)),
            None => false,
        }
    }

    /// The path prefix; empty without one.
    pub(crate) fn path(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }

    /// Scheme, host and port without the path, as in an allow list: `https://vault.example.com` (a default port is
    /// left out).
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The address of a call: `path` starts with a slash and is percent-encoded already.
    pub(crate) fn join(&self, path: &str) -> Result<Url, url::ParseError> {
        Url::parse(&format!("{}{path}", self.url.as_str().trim_end_matches('/')))
    }
}

/// What follows `http://` or `https://`, in any case.
fn strip_scheme(text: &str) -> Option<&str> {
    ["https://", "http://"].iter().find_map(|scheme| {
        let (head, rest) = text.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

/// Whether the name ends in a label `svc` behind another one, or has one behind two others.
fn is_service_name(name: &str) -> bool {
    let labels = || name.split('.');
    let is_short = labels().count() > 1 && labels().next_back() == Some("svc");
    is_short || labels().skip(2).any(|label| label == "svc")
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_addresses_keep_their_prefix_and_lose_their_trailing_slash() {
        for (text, shown) in [
            ("https://vault.example.com", "https://vault.example.com"),
            ("https://vault.example.com/", "https://vault.example.com"),
            ("HTTPS://Vault.Example.com:443/", "https://vault.example.com"),
            ("https://vault.example.com:8443/ferr/vault/", "https://vault.example.com:8443/ferr/vault"),
            ("https://vault.example.com/ferr//", "https://vault.example.com/ferr"),
            ("http://127.0.0.1:8200", "http://127.0.0.1:8200"),
            ("http://[::1]:8200/x", "http://[::1]:8200/x"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.to_string(), shown, "{text}");
            assert_eq!(endpoint.join("/health").unwrap().as_str(), format!("{shown}/health"), "{text}");
        }
    }

    #[test]
    fn refused_addresses_say_why() {
        for (text, expected) in [
            ("", EndpointError::Scheme),
            ("vault.example.com", EndpointError::Scheme),
            ("ftp://vault.example.com", EndpointError::Scheme),
            ("https:vault.example.com", EndpointError::Scheme),
            ("httpé", EndpointError::Scheme),
            ("https://", EndpointError::Malformed(url::ParseError::EmptyHost)),
            ("https:///vault", EndpointError::Malformed(url::ParseError::EmptyHost)),
            ("https://vault:99999", EndpointError::Malformed(url::ParseError::InvalidPort)),
            (" https://vault.example.com", EndpointError::StrayCharacter),
            ("https://vault.example.com\n", EndpointError::StrayCharacter),
            ("https://vault.example.com\\evil", EndpointError::StrayCharacter),
            ("https://user@vault.example.com", EndpointError::Credentials),
            ("https://user:hunter2@vault.example.com", EndpointError::Credentials),
            ("https://:hunter2@vault.example.com", EndpointError::Credentials),
            ("https://vault.example.com/?", EndpointError::Query),
            ("https://vault.example.com?a=b", EndpointError::Query),
            ("https://vault.example.com/#", EndpointError::Fragment),
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn only_loopback_and_service_names_are_local() {
        for (host, local) in [
            ("localhost", true),
            ("api.localhost", true),
            ("127.0.0.1", true),
            ("127.8.9.10", true),
            ("2130706433", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("vault.ferr.svc", true),
            ("vault.ferr.svc.", true),
            ("VAULT.ferr.SVC", true),
            ("vault.ferr.svc.cluster.local", true),
            ("svc", false),
            ("vault.svc", true),
            ("0.vault.ferr.svc.k8s.example.com", true),
            ("vault.svc.example.com", false),
            ("vault.svc.cluster.local", false),
            ("svc.example.com", false),
            ("vault.svcs.example.com", false),
            ("localhost.example.com", false),
            ("notlocalhost", false),
            ("10.0.0.1", false),
            ("[fd00::1]", false),
            ("vault.example.com", false),
        ] {
            let endpoint = Endpoint::parse(&format!("http://{host}:8200/x")).unwrap();
            assert_eq!(endpoint.host_is_local(), local, "{host}");
            assert!(endpoint.is_plain_http());
        }
        assert!(!Endpoint::parse("https://vault.ferr.svc").unwrap().is_plain_http());
    }

    #[test]
    fn the_origin_has_no_path_and_no_default_port() {
        for (text, origin) in [
            ("https://Vault.example.com:443/ferr", "https://vault.example.com"),
            ("https://vault.example.com:8443", "https://vault.example.com:8443"),
            ("http://[::1]:80/", "http://[::1]"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().origin(), origin);
        }
    }
}
