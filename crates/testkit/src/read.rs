//! GET and LIST: now, at least as new as, exactly as of, page by page, whole or metadata only.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::object;
use crate::refusal::Refusal;
use crate::selector::Selector;
use crate::state::State;
use crate::store::Key;

/// What a list request asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListRequest {
    pub(crate) namespace: String,
    pub(crate) selector: Selector,
    pub(crate) resource_version: String,
    /// `resourceVersionMatch`.
    pub(crate) version_match: String,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    /// Only metadata of each object.
    pub(crate) metadata_only: bool,
}

impl State {
    /// One object. `as_of` makes the answer as old as that.
    pub(crate) fn read(&self, kind: &Kind, key: &Key, as_of: Option<u64>) -> Result<Value, Refusal> {
        let found = match as_of {
            Some(revision) => self.store.get_at(key, revision),
            None => self.store.get(key),
        };
        found.map(|object| (**object).clone()).ok_or_else(|| Refusal::not_found(kind, &key.name))
    }

    /// Objects of one kind.
    pub(crate) fn list(&self, kind: &Kind, request: &ListRequest, as_of: Option<u64>) -> Result<Value, Refusal> {
        let (revision, after) = if request.continue_token.is_empty() {
            (self.list_revision(request, as_of)?, None)
        } else {
            let (revision, after) =
                read_token(&request.continue_token).ok_or_else(|| Refusal::bad_request("continue key is not valid"))?;
            if revision < self.store.compacted() {
                return Err(Refusal::expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a \
                     new list without the continue parameter.",
                ));
            }
            (revision, Some(after))
        };
        let all: Vec<&Arc<Value>> = self
            .store
            .list_at(&kind.id, &request.namespace, revision)
            .into_iter()
            .filter(|object| after.as_ref().is_none_or(|after| *after < place(object)))
            .filter(|object| request.selector.selects(object))
            .collect();
        let count = if request.limit == 0 { all.len() } else { request.limit.min(all.len()) };
        let (page, rest) = all.split_at(count);
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if let Some(last) = page.last().filter(|_| !rest.is_empty()) {
            let fields = object::fields_mut(&mut metadata);
            fields.insert("continue".to_owned(), write_token(revision, &place(last)).into());
            if request.selector.is_empty() {
                fields.insert("remainingItemCount".to_owned(), rest.len().into());
            }
        }
        let items: Vec<Value> = page.iter().map(|object| item(kind, object, request.metadata_only)).collect();
        Ok(if request.metadata_only {
            json!({ "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items })
        } else {
            let list = format!("{}List", kind.kind);
            json!({ "kind": list, "apiVersion": kind.api_version(), "metadata": metadata, "items": items })
        })
    }

    /// The revision at which a fresh list is answered.
    fn list_revision(&self, request: &ListRequest, as_of: Option<u64>) -> Result<u64, Refusal> {
        let current = self.store.revision();
        let wanted = parse_revision(&request.resource_version)?;
        match request.version_match.as_str() {
            "Exact" => {
                if wanted > current {
                    return Err(Refusal::too_large_version(wanted, current));
                }
                if wanted < self.store.compacted() {
                    return Err(too_old(wanted, self.store.compacted()));
                }
                Ok(wanted)
            }
            _ if wanted > current => Err(Refusal::too_large_version(wanted, current)),
            // Stale, but never older than what the client has already seen, as far as it said so.
            _ => Ok(as_of.unwrap_or(current).max(wanted).min(current)),
        }
    }
}

/// The refusal for a revision that has been compacted.
pub(crate) fn too_old(wanted: u64, oldest: u64) -> Refusal {
    Refusal::expired(format!("too old resource version: {wanted} ({oldest})"))
}

/// A resourceVersion as a client sends it; empty and "0" mean any.
pub(crate) fn parse_revision(text: &str) -> Result<u64, Refusal> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| Refusal::bad_request(format!("Invalid value: {text:?}: invalid resource version")))
}

/// `object`, or its metadata alone.
pub(crate) fn shown(object: &Value, metadata_only: bool) -> Value {
    if metadata_only {
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
    } else {
        object.clone()
    }
}

/// An object within a list: the built-in kinds leave out what the list already says.
fn item(kind: &Kind, object: &Value, metadata_only: bool) -> Value {
    let mut item = shown(object, metadata_only);
    if !metadata_only && !kind.is_custom() {
        object::fields_mut(&mut item).retain(|field, _| field != "kind" && field != "apiVersion");
    }
    item
}

fn place(object: &Value) -> (String, String) {
    (object::namespace(object).to_owned(), object::name(object).to_owned())
}

fn write_token(revision: u64, after: &(String, String)) -> String {
    URL_SAFE_NO_PAD.encode(json!([revision, after.0, after.1]).to_string())
}

fn read_token(token: &str) -> Option<(u64, (String, String))> {
    let (revision, namespace, name) = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    Some((revision, (namespace, name)))
}
