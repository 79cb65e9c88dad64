//! One control plane with all that scenarios share on it: a dev server, admission policies that can be asked to refuse a
//! write, releases of the chart, and operators under their service accounts.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::control_plane::{Binaries, Component, ControlPlane, StartOptions};
use xtask::programs::{Operator, account_of};
use xtask::{crds, repository};

use crate::audit::{self, Request};
use crate::canaries::Canaries;
use crate::dev::Dev;
use crate::eventually::{SOON, eventually};
use crate::{objects, runner};

/// A control plane and what is on it.
pub struct Cluster {
    // The order matters: processes go before the folder that they write into.
    /// The FerrVault of every scenario that needs none of its own.
    pub dev: Dev,
    /// The control plane.
    pub plane: ControlPlane,
    /// Its administrator.
    pub client: Client,
    /// Values and tokens that were used.
    pub canaries: Canaries,
    audit: PathBuf,
    numbers: Cell<u32>,
    folder: TempDir,
}

/// A release of the chart.
#[derive(Clone)]
pub struct Release {
    /// The namespace it was installed into.
    pub namespace: String,
    /// The name of the operator's service account.
    pub account: String,
    /// As the chart rendered it.
    pub deployment: Deployment,
    kubeconfig: PathBuf,
}

impl Release {
    /// Who the operator is to the API server.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.account)
    }

    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

/// The programs of the control plane. Ends the scenario as skipped where the user's folder has no Helm: without it there
/// is no chart, and so no rights for the operator.
pub fn usable_binaries() -> Binaries {
    let binaries = Binaries::locate(None).unwrap();
    if !binaries.has(Component::Helm) {
        runner::skip("no helm");
    }
    binaries
}

impl Cluster {
    /// Starts one with a controller-manager, if there is any: owned objects go with their owner, deleted namespaces empty.
    pub async fn start() -> Self {
        let binaries = usable_binaries();
        Self::with(StartOptions {
            controller_manager: binaries.has(Component::KubeControllerManager),
            binaries: Some(binaries),
            ..StartOptions::default()
        })
        .await
    }

    /// Starts one with everything: Deployments become running pods.
    pub async fn full() -> Self {
        let binaries = usable_binaries();
        if let Some(missing) = binaries.missing().first() {
            runner::skip(format!("no {missing}"));
        }
        Self::with(StartOptions { binaries: Some(binaries), ..StartOptions::full() }).await
    }

    /// Starts one of etcd and API server only.
    pub async fn bare() -> Self {
        Self::with(StartOptions { binaries: Some(usable_binaries()), ..StartOptions::default() }).await
    }

    async fn with(options: StartOptions) -> Self {
        let folder = tempfile::Builder::new().prefix("ferrvault-e2e-").tempdir().unwrap();
        let audit = folder.path().join("audit.log");
        let plane = ControlPlane::start(StartOptions { audit_log: Some(audit.clone()), ..options }).await.unwrap();
        let canaries = Canaries::default();
        let dev = Dev::start(&folder.path().join("dev"), &[], &canaries).await;
        let client = plane.client();
        Self { dev, plane, client, canaries, audit, numbers: Cell::default(), folder }
    }

    /// Ends the scenario as skipped where nobody collects garbage.
    pub fn needs_controller_manager(&self) {
        if !self.plane.processes().iter().any(|(name, _)| name == Component::KubeControllerManager.name()) {
            runner::skip("no kube-controller-manager");
        }
    }

    /// A folder of its own for what somebody writes.
    pub fn new_folder(&self, label: &str) -> PathBuf {
        let folder = self.folder.path().join(self.name(label));
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    /// A name that nothing else here has.
    pub fn name(&self, label: &str) -> String {
        self.numbers.set(self.numbers.get() + 1);
        format!("{label}-{}", self.numbers.get())
    }

    /// Makes a namespace.
    pub async fn create_namespace(&self, name: &str) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.create(&PostParams::default(), &objects::typed(json!({"metadata": {"name": name}}))).await.unwrap();
    }

    /// Installs definitions without the chart, and waits until they are served.
    pub async fn install_definitions(&self, definitions: impl IntoIterator<Item = CustomResourceDefinition>) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for definition in definitions {
            let name = definition.metadata.name.clone().unwrap();
            api.create(&PostParams::default(), &definition).await.unwrap();
            let established = async || {
                let now = api.get(&name).await.map_err(|error| error.to_string())?;
                let conditions = now.status.and_then(|status| status.conditions).unwrap_or_default();
                let served = conditions.iter().any(|it| it.type_ == "Established" && it.status == "True");
                served.then_some(()).ok_or_else(|| "not established".to_owned())
            };
            eventually(&format!("{name} is served"), SOON, established).await;
        }
    }

    /// Installs the chart's own definitions.
    pub async fn install_current_definitions(&self) {
        self.install_definitions(crds::definitions()).await;
    }

    /// Installs the chart as release `name` into a namespace of its own, with these values besides `replicaCount: 0`:
    /// the operator runs beside the cluster, under the service account and the rights that the chart makes.
    pub async fn install(&self, name: &str, values: Value) -> Release {
        let namespace = format!("{name}-system");
        let mut all = json!({"replicaCount": 0});
        objects::merge(&mut all, values);
        let file = self.folder.path().join(format!("{name}-values.json"));
        std::fs::write(&file, all.to_string()).unwrap();
        let chart = repository::root().join("charts/ferrvault-operator");
        let (chart, file) = (chart.display().to_string(), file.display().to_string());
        let args = ["install", name, &chart, "-n", &namespace, "--create-namespace", "--take-ownership", "-f", &file];
        self.plane.tools().helm(args).await.unwrap();
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &namespace);
        let deployment = deployments.list(&kube::api::ListParams::default()).await.unwrap().items.remove(0);
        let account = account_of(&deployment).to_owned();
        let kubeconfig = self.plane.kubeconfig_for_service_account(&namespace, &account).await.unwrap();
        Release { namespace, account, deployment, kubeconfig }
    }

    /// Starts the operator of a release, without waiting for it to be ready.
    pub async fn start_operator(&self, release: &Release, pod: &str) -> Operator {
        let log = self.folder.path().join(format!("{}.log", self.name(&format!("{}-{pod}", release.namespace))));
        Operator::start(&release.deployment, &release.kubeconfig, pod, &log).await.unwrap()
    }

    /// The API server's audit log.
    pub fn audit_log(&self) -> &Path {
        &self.audit
    }

    /// The requests that were made so far.
    pub fn requests(&self) -> Vec<Request> {
        audit::read(&self.audit)
    }

    /// The logs of the programs that ran here so far: operators and dev servers.
    pub fn logs(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let (folders, files): (Vec<_>, Vec<_>) = folders.partition(|path| path.is_dir());
        let below = folders.into_iter().map(|folder| folder.join("ferrvault-dev.log")).filter(|log| log.is_file());
        files.into_iter().filter(|file| file.extension().is_some_and(|it| it == "log")).chain(below).collect()
    }

    /// The requests that `user` made so far.
    pub fn requests_of(&self, user: &str) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.user == user);
        requests
    }

    /// Lets [`objects::SEALED`] objects refuse what they are sealed against, and waits until that works.
    pub async fn install_seals(&self) {
        for (kind, object) in objects::seals() {
            self.create_raw(kind, object).await;
        }
        self.create_namespace("seals").await;
        let workloads: Api<Deployment> = Api::namespaced(self.client.clone(), "seals");
        let probe = objects::workload("Deployment", "probe");
        let mut probe: Deployment = objects::typed(probe);
        probe.metadata.labels = Some([(objects::SEALED.to_owned(), "true".to_owned())].into());
        workloads.create(&PostParams::default(), &probe).await.unwrap();
        let dry = kube::api::PatchParams { dry_run: true, ..kube::api::PatchParams::default() };
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}});
        let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(self.client.clone(), "seals");
        let sealed = objects::typed(json!({"metadata": {"name": format!("{}probe", objects::SEALED_NAME)}}));
        let refused = async || {
            let workload = workloads.patch("probe", &dry, &kube::api::Patch::Merge(&patch)).await;
            let secret = secrets.create(&PostParams { dry_run: true, ..PostParams::default() }, &sealed).await;
            if workload.is_err() && secret.is_err() { Ok(()) } else { Err("not refused yet".to_owned()) }
        };
        eventually("sealed objects refuse changes", SOON, refused).await;
    }

    async fn create_raw(&self, kind: &str, object: Value) {
        let gvk = kube::core::GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        let resource = kube::core::ApiResource::from_gvk_with_plural(
            &gvk,
            if kind.ends_with('y') { "validatingadmissionpolicies" } else { "validatingadmissionpolicybindings" },
        );
        let api: Api<kube::core::DynamicObject> = Api::all_with(self.client.clone(), &resource);
        api.create(&PostParams::default(), &objects::typed(object)).await.unwrap();
    }
}
