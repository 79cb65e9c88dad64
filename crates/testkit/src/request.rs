//! From an HTTP request to what it asks for: path, query, content type.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::call::Verb;
use crate::patch::PatchKind;

/// A request taken apart. Says nothing about whether it makes sense.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) path: String,
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty when the path is no resource.
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) patch: Option<PatchKind>,
    /// Only metadata was asked for.
    pub(crate) metadata_only: bool,
    /// The body, or why it is none.
    pub(crate) body: Result<Value, String>,
}

impl Request {
    pub(crate) fn parse(parts: &http::request::Parts, bytes: &[u8]) -> Self {
        let header =
            |name: http::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let query: BTreeMap<String, String> =
            url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let path = parts.uri.path().to_owned();
        let segments: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        let place = Place::of(&segments.iter().map(String::as_str).collect::<Vec<_>>());
        let verb = verb(&parts.method, &place, query.get("watch").is_some_and(|on| on == "true" || on == "1"));
        Self {
            verb,
            path,
            group: place.group,
            version: place.version,
            plural: place.plural,
            namespace: place.namespace,
            name: place.name,
            subresource: place.subresource,
            query,
            patch: PatchKind::of(header(http::header::CONTENT_TYPE)),
            metadata_only: header(http::header::ACCEPT).contains("as=PartialObjectMetadata"),
            body: read(bytes),
        }
    }

    /// A query parameter, empty when it is not there.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    /// A query parameter that says yes or no.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.param(name), "true" | "1")
    }
}

/// JSON, or YAML as apply patches may be. Nothing at all is an empty object: a delete without options.
fn read(bytes: &[u8]) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_slice(bytes).or_else(|error| {
        let text = std::str::from_utf8(bytes).map_err(|_| error.to_string())?;
        serde_saphyr::from_str::<Value>(text).ok().filter(Value::is_object).ok_or_else(|| error.to_string())
    })
}

#[derive(Debug, Default)]
struct Place {
    group: String,
    version: String,
    plural: String,
    namespace: String,
    name: String,
    subresource: String,
}

impl Place {
    fn of(segments: &[&str]) -> Self {
        let (group, version, rest) = match segments {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Self::default(),
        };
        let (namespace, rest) = match rest {
            // A namespace's own subresources look like collections inside it.
            ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            _ => ("", rest),
        };
        let mut rest = rest.iter();
        let mut next = || rest.next().map(|part| (*part).to_owned()).unwrap_or_default();
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            plural: next(),
            name: next(),
            subresource: next(),
        }
    }
}

fn verb(method: &http::Method, place: &Place, watch: bool) -> Verb {
    if place.plural.is_empty() {
        return Verb::Other;
    }
    match method.as_str() {
        "GET" if watch => Verb::Watch,
        "GET" if place.name.is_empty() => Verb::List,
        "GET" => Verb::Get,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" if place.name.is_empty() => Verb::DeleteCollection,
        "DELETE" => Verb::Delete,
        _ => Verb::Other,
    }
}
