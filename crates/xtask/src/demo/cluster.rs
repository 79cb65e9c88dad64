//! The cluster that the story is played on: one of our own, or one of the user's.
//!
//! On a user's cluster the operator watches the story's namespace only, and nothing is touched that was there before: a
//! cluster that already knows FerrVault's definitions is refused, because an operator may be at work there.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, CustomResourceExt as _};
use serde_json::Value;
use tempfile::TempDir;

use super::objects::{NAMESPACE, RELEASE, SYSTEM};
use super::{Error, narrate};
use crate::control_plane::{self, Binaries, ControlPlane, StartOptions, Tools};
use crate::repository;

/// A cluster to play on.
pub(super) struct Cluster {
    pub(super) client: kube::Client,
    pub(super) tools: Tools,
    pub(super) binaries: Binaries,
    /// Logs, data and kubeconfigs of the demo.
    pub(super) folder: TempDir,
    /// How to reach its API server, for kubeconfigs of others.
    entry: Value,
    /// Ours, unless it is the user's.
    pub(super) plane: Option<ControlPlane>,
    context: Option<String>,
}

impl Cluster {
    /// Starts one, or looks at the one of `context`.
    pub(super) async fn prepare(context: Option<&str>, binaries: Binaries) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("ferrvault-demo-")
            .tempdir()
            .map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
        match context {
            None => Self::own(binaries, folder).await,
            Some(context) => Self::users(context, binaries, folder).await,
        }
    }

    async fn own(binaries: Binaries, folder: TempDir) -> Result<Self, Error> {
        narrate::heading("A Kubernetes control plane on this machine");
        let started = std::time::Instant::now();
        let options = StartOptions { binaries: Some(binaries.clone()), ..StartOptions::full() };
        let plane = ControlPlane::start(options).await?;
        narrate::observed(&format!("{} is ready, and a node to run pods on", plane.server()), started.elapsed());
        let client = plane.client();
        let entry = plane.cluster_entry();
        Ok(Self { client, tools: plane.tools(), binaries, folder, entry, plane: Some(plane), context: None })
    }

    async fn users(context: &str, binaries: Binaries, folder: TempDir) -> Result<Self, Error> {
        narrate::heading(&format!("The cluster of the context {context}"));
        let (client, entry) = control_plane::users_own(context).await?;
        refuse_what_is_there(&client).await?;
        let tools = Tools::new(binaries.clone(), None, Some(context.to_owned()), folder.path().join("tools"));
        narrate::line("nothing of FerrVault's is there yet; what the demo makes goes again when it ends");
        Ok(Self { client, tools, binaries, folder, entry, plane: None, context: Some(context.to_owned()) })
    }

    /// Installs the chart. Its Deployment is left without pods: the operator runs beside the cluster as a process, under
    /// the service account and the rights that this chart makes.
    pub(super) async fn install_chart(&self) -> Result<(), Error> {
        let chart = repository::root().join("charts/ferrvault-operator");
        let watched = format!("watchNamespace={NAMESPACE}");
        let mut args = vec!["install", RELEASE, "charts/ferrvault-operator", "-n", SYSTEM, "--set", "replicaCount=0"];
        if self.plane.is_none() {
            // Rights in the story's namespace only, and no definitions left behind.
            args.extend(["--set", &watched, "--set", "crds.keep=false"]);
        }
        let typed = format!("helm {}", args.join(" "));
        let chart = chart.display().to_string();
        let args = args.into_iter().map(|arg| if arg == "charts/ferrvault-operator" { &chart } else { arg });
        self.tools.helm(args).await?;
        narrate::command(&typed, "");
        Ok(())
    }

    /// A kubeconfig for the service account, with a token that this user asks the API server for.
    pub(super) async fn kubeconfig_of(&self, namespace: &str, account: &str) -> Result<PathBuf, Error> {
        let folder = self.folder.path();
        let made = control_plane::kubeconfig_for_service_account(&self.client, &self.entry, folder, namespace, account);
        Ok(made.await?)
    }

    /// What a person types so that kubectl talks to this cluster.
    pub(super) fn exports(&self) -> Vec<String> {
        let path = format!("export PATH={}:$PATH", self.binaries.folder().display());
        // Or kubectl would remember this cluster below the user's home, long after it is gone.
        let cache = self.tools.export_of_cache();
        match (&self.plane, &self.context) {
            (Some(plane), _) => vec![format!("export KUBECONFIG={}", plane.kubeconfig().display()), cache, path],
            (None, Some(context)) => vec![format!("kubectl config use-context {context}")],
            (None, None) => Vec::new(),
        }
    }

    /// The folder for everything that the demo writes.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes from a user's cluster what the demo put there. Ours goes as a whole.
    pub(super) async fn clear_up(&self) -> Result<(), Error> {
        if self.plane.is_some() {
            return Ok(());
        }
        // Best effort, all of it: what is not there any more need not be removed.
        let _ = self.tools.helm(["uninstall", RELEASE, "-n", SYSTEM, "--ignore-not-found", "--wait"]).await;
        self.tools.kubectl(["delete", "namespace", NAMESPACE, SYSTEM, "--ignore-not-found", "--timeout=90s"]).await?;
        narrate::line(&format!("removed: the release {RELEASE}, its definitions, {NAMESPACE} and {SYSTEM}"));
        Ok(())
    }
}

/// Refuses a cluster on which the demo would get into somebody's way.
async fn refuse_what_is_there(client: &kube::Client) -> Result<(), Error> {
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |source| Error::Api { doing, source: Box::new(source) }
    };
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for name in [ferrvault_api::FerrVaultSecret::crd_name(), ferrvault_api::FerrVaultConnection::crd_name()] {
        let found = definitions.get_opt(name).await.map_err(failed("looking for FerrVault's definitions"))?;
        if found.is_some() {
            return Err(Error::Refused(format!(
                "this cluster has the definition {name} already, so an operator may be at work here and the demo would \
                 get into its way. Use a cluster without it, or no --context to have one of its own"
            )));
        }
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in [NAMESPACE, SYSTEM] {
        if namespaces.get_opt(name).await.map_err(failed("looking for the demo's namespaces"))?.is_some() {
            return Err(Error::Refused(format!(
                "this cluster has a namespace {name} already. If an earlier demo left it: \
                 kubectl delete namespace {NAMESPACE} {SYSTEM}"
            )));
        }
    }
    Ok(())
}
