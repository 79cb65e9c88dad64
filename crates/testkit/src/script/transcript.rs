//! Running the script, and writing down what came back in a form that two servers can share.

use std::collections::BTreeMap;

use http_body_util::BodyExt as _;
use regex::Regex;
use serde_json::{Value, json};

use super::{Show, Step, steps};
use crate::object;

/// What has been seen so far: placeholders of later steps, and names for what differs between servers.
struct Memory {
    namespace: String,
    /// Value of `{rv:<name>}` and `{uid:<name>}`, by name of the object.
    objects: BTreeMap<String, (String, String)>,
    /// `{continue}`.
    token: String,
    revisions: Vec<String>,
    uids: Vec<String>,
    generated: Vec<String>,
    patterns: Vec<(Regex, &'static str)>,
}

/// Runs the script in `namespace`, which is made for it, and returns the transcript, one line per answer.
///
/// The custom resources of the product must be installed. An `Err` says that a request got no answer at all.
pub async fn run(client: &kube::Client, namespace: &str) -> Result<Vec<String>, String> {
    let mut memory = Memory {
        namespace: namespace.to_owned(),
        objects: BTreeMap::new(),
        token: String::new(),
        revisions: Vec::new(),
        uids: Vec::new(),
        generated: Vec::new(),
        patterns: patterns(),
    };
    let about = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let setup = Step::post("the namespace of the run", "/api/v1/namespaces", about).showing(Show::Reason);
    let mut lines = Vec::new();
    for step in std::iter::once(setup).chain(steps()) {
        lines.push(memory.take(client, &step).await?);
    }
    Ok(lines)
}

impl Memory {
    async fn take(&mut self, client: &kube::Client, step: &Step) -> Result<String, String> {
        let path = self.filled(&step.path);
        let body = serde_json::from_str(&self.filled(&step.body.to_string())).map_err(|error| error.to_string())?;
        let request = step.request(&path, &body).map_err(|error| error.to_string())?;
        let response = client.send(request).await.map_err(|error| format!("{}: {error}", step.what))?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.map_err(|error| format!("{}: {error}", step.what))?.to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let shown = match serde_json::from_str::<Value>(&text) {
            Ok(mut answer) => {
                self.learn(&answer);
                settle(&mut answer);
                self.leveled(reduced(answer, step.show)).to_string()
            }
            // A watch: one event per line. Bookmarks come when they come.
            Err(_) if step.path.contains("watch=true") => {
                let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let events = events.filter(|event| object::text(event, "/type") != "BOOKMARK");
                let events: Vec<Value> = events.map(|event| self.leveled(event)).collect();
                Value::Array(events).to_string()
            }
            Err(_) => text.trim().to_owned(),
        };
        Ok(format!("{}: {code} {}", step.what, self.anonymous(&shown)))
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.replace("{ns}", &self.namespace).replace("{continue}", &self.token);
        for (name, (revision, uid)) in &self.objects {
            text = text.replace(&format!("{{rv:{name}}}"), revision).replace(&format!("{{uid:{name}}}"), uid);
        }
        text
    }

    fn learn(&mut self, answer: &Value) {
        if !object::uid(answer).is_empty() {
            let known = (object::resource_version(answer).to_owned(), object::uid(answer).to_owned());
            self.objects.insert(object::name(answer).to_owned(), known);
        }
        let prefix = object::text(answer, "/metadata/generateName");
        if !prefix.is_empty() {
            self.generated.push(object::name(answer).to_owned());
        }
        let token = object::text(answer, "/metadata/continue");
        if !token.is_empty() {
            token.clone_into(&mut self.token);
        }
    }

    /// Replaces revisions and UIDs in their fields, where they can be told from other text.
    fn leveled(&mut self, mut value: Value) -> Value {
        self.level(&mut value);
        value
    }

    fn level(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                // The revision of a list is the server's, and moves by itself.
                let is_list = fields.contains_key("items");
                for (key, value) in fields.iter_mut() {
                    match (key.as_str(), value.as_str()) {
                        ("metadata", _) if is_list => {
                            let metadata = object::fields_mut(value);
                            for field in ["resourceVersion", "continue"] {
                                if let Some(slot) = metadata.get_mut(field) {
                                    *slot = format!("<{field}>").into();
                                }
                            }
                        }
                        ("resourceVersion", Some(revision)) => {
                            *value = format!("<revision {}>", place(&mut self.revisions, revision)).into();
                        }
                        ("uid", Some(uid)) => *value = format!("<uid {}>", place(&mut self.uids, uid)).into(),
                        _ => self.level(value),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.level(item);
                }
            }
            _ => {}
        }
    }

    /// Replaces what is left of the differences within text.
    fn anonymous(&self, text: &str) -> String {
        let mut text = text.replace(&self.namespace, "<namespace>");
        for (at, uid) in self.uids.iter().enumerate() {
            text = text.replace(uid, &format!("<uid {at}>"));
        }
        for (at, name) in self.generated.iter().enumerate() {
            text = text.replace(name, &format!("<generated {at}>"));
        }
        for (pattern, with) in &self.patterns {
            text = pattern.replace_all(&text, *with).into_owned();
        }
        text
    }
}

/// Removes what a real server says twice, and the order that depends on the second of a write.
fn settle(answer: &mut Value) {
    if let Some(Value::Array(causes)) = answer.pointer_mut("/details/causes") {
        causes.dedup();
    }
    if let Some(Value::Array(entries)) = answer.pointer_mut("/metadata/managedFields") {
        let who = |entry: &Value| {
            ["operation", "manager", "subresource"].map(|field| object::text(entry, &format!("/{field}")).to_owned())
        };
        entries.sort_by_key(who);
    }
}

/// What differs between servers within text, and what stands for it.
fn patterns() -> Vec<(Regex, &'static str)> {
    let patterns = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
        (r"resource version: \d+, current: \d+", "resource version: <n>, current: <n>"),
        (r"(in precondition|in record|in the precondition) \(\d+\)", "$1 (<n>)"),
        (r"Key: /[^,]*, ", ""),
        // Fields come in another order there.
        (r#"Invalid value: (\\?"\{.*?\}\\?"|\[\{.*?\}\]): "#, "Invalid value: <the object>: "),
        (r#""manager":"(unknown|Go-http-client|record)""#, r#""manager":"<unnamed>""#),
    ];
    patterns.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
}

fn place(known: &mut Vec<String>, value: &str) -> usize {
    known.iter().position(|one| one == value).unwrap_or_else(|| {
        known.push(value.to_owned());
        known.len() - 1
    })
}

/// The part of an answer that is compared.
fn reduced(mut answer: Value, show: Show) -> Value {
    match show {
        Show::All => answer,
        Show::Reason => answer.get("reason").cloned().unwrap_or_default(),
        Show::Metadata if answer.get("kind") == Some(&"Status".into()) => answer,
        Show::Metadata => {
            object::map_mut(&mut answer, "metadata").remove("managedFields");
            json!({ "metadata": answer.get("metadata"), "status": answer.get("status") })
        }
    }
}
