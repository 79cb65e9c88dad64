//! What must hold at every write of every run, whatever the run is about. Watched from outside: nothing here asks the
//! operator.
//!
//! - the operator deletes nothing, and writes no Secret that belongs to somebody else (I6)
//! - a Secret that it wrote is never empty and always says whose it is (I4)
//! - no version replaces another on a Secret before `lastRolloutHash` is on record (rule 3)
//! - no workload is stamped twice with one version for one resource (I2), nor changed in any other way
//! - `RolloutRestarted=True` beside `Ready=True Synced` only where the versions on record are the same (I5)
//! - neither a value nor the token is in anything but the data of a Secret, nor in any log (I8)

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, Once, PoisonError};

use ferrvault_api::marks;
use ferrvault_testkit::{ApiServer, WriteRecord};
use serde_json::Value;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// In every value and token of these tests, and in nothing that anybody but a pod may read.
pub(crate) const CANARY: &str = "canary";
/// How base64 begins for a value and for a token of these tests.
const ENCODED: [&str; 2] = ["Y2FuYXJ5", "ZmZ0X2Nhb"];

/// The process whose writes are looked at.
pub(crate) const OPERATOR: &str = "operator";

/// Whether `text` gives away a value or a token.
pub(crate) fn gives_away(text: &str) -> bool {
    text.contains(CANARY) || ENCODED.iter().any(|start| text.contains(start))
}

/// Looks at every write from now on. Violations are kept by the server.
pub(crate) fn watch(api: &ApiServer) {
    api.invariant("it deletes nothing", |write| {
        // Letting go of the last finalizer ends a delete that somebody else has asked for.
        let asked_for = |old: &Value| old["metadata"]["deletionTimestamp"].is_string();
        let deleted = write.who == OPERATOR && write.new.is_none() && !write.old.as_deref().is_some_and(asked_for);
        if deleted { Err("deleted".to_owned()) } else { Ok(()) }
    });
    api.invariant("nothing of a Secret's data is anywhere else", nothing_given_away);
    api.invariant("Secrets are ours, marked and never empty", secret_is_sound);
    let mut recorded = BTreeMap::new();
    api.invariant("a debt comes before a new version", move |write| debt_comes_first(&mut recorded, write));
    let mut stamped = BTreeSet::new();
    api.invariant("one stamp per workload and version", move |write| stamped_once(&mut stamped, write));
    api.invariant("nothing is owed where the status says so", status_is_true);
}

fn nothing_given_away(write: &WriteRecord) -> Result<(), String> {
    let (OPERATOR, Some(new)) = (write.who.as_str(), &write.new) else { return Ok(()) };
    let mut shown = (**new).clone();
    // A person may have put anything into a spec; what the operator says stands beside it.
    for own in ["data", "spec"] {
        if shown[own].is_object() && !write.resource.ends_with(".apps") {
            shown[own] = Value::Null;
        }
    }
    if gives_away(&shown.to_string()) { Err(shown.to_string()) } else { Ok(()) }
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

fn secret_is_sound(write: &WriteRecord) -> Result<(), String> {
    let (OPERATOR, "secrets", Some(new)) = (write.who.as_str(), write.resource.as_str(), &write.new) else {
        return Ok(());
    };
    let controller = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.into_iter().find(|owner| owner["controller"] == Value::Bool(true))
    };
    if let Some(old) = &write.old
        && let Some(owner) = controller(old)
        && owner["kind"] != "FerrVaultSecret"
    {
        return Err(format!("it belongs to {}", owner["kind"]));
    }
    if new["data"].as_object().is_none_or(serde_json::Map::is_empty) {
        return Err("it has no data".to_owned());
    }
    if annotation(new, marks::MANAGED_BY) != Some(marks::MANAGER) {
        return Err("it does not say whose it is".to_owned());
    }
    Ok(())
}

fn debt_comes_first(recorded: &mut BTreeMap<(String, String), bool>, write: &WriteRecord) -> Result<(), String> {
    let Some(new) = &write.new else { return Ok(()) };
    if write.resource == "ferrvaultsecrets.ferrvault.com" {
        let known = new["status"]["lastRolloutHash"].is_string();
        recorded.insert((write.namespace.clone(), write.name.clone()), known);
        return Ok(());
    }
    let (OPERATOR, "secrets", Some(old)) = (write.who.as_str(), write.resource.as_str(), &write.old) else {
        return Ok(());
    };
    let version = |object| annotation(object, marks::CONTENT_HASH);
    let owner = &new["metadata"]["ownerReferences"][0]["name"];
    let (Some(before), Some(after), Some(owner)) = (version(old), version(new), owner.as_str()) else { return Ok(()) };
    let on_record = recorded.get(&(write.namespace.clone(), owner.to_owned())).copied().unwrap_or_default();
    if before == after || on_record {
        return Ok(());
    }
    Err(format!("{before} became {after} with nothing on record"))
}

type Stamps = BTreeSet<(String, String, String)>;

fn stamped_once(stamped: &mut Stamps, write: &WriteRecord) -> Result<(), String> {
    let (OPERATOR, true, Some(old), Some(new)) =
        (write.who.as_str(), write.resource.ends_with(".apps"), &write.old, &write.new)
    else {
        return Ok(());
    };
    let without_stamps = |object: &Value| {
        let mut spec = object["spec"].clone();
        spec["template"]["metadata"]["annotations"] = Value::Null;
        spec
    };
    if without_stamps(old) != without_stamps(new) {
        return Err("more than annotations of the template changed".to_owned());
    }
    let all =
        |object: &Value| object["spec"]["template"]["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let before = all(old);
    let workload = format!("{} {}", write.resource, new["metadata"]["uid"]);
    for (name, value) in all(new) {
        let is_news = name.starts_with(marks::CONTENT_HASH) && before.get(&name) != Some(&value);
        if is_news && !stamped.insert((workload.clone(), name.clone(), value.to_string())) {
            return Err(format!("{name} was {value} once already"));
        }
    }
    Ok(())
}

fn status_is_true(write: &WriteRecord) -> Result<(), String> {
    let (OPERATOR, "ferrvaultsecrets.ferrvault.com", "status", Some(new)) =
        (write.who.as_str(), write.resource.as_str(), write.subresource.as_str(), &write.new)
    else {
        return Ok(());
    };
    let status = &new["status"];
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let is = |type_: &str, reason: &str| {
        conditions.iter().any(|c| c["type"] == type_ && c["status"] == "True" && c["reason"] == reason)
    };
    let says_settled = is("Ready", "Synced") && is("RolloutRestarted", "Restarted");
    if says_settled && status["contentHash"] != status["lastRolloutHash"] {
        return Err(format!("{} on the target, {} restarted for", status["contentHash"], status["lastRolloutHash"]));
    }
    Ok(())
}

/// Log lines of this process that give something away.
static LEAKS: Leaks = Mutex::new(Vec::new());

type Leaks = Mutex<Vec<String>>;

/// Listens to every log of this process, as loud as the operator can be told to be: its own crates in full, others at
/// `info`, and of the client library that logs bodies only the errors.
pub(crate) fn listen_to_logs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = tracing::subscriber::set_global_default(listener(Scan(&LEAKS)));
    });
}

/// What the logs gave away so far.
pub(crate) fn leaks() -> Vec<String> {
    LEAKS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn listener(scan: Scan) -> impl Subscriber + Send + Sync {
    let filter = EnvFilter::new(
        "info,ferrvault_api=trace,ferrvault_operator=trace,ferrvault_core=trace,ferrvault_vault=trace,kube_client::client=error",
    );
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(scan).finish()
}

#[derive(Clone, Copy)]
struct Scan(&'static Leaks);

impl io::Write for Scan {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if gives_away(&text) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.into_owned());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Scan {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

#[test]
fn the_canary_is_found_plain_and_encoded() {
    for (text, found) in [
        ("the value is canary-7f3a-1", true),
        ("data: Y2FuYXJ5LTdmM2EtMQ==", true),
        ("token ZmZ0X2NhbmFyeS10b2tlbg==", true),
        ("2 key(s) synced into db", false),
    ] {
        assert_eq!(gives_away(text), found, "{text}");
    }
}

#[test]
fn a_log_line_with_a_value_is_noticed() {
    static SEEN: Leaks = Mutex::new(Vec::new());
    tracing::subscriber::with_default(listener(Scan(&SEEN)), || {
        tracing::info!("all is well");
        tracing::warn!(value = "canary-7f3a", "something is wrong");
    });
    let seen = SEEN.lock().unwrap().clone();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].contains("something is wrong"), "{seen:?}");
}
