//! Entries of a list of allowed addresses, and what they cover.
//!
//! An entry without a path covers its origin. One with a path covers that path and what is below it, segment by segment:
//! `https://vault.example.com/team-a` covers `…/team-a/x` and not `…/team-ab`. Whatever another reader of the same path
//! could take for something else, such as an encoded slash, is covered by no path at all.

use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::endpoint::{Endpoint, EndpointError};

/// Why a text is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AllowedUrlError {
    /// Not the address of a FerrVault.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// `.`, `..`, empty segments, encoded slashes and the like.
    #[error("its path has a segment that not everybody reads in the same way (.., //, %2F or the like)")]
    Path,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedUrl {
    origin: String,
    /// Decoded; none for the whole origin.
    path: Vec<Vec<u8>>,
}

impl AllowedUrl {
    /// Reads an entry: scheme and host, with or without port and path.
    pub fn parse(text: &str) -> Result<Self, AllowedUrlError> {
        let endpoint = Endpoint::parse(text)?;
        // As it was written: the parser of URLs has resolved the dots by now, and `/a/..` would cover everything.
        let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
        let written = after_scheme.split_once('/').map_or("", |(_, path)| path);
        let path = segments(written.strip_suffix('/').unwrap_or(written)).ok_or(AllowedUrlError::Path)?;
        Ok(Self { origin: endpoint.origin(), path })
    }

    /// Whether calls to `endpoint` stay within this entry.
    pub fn covers(&self, endpoint: &Endpoint) -> bool {
        if self.origin != endpoint.origin() {
            return false;
        }
        if self.path.is_empty() {
            return true;
        }
        let path = endpoint.path();
        segments(path.strip_prefix('/').unwrap_or(path)).is_some_and(|segments| segments.starts_with(&self.path))
    }
}

/// The decoded segments of a path without its first slash, or nothing if one of them can be read in two ways.
fn segments(path: &str) -> Option<Vec<Vec<u8>>> {
    if path.is_empty() {
        return Some(Vec::new());
    }
    path.split('/').map(segment).collect()
}

fn segment(written: &str) -> Option<Vec<u8>> {
    let decoded: Vec<u8> = percent_decode_str(written).collect();
    // A per cent sign that is left may be decoded once more by who comes after; some servers cut a segment at `;`.
    let strays = decoded.iter().any(|byte| matches!(byte, b'/' | b'\\' | b'%') || byte.is_ascii_control());
    let name = decoded.split(|byte| *byte == b';').next().unwrap_or_default();
    (!strays && !matches!(name, b"" | b"." | b"..")).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(entry: &str, url: &str) -> bool {
        AllowedUrl::parse(entry).unwrap().covers(&Endpoint::parse(url).unwrap())
    }

    #[test]
    fn an_entry_without_a_path_covers_its_origin() {
        let entry = "HTTPS://Vault.Example.com:443/";
        for (url, expected) in [
            ("https://vault.example.com", true),
            ("https://vault.example.com/", true),
            ("https://vault.example.com/any/..%2fthing", true),
            ("http://vault.example.com", false),
            ("https://vault.example.com:8443", false),
            ("https://vault.example.com.evil.org", false),
            ("https://example.com", false),
        ] {
            assert_eq!(covers(entry, url), expected, "{url}");
        }
    }

    #[test]
    fn an_entry_with_a_path_covers_that_path_and_what_is_below() {
        for entry in ["https://v.example.com/team-a/vault", "https://v.example.com/team%2Da/vault/"] {
            for (path, expected) in [
                ("/team-a/vault", true),
                ("/team-a/vault/", true),
                ("/team-a/vault/below", true),
                ("/te%61m-a/vault", true),
                ("/team-a/./vault", true),
                ("/team-b/../team-a/vault", true),
                ("", false),
                ("/team-a", false),
                ("/team-a/vaults", false),
                ("/team-A/vault", false),
                ("/team-a/vault/..", false),
                ("/team-a/vault/../../team-b", false),
                ("/team-a/vault/%2e%2e/x", false),
                ("/team-a/vault/..%2f..%2fteam-b", false),
                ("/team-a/vault/%2e%2e%2fteam-b", false),
                ("/team-a/vault/%252e%252e/team-b", false),
                ("/team-a/vault/..%5cteam-b", false),
                ("/team-a/vault/..;x/team-b", false),
                ("/team-a/vault//x", false),
                ("//team-a/vault", false),
                ("/team-a%2Fvault", false),
                ("/team-a/vault%00", false),
            ] {
                assert_eq!(covers(entry, &format!("https://v.example.com{path}")), expected, "{entry}: {path}");
            }
        }
    }

    #[test]
    fn an_entry_that_can_be_read_in_two_ways_is_refused() {
        for path in ["/a/..", "/a/../b", "/./a", "/a//b", "//a", "/a%2Fb", "/%2e%2e", "/a/%252e", "/a;/..;/b"] {
            let entry = format!("https://v.example.com{path}");
            assert_eq!(AllowedUrl::parse(&entry), Err(AllowedUrlError::Path), "{path}");
        }
        for (entry, error) in
            [("v.example.com", EndpointError::Scheme), ("https://v.example.com/?a", EndpointError::Query)]
        {
            assert_eq!(AllowedUrl::parse(entry), Err(error.into()), "{entry}");
        }
    }
}
