//! The operator, started with the arguments of the chart's Deployment under the chart's service account.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;

use super::{Error, START_WITHIN, http_client};
use crate::process::{Launch, Process};
use crate::repository;

/// The grace period of the chart's pods: what an orderly end may take.
const GRACE: Duration = Duration::from_secs(30);

/// Between two looks at a probe.
const POLL: Duration = Duration::from_millis(50);

/// A running operator.
pub struct Operator {
    process: Process,
    http: reqwest::Client,
    probes: String,
    metrics: String,
}

impl Operator {
    /// Starts it as `deployment` would: same arguments, same service account (that of `kubeconfig`). Only the addresses
    /// differ, which here are free ports of this machine. Its log goes to `log`, which must not be there yet.
    pub async fn start(deployment: &Deployment, kubeconfig: &Path, pod: &str, log: &Path) -> Result<Self, Error> {
        Self::start_program(&repository::operator_bin(), &[], deployment, kubeconfig, pod, log).await
    }

    /// The same for another build of it, with these variables in its environment besides.
    pub async fn start_program(
        program: &Path,
        env: &[(&str, &OsStr)],
        deployment: &Deployment,
        kubeconfig: &Path,
        pod: &str,
        log: &Path,
    ) -> Result<Self, Error> {
        let args = container_of(deployment).and_then(|container| container.args.as_deref()).unwrap_or_default();
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        let launch = env
            .iter()
            .fold(Launch::new("ferrvault-operator", program, log), |launch, (name, value)| launch.env(name, value));
        let process = launch
            .args(args.iter().map(OsStr::new))
            // The last of two equal flags counts.
            .args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"])
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAMESPACE", namespace)
            .env("POD_NAME", pod)
            .start()?;
        let addresses = |line: &str| Some((address_in(line, "metrics")?, address_in(line, "probes")?));
        let (metrics, probes) = process.find_in_log("where it listens", START_WITHIN, addresses).await?;
        Ok(Self { process, http: http_client()?, probes, metrics })
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&self) -> Result<(), Error> {
        let deadline = Instant::now() + START_WITHIN;
        loop {
            let (status, says) = self.probe("readyz").await?;
            if status == 200 {
                return Ok(());
            }
            if !self.process.is_running() {
                return Err(self.process.ended_error().await.into());
            }
            if Instant::now() >= deadline {
                return Err(self.process.not_in_time(&format!("readiness ({says})"), START_WITHIN).into());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Status and text of `healthz` or `readyz`.
    pub async fn probe(&self, name: &str) -> Result<(u16, String), Error> {
        self.get(&self.probe_url(name)).await
    }

    /// The page of its metrics.
    pub async fn metrics(&self) -> Result<String, Error> {
        Ok(self.get(&self.metrics_url()).await?.1)
    }

    /// Where a probe of it is.
    pub fn probe_url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.probes)
    }

    /// Where its metrics are.
    pub fn metrics_url(&self) -> String {
        format!("http://{}/metrics", self.metrics)
    }

    async fn get(&self, url: &str) -> Result<(u16, String), Error> {
        let answer = async {
            let answer = self.http.get(url).send().await?;
            Ok((answer.status().as_u16(), answer.text().await?))
        };
        answer.await.map_err(|error: reqwest::Error| Error::Call { what: url.to_owned(), says: error.to_string() })
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Ends it as Kubernetes ends a pod; anything but status 0 within the grace period is an error.
    pub async fn stop(&self) -> Result<(), Error> {
        match self.process.terminate(GRACE).await? {
            Some(status) if status.success() => Ok(()),
            _ => Err(self.process.ended_error().await.into()),
        }
    }
}

/// The name of the service account that the pods of `deployment` run under.
pub fn account_of(deployment: &Deployment) -> &str {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.service_account_name.as_deref()).unwrap_or("default")
}

fn container_of(deployment: &Deployment) -> Option<&Container> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.containers.first()
}

/// The address in the field `name` of the line that the operator begins with, in either format of its log.
fn address_in(line: &str, name: &str) -> Option<String> {
    let after = [format!(" {name}="), format!("\"{name}\":\"")].iter().find_map(|field| line.split_once(field))?.1;
    let address = after.split(|c: char| c.is_whitespace() || c == '"' || c == ',').next()?;
    address.starts_with("127.0.0.1:").then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn where_it_listens_is_read_in_both_formats() {
        for line in [
            "INFO ferrvault_operator: started scope=All metrics=127.0.0.1:4000 probes=127.0.0.1:4001",
            r#"{"message":"started","metrics":"127.0.0.1:4000","probes":"127.0.0.1:4001"}"#,
        ] {
            assert_eq!(address_in(line, "metrics").as_deref(), Some("127.0.0.1:4000"), "{line}");
            assert_eq!(address_in(line, "probes").as_deref(), Some("127.0.0.1:4001"), "{line}");
        }
        assert_eq!(address_in("probes of the vault", "probes"), None);
    }
}
