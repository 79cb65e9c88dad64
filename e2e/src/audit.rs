//! What the API server was asked, by its own audit log: who, what, and with which answer. Never a body.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, ...
    pub verb: String,
    /// Group of the resource; empty for the core one.
    pub group: String,
    /// `secrets`, `deployments`, `ferrvaultsecrets/status`, ...
    pub resource: String,
    /// Namespace; empty for what has none and for all.
    pub namespace: String,
    /// Name; empty for what has none.
    pub name: String,
    /// The answer's status.
    pub code: u16,
    /// Which of the user's tokens it came with, if the server can tell.
    pub credential: Option<String>,
    /// When it came in, by the server's clock.
    pub received: Option<jiff::Timestamp>,
}

impl Request {
    /// Whether it changed something: a write that was not refused.
    pub fn is_accepted_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch") && self.code < 300
    }

    /// In the words of a table: `patch deployments web`, with the status unless it was a success.
    pub fn told(&self) -> String {
        let code = if self.code < 300 { String::new() } else { format!(" -> {}", self.code) };
        format!("{} {} {}{code}", self.verb, self.resource, self.name).trim_end().to_owned()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    request_received_timestamp: Option<jiff::Timestamp>,
    response_status: Option<Status>,
}

#[derive(Deserialize)]
struct User {
    username: String,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

/// The key of a user's extra fields that names the token.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    api_group: String,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
}

/// The requests in the log at `path`, in their order. A last line that is still being written is left out.
pub fn read(path: &Path) -> Vec<Request> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    complete.lines().map(|line| request(serde_json::from_str(line).expect("a line of the audit log"))).collect()
}

fn request(entry: Entry) -> Request {
    let object = entry.object_ref.unwrap_or_default();
    let resource = match object.subresource.as_str() {
        "" => object.resource,
        subresource => format!("{}/{subresource}", object.resource),
    };
    Request {
        credential: entry.user.extra.get(CREDENTIAL).and_then(|ids| ids.first().cloned()),
        received: entry.request_received_timestamp,
        user: entry.user.username,
        verb: entry.verb,
        group: object.api_group,
        resource,
        namespace: object.namespace,
        name: object.name,
        code: entry.response_status.map(|status| status.code).unwrap_or_default(),
    }
}
