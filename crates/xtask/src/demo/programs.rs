//! The two programs of the story: the dev server, and the operator under the chart's service account.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use zeroize::Zeroizing;

use super::Error;
use super::objects::{SYSTEM, VAULT};
use crate::control_plane::ports;
use crate::process::{Launch, Process};
use crate::repository;

/// Both programs start in well under a second; the rest is for a machine that is busy.
const START_WITHIN: Duration = Duration::from_secs(30);

/// The grace period of the chart's pods: what an orderly end may take.
const GRACE: Duration = Duration::from_secs(30);

/// One call to the dev server on this machine.
const CALL: Duration = Duration::from_secs(10);

/// A running `ferrvault-dev serve`.
pub(super) struct DevServer {
    process: Process,
    data: PathBuf,
    pub(super) url: String,
    http: reqwest::Client,
}

/// What the server writes for scripts; its admin token is not needed here.
#[derive(Deserialize)]
struct Ready {
    url: String,
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
pub(super) struct Values(pub(super) Vec<(String, Zeroizing<Vec<u8>>)>);

impl DevServer {
    /// Starts it on a free port, with its data below `folder`.
    pub(super) async fn start(folder: &Path) -> Result<Self, Error> {
        let data = folder.join("ferrvault");
        let ready = folder.join("ferrvault-dev.json");
        let process = Launch::new("ferrvault-dev", repository::dev_bin(), folder.join("ferrvault-dev.log"))
            .arg("serve")
            .arg("--data")
            .arg(&data)
            .args(["--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&ready)
            .without_env("FERRVAULT_DEV_DATA")
            .start()?;
        process.wait_for_line("ready", START_WITHIN).await?;
        let at = |source| Error::File { path: ready.clone(), source };
        let text = std::fs::read(&ready).map_err(at)?;
        let Ready { url } = serde_json::from_slice(&text).map_err(|error| at(error.into()))?;
        Ok(Self { process, data, url, http: http_client()? })
    }

    /// Runs one of its verbs, with `input` on standard input, and returns what it printed.
    pub(super) async fn verb(&self, args: &[&str], input: &str) -> Result<Zeroizing<String>, Error> {
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

    /// Asks for all values of the vault, the way the operator does, sorted by key.
    pub(super) async fn reveal(&self, token: &str) -> Result<Values, Error> {
        let request = self.http.post(format!("{}/v1/operator/secrets/reveal", self.url));
        let answer = async {
            let answer = request.bearer_auth(token).json(&json!({"vault": VAULT})).send().await?;
            answer.error_for_status()?.json::<Revealed>().await
        };
        let failed = |error: reqwest::Error| Error::Verb { verb: "serve".to_owned(), says: error.to_string() };
        let mut hits = answer.await.map_err(failed)?.hits;
        hits.sort_by(|one, other| one.name.cmp(&other.name));
        let keep = |hit: Hit| (hit.name, Zeroizing::new(hit.value.into_bytes()));
        Ok(Values(hits.into_iter().map(keep).collect()))
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Where the verbs find it.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }
}

/// The operator as a process.
pub(super) struct Operator {
    process: Process,
    pub(super) account: String,
}

impl Operator {
    /// Starts it as `deployment` would: same arguments, same service account. Only the addresses differ, which here are
    /// free ports of this machine.
    pub(super) async fn start(deployment: &Deployment, kubeconfig: &Path, folder: &Path) -> Result<Self, Error> {
        let account = account_of(deployment).to_owned();
        let args = container_of(deployment).and_then(|container| container.args.as_deref()).unwrap_or_default();
        let [metrics, probes] = ports::free()?;
        let process = Launch::new("ferrvault-operator", repository::operator_bin(), folder.join("operator.log"))
            .args(args.iter().map(OsStr::new))
            // The last of two equal flags counts.
            .arg(format!("--metrics-bind-address=127.0.0.1:{metrics}"))
            .arg(format!("--health-probe-bind-address=127.0.0.1:{probes}"))
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAMESPACE", SYSTEM)
            .env("POD_NAME", "demo")
            .start()?;
        let http = http_client()?;
        let ready = format!("http://127.0.0.1:{probes}/readyz");
        let deadline = std::time::Instant::now() + START_WITHIN;
        while !http.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success()) {
            if !process.is_running() {
                return Err(process.ended_error().await.into());
            }
            if std::time::Instant::now() >= deadline {
                return Err(process.not_in_time("readiness", START_WITHIN).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(Self { process, account })
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Ends it as Kubernetes ends a pod; anything but status 0 within the grace period is an error.
    pub(super) async fn stop(&self) -> Result<(), Error> {
        match self.process.terminate(GRACE).await? {
            Some(status) if status.success() => Ok(()),
            _ => Err(self.process.ended_error().await.into()),
        }
    }
}

/// The name of the service account that the pods of `deployment` run under.
pub(super) fn account_of(deployment: &Deployment) -> &str {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.service_account_name.as_deref()).unwrap_or("default")
}

fn container_of(deployment: &Deployment) -> Option<&Container> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.containers.first()
}

/// For loopback only: no proxy of the environment gets in between.
fn http_client() -> Result<reqwest::Client, Error> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let built = reqwest::Client::builder().no_proxy().timeout(CALL).build();
    built.map_err(|error| Error::Verb { verb: "serve".to_owned(), says: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_runs_as_the_deployment_says() {
        let deployment: Deployment = serde_json::from_value(json!({
            "spec": {"selector": {}, "template": {"spec": {
                "serviceAccountName": "op",
                "containers": [{"name": "operator", "args": ["--log-level=info"]}],
            }}},
        }))
        .unwrap();
        assert_eq!(account_of(&deployment), "op");
        assert_eq!(container_of(&deployment).unwrap().args.as_deref().unwrap(), ["--log-level=info"]);
        assert_eq!(account_of(&Deployment::default()), "default");
    }
}
