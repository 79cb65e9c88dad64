//! One request, read to its end: what the rest of the server works on.
//!
//! Holds the token and the body in memory that is wiped; its `Debug` shows neither.

use http::{HeaderMap, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::answer::Refusal;
use super::route::{NoRoute, Route};
use crate::secret_text::SecretText;

/// The header that says for which namespace a cloud reveal is made.
pub(crate) const NAMESPACE_HEADER: &str = "x-ferrvault-namespace";

/// A request whose body has been read.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) route: Result<Route, NoRoute>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) bearer: Option<SecretText>,
    pub(crate) namespace: Option<String>,
    body: Body,
}

/// Keeps the derived `Debug` of [`Call`] from showing a body.
struct Body(Zeroizing<Vec<u8>>);

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

impl Call {
    pub(crate) fn new(method: Method, path: &str, query: &str, headers: &HeaderMap, body: Zeroizing<Vec<u8>>) -> Self {
        let route = Route::of(&method, path);
        Self {
            method,
            path: path.to_owned(),
            route,
            query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            bearer: bearer(headers),
            namespace: text(headers, NAMESPACE_HEADER),
            body: Body(body),
        }
    }

    /// The body as `T`. The error names what is expected and never quotes what came: that may be a value.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, expected: &'static str) -> Result<T, Refusal> {
        serde_json::from_slice(&self.body.0).map_err(|error| {
            Refusal::bad_request(format!(
                "the body is not what this call takes, which is {expected} (line {}, column {})",
                error.line(),
                error.column()
            ))
        })
    }

    /// The first value of this query parameter.
    pub(crate) fn parameter(&self, wanted: &str) -> Option<&str> {
        self.query.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    /// Names asked for in the query; `None` when the parameter is absent.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        let mut given = self.query.iter().filter(|(name, _)| name == "names").map(|(_, value)| value).peekable();
        given.peek()?;
        Some(given.flat_map(|value| value.split(',')).filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// The names that a reveal of either mode asks for; `None` for all, and for any other call.
    pub(crate) fn names_asked(&self) -> Option<Vec<String>> {
        #[derive(Deserialize)]
        struct Asked {
            names: Option<Vec<String>>,
        }
        match self.route.as_ref().ok()? {
            Route::CloudReveal { .. } => self.names(),
            Route::Reveal => serde_json::from_slice::<Asked>(&self.body.0).ok()?.names,
            _ => None,
        }
    }

    /// What the request itself says its vault is: in the path, the query or the body.
    pub(crate) fn named_vault(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Named {
            vault: String,
        }
        match self.route.as_ref().ok()? {
            Route::CloudReveal { vault, .. } => Some(vault.clone()),
            Route::WriteSecrets { vault_id } => Some(vault_id.clone()),
            Route::Reveal | Route::CreateSecret | Route::UpdateSecret { .. } => {
                serde_json::from_slice::<Named>(&self.body.0).ok().map(|named| named.vault)
            }
            _ => self.parameter("vault").map(str::to_owned),
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn bearer(headers: &HeaderMap) -> Option<SecretText> {
    let header = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty())
        .then(|| SecretText::new(token.trim().to_owned()))
}
