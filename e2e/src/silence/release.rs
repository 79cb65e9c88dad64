//! The operator of a lab: which build of it, with which thresholds, started under the service account of its release; and
//! the alerts of that release, as its chart renders them where Prometheus is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use xtask::programs::Operator;
use xtask::repository;

use super::alerts::Rules;
use crate::objects;
use crate::own::Own;
use crate::proxy::Proxy;

/// How the operator is run.
#[derive(Clone, Debug)]
pub struct Mode {
    /// What its patience of minutes is divided by. 1: the program that ships, with the chart's values.
    pub haste: u32,
    /// The operator with hooks.
    pub hooked: Option<PathBuf>,
}

impl Mode {
    /// The program that ships, with every threshold as it is.
    pub fn shipped() -> Self {
        Self { haste: 1, hooked: None }
    }

    /// The program that ships; of thresholds only those are short that its flags make so, and those of the alerts.
    pub fn shipped_in_haste() -> Self {
        Self { haste: 10, hooked: None }
    }
}

impl Thresholds {
    /// What the chart is given. 45 s are a call to FerrVault with its retries (30.6 s) and a status after it; a minute is the
    /// least that an alert may wait.
    pub(super) fn values(self) -> Value {
        match self {
            Self::Default => json!({}),
            Self::Short => {
                json!({"reconcileTimeout": "45s", "metrics": {"prometheusRule": {"stuckAfterSeconds": STUCK_AFTER}}})
            }
        }
    }
}

/// `metrics.prometheusRule.stuckAfterSeconds` where thresholds are short.
pub const STUCK_AFTER: u32 = 60;

/// Which thresholds the release has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// Those of the chart.
    Default,
    /// The shortest that are accepted.
    Short,
}

/// Starts the operator behind the proxy, as pod `pod`, with its wishes in `hooks`.
pub(super) async fn start(own: &Own, proxy: &Proxy, mode: &Mode, hooks: &Path, pod: &str) -> Operator {
    let (cluster, release) = (&own.scene.cluster, &own.release);
    let kubeconfig = cluster.plane.kubeconfig_for_service_account_at(&release.namespace, &release.account, proxy.url());
    let kubeconfig = kubeconfig.await.unwrap();
    let log = cluster.new_folder("log").join(format!("{pod}.log"));
    let shipped = repository::operator_bin();
    let program = mode.hooked.as_ref().unwrap_or(&shipped);
    let env: &[(&str, &OsStr)] = &[("FERRVAULT_TEST_HOOKS", hooks.as_os_str())];
    let env = if mode.hooked.is_some() { env } else { &[] };
    let operator = Operator::start_program(program, env, &release.deployment, &kubeconfig, pod, &log).await.unwrap();
    own.scene.log(&log);
    operator
}

/// The rules of this very release, as its chart renders them where Prometheus is.
pub(super) async fn rules(own: &Own, values: &Value, haste: u32) -> Rules {
    let cluster = &own.scene.cluster;
    let mut all = json!({"watchNamespace": own.scene.name, "metrics": {
        "serviceMonitor": {"enabled": true}, "prometheusRule": {"enabled": true}}});
    objects::merge(&mut all, values.clone());
    let folder = cluster.new_folder("rules");
    let file = folder.join("values.json");
    std::fs::write(&file, all.to_string()).unwrap();
    let chart = repository::root().join("charts/ferrvault-operator").display().to_string();
    let (file, namespace) = (file.display().to_string(), &own.release.namespace);
    let args = ["template", &own.scene.name, &chart, "-n", namespace, "--kube-version", "1.33.0", "-f", &file];
    let text = cluster.plane.tools().helm(args).await.unwrap();
    let documents =
        text.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text.trim_start_matches("---\n")).unwrap());
    let rule = documents.into_iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
    let job = format!("{}-metrics", rule["metadata"]["name"].as_str().unwrap());
    Rules::new(&rule["spec"], namespace, &job, folder, haste)
}
