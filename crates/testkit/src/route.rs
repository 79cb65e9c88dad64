//! From a request to the operation it asks for.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::access::Attempt;
use crate::call::{Call, Verb};
use crate::kind::Kind;
use crate::object;
use crate::read::{self, ListRequest};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::selector::Selector;
use crate::state::{State, Writer};
use crate::store::Key;
use crate::watch::{Feed, Watch};
use crate::write::{Door, PatchRequest};

/// What an answer carries.
pub(crate) enum Content {
    Json(Value),
    Text(String),
    Feed(Box<Feed>),
}

/// Code, content, and the watch to register if one was opened.
type Routed = (u16, Content, Option<Watch>);

impl State {
    /// Does what `request` asks for.
    pub(crate) fn route(&mut self, call: &Call, request: &Request, as_of: Option<u64>) -> Result<Routed, Refusal> {
        if request.plural.is_empty() {
            return self.route_other(&request.path).map(|content| (200, content, None));
        }
        let kind = self.kind(&request.group, &request.version, &request.plural)?;
        if kind.id.starts_with("selfsubjectaccessreviews") {
            return self.review(call, request).map(|review| (201, Content::Json(review), None));
        }
        if call.verb == Verb::Watch {
            let (feed, watch) = self.watch(&kind, request, &call.who, call.number, as_of)?;
            return Ok((200, Content::Feed(Box::new(feed)), Some(watch)));
        }
        let (code, value) = self.operate(&kind, call, request, as_of)?;
        let is_object = kind.claims(&value);
        let value = if is_object { read::shown(&value, request.metadata_only) } else { value };
        Ok((code, Content::Json(value), None))
    }

    fn operate(
        &mut self,
        kind: &Arc<Kind>,
        call: &Call,
        request: &Request,
        as_of: Option<u64>,
    ) -> Result<(u16, Value), Refusal> {
        let key = Key::new(&kind.id, &request.namespace, &request.name);
        let door = match request.subresource.as_str() {
            "" => Door::Main,
            "status" if kind.status => Door::Status,
            _ => return Err(Refusal::no_such_path()),
        };
        let writer = writer(call, request);
        let body = || request.body.clone().map_err(Refusal::bad_request);
        match call.verb {
            Verb::Get => self.read(kind, &key, as_of).map(|object| (200, object)),
            Verb::List => self.list(kind, &list_request(kind, request)?, as_of).map(|list| (200, list)),
            Verb::Create if request.name.is_empty() => {
                self.create(kind, &request.namespace, &writer, body()?).map(|object| (201, object))
            }
            Verb::Update => self.replace(kind, &key, door, &writer, body()?),
            Verb::Patch => {
                let how = request.patch.ok_or_else(Refusal::unknown_media)?;
                let force = request.flag("force");
                self.patch(kind, &key, door, &writer, PatchRequest { how, force }, body()?)
            }
            Verb::Delete if door == Door::Main => self.delete(kind, &key, &writer, &body()?).map(|rest| (200, rest)),
            Verb::DeleteCollection => {
                let listed = self.list(kind, &list_request(kind, request)?, None)?;
                let options = body()?;
                for object in object::list(&listed, "/items") {
                    let key = Key::new(&kind.id, object::namespace(object), object::name(object));
                    self.delete(kind, &key, &writer, &options)?;
                }
                Ok((200, listed))
            }
            _ => Err(Refusal::method_not_allowed()),
        }
    }

    /// Paths that are no resources: version, health, what is served.
    fn route_other(&self, path: &str) -> Result<Content, Refusal> {
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match segments.as_slice() {
            ["version"] => Ok(Content::Json(json!({
                "major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "", "gitTreeState": "clean",
                "buildDate": "2026-01-01T00:00:00Z", "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
            }))),
            ["healthz" | "livez" | "readyz"] => Ok(Content::Text("ok".to_owned())),
            ["api", version] => self.resources("", version),
            ["apis", group, version] => self.resources(group, version),
            _ => Err(Refusal::no_such_path()),
        }
    }

    fn resources(&self, group: &str, version: &str) -> Result<Content, Refusal> {
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        let mut resources = Vec::new();
        for kind in self.kinds().filter(|kind| kind.group == group && kind.version == version) {
            let row = |name: String, verbs: &[&str]| json!({ "name": name, "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs });
            resources.push(row(kind.plural.clone(), &verbs));
            if kind.status {
                resources.push(row(format!("{}/status", kind.plural), &["get", "patch", "update"]));
            }
        }
        if resources.is_empty() {
            return Err(Refusal::no_such_path());
        }
        let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        Ok(Content::Json(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
        })))
    }

    /// `SelfSubjectAccessReview`: answered, never stored.
    fn review(&self, call: &Call, request: &Request) -> Result<Value, Refusal> {
        if call.verb != Verb::Create {
            return Err(Refusal::method_not_allowed());
        }
        let mut review = request.body.clone().map_err(Refusal::bad_request)?;
        let asked = |field: &str| object::text(&review, &format!("/spec/resourceAttributes/{field}"));
        let resource = match asked("subresource") {
            "" => asked("resource").to_owned(),
            subresource => format!("{}/{subresource}", asked("resource")),
        };
        let attempt = Attempt {
            verb: asked("verb"),
            group: asked("group"),
            resource: &resource,
            namespace: asked("namespace"),
            name: asked("name"),
        };
        let allowed = self.access.allows(&call.who, &attempt);
        object::map_mut(&mut review, "status").insert("allowed".to_owned(), allowed.into());
        Ok(review)
    }
}

fn writer(call: &Call, request: &Request) -> Writer {
    let manager = request.param("fieldManager");
    Writer {
        call: call.number,
        who: call.who.clone(),
        // The real server falls back on the first part of the user agent.
        manager: if manager.is_empty() { "unknown".to_owned() } else { manager.to_owned() },
        dry_run: request.param("dryRun") == "All",
        strict: request.param("fieldValidation") == "Strict",
    }
}

fn list_request(kind: &Kind, request: &Request) -> Result<ListRequest, Refusal> {
    Ok(ListRequest {
        namespace: request.namespace.clone(),
        selector: Selector::parse(kind, request.param("labelSelector"), request.param("fieldSelector"))?,
        resource_version: request.param("resourceVersion").to_owned(),
        version_match: request.param("resourceVersionMatch").to_owned(),
        limit: request.param("limit").parse().unwrap_or_default(),
        continue_token: request.param("continue").to_owned(),
        metadata_only: request.metadata_only,
    })
}
