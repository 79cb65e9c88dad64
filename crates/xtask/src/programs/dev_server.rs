//! `ferrvault-dev serve`, and its verbs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use zeroize::Zeroizing;

use super::{Error, START_WITHIN, http_client};
use crate::process::{Launch, Process};
use crate::repository;

/// Between two looks for the ready file.
const POLL: Duration = Duration::from_millis(10);

/// A running `ferrvault-dev serve`.
pub struct DevServer {
    process: Process,
    data: PathBuf,
    ready: Ready,
    http: reqwest::Client,
}

/// What the server writes for scripts.
#[derive(Deserialize)]
struct Ready {
    url: String,
    admin_url: Option<String>,
    #[serde(deserialize_with = "wiped")]
    token: Zeroizing<String>,
}

fn wiped<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(from).map(Zeroizing::new)
}

/// What a reveal answers.
#[derive(Deserialize)]
struct Revealed {
    hits: Vec<Hit>,
}

#[derive(Deserialize)]
struct Hit {
    name: String,
    value: String,
}

/// Keys and values, for comparing only: never printed.
pub struct Values(pub Vec<(String, Zeroizing<Vec<u8>>)>);

impl DevServer {
    /// Starts it with its data below `folder` and `args` besides: on a free port, unless they say where.
    pub async fn start(folder: &Path, args: &[&str]) -> Result<Self, Error> {
        let data = folder.join("ferrvault");
        let ready = folder.join("ferrvault-dev.json");
        let at = |source| Error::File { path: ready.clone(), source };
        // That of an earlier one on the same data would be taken for this one's.
        match std::fs::remove_file(&ready) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(at(error)),
            _ => {}
        }
        let address: &[&str] = if args.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let process = Launch::new("ferrvault-dev", repository::dev_bin(), folder.join("ferrvault-dev.log"))
            .arg("serve")
            .arg("--data")
            .arg(&data)
            .args(address)
            .arg("--ready-file")
            .arg(&ready)
            .args(args)
            .without_env("FERRVAULT_DEV_DATA")
            .start()?;
        let text = appeared(&process, &ready).await?;
        let ready = serde_json::from_slice(&text).map_err(|error| at(error.into()))?;
        Ok(Self { process, data, ready, http: http_client()? })
    }

    /// Runs one of its verbs, with `input` on standard input, and returns what it printed.
    pub async fn verb(&self, args: &[&str], input: &str) -> Result<Zeroizing<String>, Error> {
        let program = repository::dev_bin();
        let mut command = tokio::process::Command::new(&program);
        command.args(args).env("FERRVAULT_DEV_DATA", &self.data);
        for variable in ["FERRVAULT_DEV_URL", "FERRVAULT_DEV_TOKEN", "FERRVAULT_DEV_CA"] {
            command.env_remove(variable);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let at = |source| Error::File { path: program.clone(), source };
        let mut child = command.spawn().map_err(at)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A verb that reads nothing may be gone before this is written.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(at)?;
        if output.status.success() {
            return Ok(Zeroizing::new(String::from_utf8_lossy(&output.stdout).into_owned()));
        }
        let says = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Verb { verb: args.iter().take(2).copied().collect::<Vec<_>>().join(" "), says })
    }

    /// Asks for all values of `vault`, the way the operator does, sorted by key.
    pub async fn reveal(&self, vault: &str, token: &str) -> Result<Values, Error> {
        let request = self.http.post(format!("{}/v1/operator/secrets/reveal", self.ready.url));
        let answer = async {
            let answer = request.bearer_auth(token).json(&json!({"vault": vault})).send().await?;
            answer.error_for_status()?.json::<Revealed>().await
        };
        let failed = |error: reqwest::Error| Error::Call { what: format!("reveal {vault}"), says: error.to_string() };
        let mut hits = answer.await.map_err(failed)?.hits;
        hits.sort_by(|one, other| one.name.cmp(&other.name));
        let keep = |hit: Hit| (hit.name, Zeroizing::new(hit.value.into_bytes()));
        Ok(Values(hits.into_iter().map(keep).collect()))
    }

    /// Base URL of its API.
    pub fn url(&self) -> &str {
        &self.ready.url
    }

    /// Base URL of its admin side, if it was started with one.
    pub fn admin_url(&self) -> Option<&str> {
        self.ready.admin_url.as_deref()
    }

    /// A token that may do everything on it.
    pub fn admin_token(&self) -> &str {
        &self.ready.token
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Where the verbs find it.
    pub fn data(&self) -> &Path {
        &self.data
    }
}

/// The content of the ready file, which appears as a whole once the server answers.
async fn appeared(process: &Process, ready: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let deadline = Instant::now() + START_WITHIN;
    loop {
        // Asked before reading: what it wrote before its end is then certainly there.
        let running = process.is_running();
        match std::fs::read(ready) {
            Ok(text) => return Ok(Zeroizing::new(text)),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::File { path: ready.to_owned(), source: error });
            }
            Err(_) if !running => return Err(process.ended_error().await.into()),
            Err(_) if Instant::now() >= deadline => {
                return Err(process.not_in_time("where it listens", START_WITHIN).into());
            }
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}
