//! From method and path to the call that is meant. Pure.
//!
//! The path is split before it is decoded: an encoded slash is a part of a name, never a separator.

use http::Method;
use percent_encoding::percent_decode_str;

use super::answer::ErrorShape;

/// Every call the server knows, with what its path says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    Reveal,
    List,
    Me,
    CreateSecret,
    UpdateSecret { name: String },
    DeleteSecret { name: String },
    CloudReveal { organization: String, project: String, vault: String },
    OidcExchange,
    ListVaults,
    CreateVault,
    DeleteVault { id: String },
    WriteSecrets { vault_id: String },
    ListTokens,
    CreateToken,
    RevokeToken { id: String },
    ListClusters,
    RegisterCluster,
    RemoveCluster { id: String },
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    NotFound,
    MethodNotAllowed,
    NotDecodable,
}

/// What a refusal looks like when the path leads nowhere.
pub(crate) fn shape_of_path(path: &str) -> ErrorShape {
    if path.starts_with("/api/") { ErrorShape::Message } else { ErrorShape::Error }
}

impl Route {
    /// The call that `method` on `path` means.
    pub(crate) fn of(method: &Method, path: &str) -> Result<Self, NoRoute> {
        let decoded: Result<Vec<String>, _> = path
            .trim_start_matches('/')
            .split('/')
            .map(|segment| percent_decode_str(segment).decode_utf8().map(std::borrow::Cow::into_owned))
            .collect();
        let decoded = decoded.map_err(|_| NoRoute::NotDecodable)?;
        let segments: Vec<&str> = decoded.iter().map(String::as_str).collect();
        if let Some(route) = Self::of_segments(method, &segments) {
            return Ok(route);
        }
        let known = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
        if known.iter().any(|other| Self::of_segments(other, &segments).is_some()) {
            return Err(NoRoute::MethodNotAllowed);
        }
        Err(NoRoute::NotFound)
    }

    fn of_segments(method: &Method, segments: &[&str]) -> Option<Self> {
        if segments.iter().any(|segment| segment.is_empty()) {
            return None;
        }
        let owned = |text: &str| text.to_owned();
        let route = match (method.as_str(), segments) {
            ("GET", ["health"]) => Self::Health,
            ("POST", ["v1", "operator", "secrets", "reveal"]) => Self::Reveal,
            ("GET", ["v1", "operator", "secrets", "list"]) => Self::List,
            ("GET", ["v1", "operator", "me"]) => Self::Me,
            ("POST", ["v1", "operator", "secrets"]) => Self::CreateSecret,
            ("PUT", ["v1", "operator", "secrets", name]) => Self::UpdateSecret { name: owned(name) },
            ("DELETE", ["v1", "operator", "secrets", name]) => Self::DeleteSecret { name: owned(name) },
            (
                "GET",
                [
                    "api",
                    "v1",
                    "orgs",
                    organization,
                    "projects",
                    project,
                    "vaults",
                    "by-name",
                    vault,
                    "secrets",
                    "reveal",
                ],
            ) => Self::CloudReveal { organization: owned(organization), project: owned(project), vault: owned(vault) },
            ("POST", ["api", "v1", "clusters", "oidc-exchange"]) => Self::OidcExchange,
            ("GET", ["dev", "v1", "vaults"]) => Self::ListVaults,
            ("POST", ["dev", "v1", "vaults"]) => Self::CreateVault,
            ("DELETE", ["dev", "v1", "vaults", id]) => Self::DeleteVault { id: owned(id) },
            ("PUT", ["dev", "v1", "vaults", id, "secrets"]) => Self::WriteSecrets { vault_id: owned(id) },
            ("GET", ["dev", "v1", "tokens"]) => Self::ListTokens,
            ("POST", ["dev", "v1", "tokens"]) => Self::CreateToken,
            ("DELETE", ["dev", "v1", "tokens", id]) => Self::RevokeToken { id: owned(id) },
            ("GET", ["dev", "v1", "clusters"]) => Self::ListClusters,
            ("POST", ["dev", "v1", "clusters"]) => Self::RegisterCluster,
            ("DELETE", ["dev", "v1", "clusters", id]) => Self::RemoveCluster { id: owned(id) },
            _ => return None,
        };
        Some(route)
    }

    /// The path with its variable parts named: what calls are counted by.
    pub(crate) fn template(&self) -> &'static str {
        match self {
            Self::Health => "/health",
            Self::Reveal => "/v1/operator/secrets/reveal",
            Self::List => "/v1/operator/secrets/list",
            Self::Me => "/v1/operator/me",
            Self::CreateSecret => "/v1/operator/secrets",
            Self::UpdateSecret { .. } | Self::DeleteSecret { .. } => "/v1/operator/secrets/{name}",
            Self::CloudReveal { .. } => "/api/v1/orgs/{org}/projects/{project}/vaults/by-name/{vault}/secrets/reveal",
            Self::OidcExchange => "/api/v1/clusters/oidc-exchange",
            Self::ListVaults | Self::CreateVault => "/dev/v1/vaults",
            Self::DeleteVault { .. } => "/dev/v1/vaults/{id}",
            Self::WriteSecrets { .. } => "/dev/v1/vaults/{id}/secrets",
            Self::ListTokens | Self::CreateToken => "/dev/v1/tokens",
            Self::RevokeToken { .. } => "/dev/v1/tokens/{id}",
            Self::ListClusters | Self::RegisterCluster => "/dev/v1/clusters",
            Self::RemoveCluster { .. } => "/dev/v1/clusters/{id}",
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{NoRoute, Route};

    #[test]
    fn an_encoded_slash_is_part_of_a_name() {
        let path = "/api/v1/orgs/a%2Fb/projects/p%20q/vaults/by-name/%C3%BC%25/secrets/reveal";
        let route = Route::of(&Method::GET, path).unwrap();
        let expected =
            Route::CloudReveal { organization: "a/b".to_owned(), project: "p q".to_owned(), vault: "ü%".to_owned() };
        assert_eq!(route, expected);
    }

    #[test]
    fn paths_that_lead_nowhere_say_why() {
        let cases = [
            ("an unknown path", Method::GET, "/v2", NoRoute::NotFound),
            ("the root", Method::GET, "/", NoRoute::NotFound),
            ("an empty segment", Method::GET, "/v1//me", NoRoute::NotFound),
            ("an empty vault name", Method::DELETE, "/v1/operator/secrets/", NoRoute::NotFound),
            ("a trailing slash", Method::GET, "/v1/operator/me/", NoRoute::NotFound),
            ("the wrong method", Method::GET, "/v1/operator/secrets/reveal", NoRoute::MethodNotAllowed),
            ("a method nobody uses", Method::PATCH, "/health", NoRoute::MethodNotAllowed),
            ("bytes that are not UTF-8", Method::PUT, "/v1/operator/secrets/%FF", NoRoute::NotDecodable),
        ];
        for (case, method, path, expected) in cases {
            assert_eq!(Route::of(&method, path), Err(expected), "{case}");
        }
    }

    #[test]
    fn secrets_may_be_named_like_calls() {
        let route = Route::of(&Method::PUT, "/v1/operator/secrets/list").unwrap();
        assert_eq!(route, Route::UpdateSecret { name: "list".to_owned() });
    }
}
