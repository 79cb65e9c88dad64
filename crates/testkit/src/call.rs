//! A request as a test sees it: numbered, attributed, in plain words. And the journal of all of them.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::patch::PatchKind;

/// What a request wants to do, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// A stream of changes.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// A path that is no resource, such as `/version`.
    Other,
}

impl Verb {
    /// As RBAC rules spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }

    /// Whether it can change anything.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch | Self::Other)
    }
}

/// One request.
#[derive(Clone)]
pub struct Call {
    /// Its place among all requests to this server, from 1.
    pub number: usize,
    /// Whose client sent it.
    pub who: String,
    /// What it wants.
    pub verb: Verb,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural of the resource, or the path where it is none.
    pub resource: String,
    /// `status`, or empty.
    pub subresource: String,
    /// Empty for requests across namespaces.
    pub namespace: String,
    /// Empty for requests on collections.
    pub name: String,
    /// How the body of a PATCH is meant.
    pub patch: Option<PatchKind>,
    /// What was sent, if it was JSON. Not printed by `Debug`.
    pub body: Value,
    /// Virtual time since the server was made.
    pub at: Duration,
}

impl Call {
    /// `PATCH secrets default/db`: verb, resource with subresource, object. What most assertions compare.
    pub fn summary(&self) -> String {
        let mut text = format!("{} {}", self.verb.as_str().to_uppercase(), self.resource);
        if !self.subresource.is_empty() {
            text.push('/');
            text.push_str(&self.subresource);
        }
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => {}
            ("", name) => {
                text.push(' ');
                text.push_str(name);
            }
            (namespace, "") => {
                text = format!("{text} {namespace}/*");
            }
            (namespace, name) => text = format!("{text} {namespace}/{name}"),
        }
        text
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} by {}", self.number, self.summary(), self.who)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has not been answered, and may never be.
    Pending,
    /// It was answered with this code.
    Answered(u16),
    /// The connection broke instead of an answer.
    Broken,
}

/// A line of the journal.
#[derive(Clone, Debug)]
pub struct Record {
    /// The request.
    pub call: Call,
    /// The fault put on it, in plain words; empty for none.
    pub fault: String,
    /// Whether the server carried it out, whatever the client learnt of it.
    pub handled: bool,
    /// What the client got.
    pub fate: Fate,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3}s {}", self.call.at.as_secs_f64(), self.call)?;
        if !self.fault.is_empty() {
            write!(f, " [{}]", self.fault)?;
        }
        match &self.fate {
            Fate::Pending => write!(f, " -> no answer"),
            Fate::Answered(code) => write!(f, " -> {code}"),
            Fate::Broken => write!(f, " -> connection broken"),
        }
    }
}
