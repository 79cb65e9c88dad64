//! What happened in a run, call by call, in plain words.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ferrvault_testkit::{ApiServer, Call, Fate, Record, Verb};

use tokio::time::Instant;

use crate::cast;
use crate::server::Server;
use crate::world::World;

/// Lines beside the calls, each with the number of calls before it. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Notes {
    server: Server,
    born: Instant,
    lines: Arc<Mutex<Vec<(usize, Duration, String)>>>,
}

impl Notes {
    /// None yet. To be made in the moment in which the server is.
    pub(crate) fn of(server: &Server) -> Self {
        Self { server: server.clone(), born: Instant::now(), lines: Arc::default() }
    }

    /// One more line, as of now.
    pub(crate) fn add(&self, line: String) {
        let entry = (self.server.with(ApiServer::last_call).unwrap_or_default(), self.born.elapsed(), line);
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
}

/// The story of `world` so far: calls, answers of FerrVault, what people did, what became of Secrets and workloads.
pub(crate) fn tell(world: &World) -> String {
    let mut lines: Vec<(usize, Duration, String)> = Vec::new();
    for record in world.api.journal() {
        if cast::is_operator(&record.call.who) {
            lines.push((record.call.number, record.call.at, spelled(world, &record)));
        }
    }
    lines.extend(world.notes.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
    // Stable: what stands behind one call keeps its order.
    lines.sort_by_key(|(calls, _, _)| *calls);
    let mut text = String::new();
    for (_, at, line) in lines {
        let _ = writeln!(text, "{:>9.3} s  {line}", at.as_secs_f64());
    }
    text
}

fn spelled(world: &World, record: &Record) -> String {
    let call = &record.call;
    let place = world.faults.place_of(call.number).map_or_else(String::new, |place| format!("{place} "));
    let mut line = format!("{place}{} {}", call.who, deed(call));
    if !record.fault.is_empty() {
        let _ = write!(line, " [{}]", record.fault);
    }
    match &record.fate {
        Fate::Pending if call.verb == Verb::Watch => line.push_str(" -> open"),
        Fate::Pending => line.push_str(" -> no answer"),
        Fate::Answered(code) => {
            let _ = write!(line, " -> {code}");
        }
        Fate::Broken => line.push_str(" -> connection broken"),
    }
    line
}

fn deed(call: &Call) -> String {
    let verb = match call.verb {
        Verb::Get => "reads",
        Verb::List => "lists",
        Verb::Watch => "watches",
        Verb::Create => "creates",
        Verb::Update | Verb::Patch => "writes",
        Verb::Delete | Verb::DeleteCollection => "deletes",
        Verb::Other => "asks for",
    };
    let mut what = format!("{verb} {}", call.resource);
    if !call.subresource.is_empty() {
        let _ = write!(what, "/{}", call.subresource);
    }
    let name = match (call.namespace.as_str(), call.name.as_str()) {
        ("", "") => return what,
        ("", name) => name.to_owned(),
        (namespace, "") => format!("in {namespace}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    format!("{what} {name}")
}
