//! What there is in a namespace, in a form that two clusters can share: names in the place of ids, times and versions, a
//! digest in the place of each value, and nothing that a cluster adds to workloads by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ferrvault_api::marks;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::act::NS;
use crate::cast;
use crate::check::SYSTEM;

/// Whose writes and events are the operator's.
const OURS: &str = "ferrvault";
/// Bytes of a digest that are shown: enough to tell the few values of a scenario apart.
const DIGEST: usize = 6;
/// The Go operator's hash: hexadecimal digits of SHA-256. It follows from the content, so it is the same everywhere.
const GO_HASH: usize = 64;

/// A namespace as somebody saw it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Objects with their kind, as the API server gives them.
    pub(super) objects: Vec<Value>,
    /// Whether several operators lead at once. What they tell on the way depends on who comes first.
    pub(super) is_contested: bool,
    /// How often each workload was restarted.
    pub(super) restarts: BTreeMap<String, usize>,
    /// What stands for the namespaces and the URL of the simulation, in this order.
    pub(super) stands_for: Vec<(String, &'static str)>,
}

/// Names for what differs by nature, given in the order in which things are first seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    names: BTreeMap<String, String>,
    given: BTreeMap<String, usize>,
}

impl Names {
    /// What `seen` looks like, with these names and new ones for what is new.
    pub(super) fn picture(&mut self, seen: &Seen) -> Picture {
        let mut objects: Vec<&Value> = seen.objects.iter().collect();
        // Workloads last: their marks stand in the order of uids, which is another one on every cluster.
        objects.sort_by_key(|object| (object.pointer("/spec/template").is_some(), key(object)));
        for object in &objects {
            self.learn(object);
        }
        let mut picture = BTreeMap::new();
        let mut events = BTreeSet::new();
        for object in objects {
            if cast::text(object, "/kind") == "Event" {
                if !seen.is_contested && cast::text(object, "/reportingController").starts_with(OURS) {
                    events.insert(self.masked_text(&told(object), seen));
                }
                continue;
            }
            picture.insert(key(object), self.masked(&essence(object), seen));
        }
        picture.insert("events".to_owned(), json!(events));
        picture.insert("restarts".to_owned(), json!(seen.restarts));
        Picture(picture)
    }

    fn learn(&mut self, object: &Value) {
        self.name(cast::text(object, "/metadata/uid"), &format!("uid of {}", key(object)));
        let versions = [
            cast::text(object, "/metadata/annotations/ferrvault.com~1content-hash"),
            cast::text(object, "/status/contentHash"),
            cast::text(object, "/status/lastRolloutHash"),
        ];
        let rollouts = object.pointer("/status/rollouts").and_then(Value::as_array).into_iter().flatten();
        let marks = cast::template_annotations(object);
        let marks =
            marks.iter().filter(|(name, _)| name.starts_with(marks::CONTENT_HASH)).map(|(_, mark)| mark.as_str());
        let versions = versions.into_iter().chain(rollouts.map(|entry| cast::text(entry, "/hash"))).chain(marks);
        for version in versions.filter(|version| version.len() != GO_HASH && version.contains('.')) {
            self.name(version, "version");
        }
    }

    fn name(&mut self, what: &str, kind: &str) {
        if !what.is_empty() && !self.names.contains_key(what) {
            let number = self.given.entry(kind.to_owned()).or_default();
            *number += 1;
            self.names.insert(what.to_owned(), format!("<{kind} {number}>"));
        }
    }

    fn masked(&self, value: &Value, seen: &Seen) -> Value {
        match value {
            Value::String(text) => self.masked_text(text, seen).into(),
            Value::Array(items) => items.iter().map(|item| self.masked(item, seen)).collect(),
            Value::Object(fields) => {
                let masked =
                    fields.iter().map(|(name, field)| (self.masked_text(name, seen), self.masked(field, seen)));
                Value::Object(masked.collect())
            }
            other => other.clone(),
        }
    }

    fn masked_text(&self, text: &str, seen: &Seen) -> String {
        let mut text = text.to_owned();
        for (real, simulated) in &seen.stands_for {
            text = text.replace(real, simulated);
        }
        for (what, name) in &self.names {
            text = text.replace(what, name);
        }
        let words = text.split(' ').map(|word| {
            let bare = word.trim_end_matches([',', '.', ';', ')']);
            if bare.parse::<Timestamp>().is_ok() { word.replace(bare, "<time>") } else { word.to_owned() }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

fn key(object: &Value) -> String {
    format!("{} {}", cast::text(object, "/kind"), cast::text(object, "/metadata/name"))
}

/// An event without its numbers and times: what is told about what.
fn told(event: &Value) -> String {
    let text = |pointer| cast::text(event, pointer);
    format!(
        "{} {} {}: {}: {}",
        text("/type"),
        text("/regarding/kind"),
        text("/regarding/name"),
        text("/reason"),
        text("/note")
    )
}

/// Of an object, what both clusters have to agree about.
fn essence(object: &Value) -> Value {
    let kind = cast::text(object, "/kind");
    let mut kept = Map::new();
    kept.insert("metadata".to_owned(), metadata(kind, object));
    match kind {
        "Secret" => {
            let data = object.pointer("/data").and_then(Value::as_object).into_iter().flatten();
            let digests = data.map(|(name, value)| (name.clone(), digest(value).into()));
            kept.insert("data".to_owned(), Value::Object(digests.collect()));
            kept.insert("type".to_owned(), object.get("type").cloned().unwrap_or_default());
        }
        "FerrVaultSecret" | "FerrVaultConnection" => {
            for field in ["spec", "status"] {
                kept.insert(field.to_owned(), object.get(field).cloned().unwrap_or_default());
            }
        }
        _ => {
            let template = object.pointer("/spec/template/metadata/annotations").cloned().unwrap_or_default();
            kept.insert("template".to_owned(), template);
        }
    }
    Value::Object(kept)
}

fn metadata(kind: &str, object: &Value) -> Value {
    let mut kept = Map::new();
    let fields = object.get("metadata").and_then(Value::as_object).into_iter().flatten();
    for (name, field) in fields {
        let keeps = match name.as_str() {
            "labels" | "finalizers" | "ownerReferences" => true,
            // The cluster's own controllers annotate workloads.
            "annotations" => kind == "Secret" || kind.starts_with("FerrVault"),
            // Those annotations count as a change of a Deployment.
            "generation" => kind != "Deployment",
            _ => false,
        };
        if keeps {
            kept.insert(name.clone(), field.clone());
        }
    }
    kept.insert("isLeaving".to_owned(), object.pointer("/metadata/deletionTimestamp").is_some().into());
    kept.insert("managed".to_owned(), managed(object));
    Value::Object(kept)
}

/// The fields that the API server holds for the operator's.
fn managed(object: &Value) -> Value {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let ours = entries.filter(|entry| cast::text(entry, "/manager").starts_with(OURS)).map(|entry| {
        let of = |pointer| cast::text(entry, pointer);
        let door = format!("{} {} {}", of("/manager"), of("/operation"), of("/subresource"));
        (door, entry.get("fieldsV1").cloned().unwrap_or_default())
    });
    Value::Object(ours.collect())
}

fn digest(value: &Value) -> String {
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    let digest = Sha256::digest(bytes);
    digest.iter().take(DIGEST).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What a namespace looks like.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture(BTreeMap<String, Value>);

/// Something that is one thing here and another there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The object and the place in it.
    pub place: String,
    /// What the simulation has there.
    pub simulated: String,
    /// What the real cluster has there.
    pub real: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: simulated {}, real {}", self.place, self.simulated, self.real)
    }
}

impl Picture {
    /// Where `real` is not like this.
    pub fn differences(&self, real: &Self) -> Vec<Difference> {
        let (here, there) = (self.leaves(), real.leaves());
        let places: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
        let shown = |leaf: Option<&String>| leaf.cloned().unwrap_or_else(|| "nothing".to_owned());
        let difference = |place: &&String| {
            let (simulated, real) = (here.get(*place), there.get(*place));
            let differs = simulated != real;
            differs.then(|| Difference { place: (*place).clone(), simulated: shown(simulated), real: shown(real) })
        };
        places.iter().filter_map(difference).collect()
    }

    /// How many objects are in it.
    pub fn objects(&self) -> usize {
        self.0.keys().filter(|key| key.contains(' ')).count()
    }

    fn leaves(&self) -> BTreeMap<String, String> {
        let mut leaves = BTreeMap::new();
        for (key, value) in &self.0 {
            gather(key, value, &mut leaves);
        }
        leaves
    }
}

fn gather(place: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                gather(&format!("{place}/{name}"), field, leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                gather(&format!("{place}/{index}"), item, leaves);
            }
        }
        // Absent, null and empty are the same to whoever reads an object.
        Value::Null | Value::Object(_) | Value::Array(_) => {}
        leaf => {
            leaves.insert(place.to_owned(), leaf.to_string());
        }
    }
}

/// What stands in a picture for the namespaces of a real play.
pub(super) fn stands_for(namespace: &str, system: &str, url: &str) -> Vec<(String, &'static str)> {
    // The longer name first: it begins with the other one.
    vec![(system.to_owned(), SYSTEM), (namespace.to_owned(), NS), (url.to_owned(), super::predict::URL)]
}

#[cfg(test)]
mod tests;
