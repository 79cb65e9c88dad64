//! A real Kubernetes control plane for demo and tests: etcd and kube-apiserver, and on request controller-manager,
//! scheduler and a fake kubelet (kwok).
//!
//! It listens on 127.0.0.1 only, on ports of its own choice, keeps its data in a temporary folder, and is gone with all
//! its processes when it is dropped or when this process dies. Nothing in it is ever meant to last.

mod binaries;
pub mod build;
mod commands;
mod component;
mod credentials;
mod error;
pub mod foreground;
mod kubeconfig;
pub(crate) mod ports;
mod ready;
mod recipe;
mod running;
mod tokens;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

pub use binaries::{Binaries, KUBEBUILDER_ASSETS, Origin};
pub use component::Component;
pub use credentials::Token;
pub use error::Error;
pub use kubeconfig::{client, users_own};
pub use running::{Running, list, stop};
pub use tokens::{kubeconfig_for_service_account, service_account_token};
pub use tools::Tools;

use crate::process::{Launch, Process, ProcessError};
use commands::Ports;
use credentials::Credentials;

/// Starts in all, when a port that was free is taken at the moment it is needed. Losing twice in a row is bad luck,
/// three times is another problem, and its error is then shown.
const STARTS: usize = 3;

/// Set to anything, it leaves folder and logs in place after the end, for a person to look at.
const KEEP: &str = "FERRVAULT_KEEP_CONTROL_PLANE";

/// How the temporary folders are called, so that an abandoned one can be told from anything else.
const FOLDER_PREFIX: &str = "ferrvault-control-plane-";

/// What to start, and how.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Deployments get their pods, owned objects go with their owner, namespaces empty when deleted.
    pub controller_manager: bool,
    /// Pods get a node.
    pub scheduler: bool,
    /// There is a node, and its pods run at once.
    pub kwok: bool,
    /// Each request leaves a line of JSON here: who, what, and the answer's code.
    pub audit_log: Option<PathBuf>,
    /// More flags for kube-apiserver.
    pub extra_apiserver_args: Vec<String>,
    /// The programs; without them, those of `KUBEBUILDER_ASSETS` or those built before.
    pub binaries: Option<Binaries>,
}

impl StartOptions {
    /// Everything: Deployments become running pods.
    pub fn full() -> Self {
        Self { controller_manager: true, scheduler: true, kwok: true, ..Self::default() }
    }
}

/// A running control plane. Dropping it ends it.
pub struct ControlPlane {
    // The order matters: the processes go before the folder that they write into.
    apiserver: Mutex<Option<Process>>,
    others: Vec<Process>,
    apiserver_launch: Launch,
    client: kube::Client,
    ports: Ports,
    ca_pem: String,
    kubeconfig: PathBuf,
    binaries: Binaries,
    folder: Folder,
}

/// The temporary folder; kept on request.
struct Folder(TempDir);

impl Folder {
    fn new() -> Result<Self, Error> {
        let mut folder = tempfile::Builder::new()
            .prefix(FOLDER_PREFIX)
            .tempdir()
            .map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
        folder.disable_cleanup(std::env::var_os(KEEP).is_some());
        Ok(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl ControlPlane {
    /// Starts one and waits until it can be used.
    pub async fn start(options: StartOptions) -> Result<Self, Error> {
        let binaries = match options.binaries.clone() {
            Some(binaries) => binaries,
            None => Binaries::locate(None)?,
        };
        let mut starts = 1;
        loop {
            match Self::try_start(&options, binaries.clone()).await {
                Err(Error::Process(error)) if starts < STARTS && lost_a_port(&error) => starts += 1,
                outcome => return outcome,
            }
        }
    }

    async fn try_start(options: &StartOptions, binaries: Binaries) -> Result<Self, Error> {
        let folder = Folder::new()?;
        let path = folder.path();
        let [etcd, etcd_peer, apiserver, kwok] = ports::free()?;
        let ports = Ports { etcd, etcd_peer, apiserver, kwok };
        let credentials = Credentials::write(path)?;
        let ca_pem = credentials.ca_pem.clone();
        let kubeconfig = kubeconfig::write(
            path,
            "kubeconfig",
            &kubeconfig::cluster_entry(&ports.server(), &ca_pem),
            "admin",
            &credentials.admin,
        )?;
        credentials::write_private(path, "audit-policy.yaml", commands::AUDIT_POLICY)?;
        let audit_log = options.audit_log.as_deref();
        // All command lines first: what is missing shows before anything runs.
        let etcd_launch = commands::etcd(&binaries, path, ports)?;
        let apiserver_launch =
            commands::apiserver(&binaries, path, ports, &credentials, audit_log, &options.extra_apiserver_args)?;
        let mut later = Vec::new();
        if options.controller_manager {
            later.push(commands::controller_manager(&binaries, path, &kubeconfig, &credentials)?);
        }
        if options.scheduler {
            later.push(commands::scheduler(&binaries, path, &kubeconfig)?);
        }
        if options.kwok {
            later.push(commands::kwok(&binaries, path, &kubeconfig, ports)?);
        }

        let mut others = vec![etcd_launch.start()?];
        if let Some(etcd) = others.first() {
            ready::port_open(etcd, ports.etcd).await?;
        }
        let apiserver = apiserver_launch.start()?;
        let client = client(&kubeconfig).await?;
        ready::apiserver(&apiserver, &client).await?;
        for launch in later {
            others.push(launch.start()?);
        }
        let plane = Self {
            apiserver: Mutex::new(Some(apiserver)),
            others,
            apiserver_launch,
            client,
            ports,
            ca_pem,
            kubeconfig,
            binaries,
            folder,
        };
        plane.wait_for_the_others(options).await?;
        Ok(plane)
    }

    /// Waits for a sign of life of each component that serves nothing by itself.
    async fn wait_for_the_others(&self, options: &StartOptions) -> Result<(), Error> {
        if options.kwok {
            ready::create_node(&self.client).await?;
        }
        for process in &self.others {
            match process.name() {
                "kube-controller-manager" => ready::controller_manager(process, &self.client).await?,
                "kwok" => ready::node(process, &self.client, options.controller_manager).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The URL of its API server.
    pub fn server(&self) -> String {
        self.ports.server()
    }

    /// The CA that its API server's certificate verifies with.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The cluster entry of a kubeconfig for it.
    pub fn cluster_entry(&self) -> serde_json::Value {
        kubeconfig::cluster_entry(&self.server(), &self.ca_pem)
    }

    /// A client as its administrator. It belongs to the runtime that the control plane was started in; a test with a
    /// runtime of its own makes one from the kubeconfig, with [`client()`].
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The programs that it runs on.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The path of kubectl.
    pub fn kubectl_path(&self) -> Result<PathBuf, Error> {
        self.binaries.path(Component::Kubectl)
    }

    /// The path of helm.
    pub fn helm_path(&self) -> Result<PathBuf, Error> {
        self.binaries.path(Component::Helm)
    }

    /// kubectl and helm, as its administrator.
    pub fn tools(&self) -> Tools {
        Tools::new(self.binaries.clone(), Some(self.kubeconfig.clone()), None, self.folder.path().join("tools"))
    }

    /// Its temporary folder, which goes with it: data, logs, kubeconfigs. Others may put files there too.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Name and process id of everything that runs.
    pub fn processes(&self) -> Vec<(String, i32)> {
        let apiserver = self.slot();
        let all = self.others.iter().chain(apiserver.as_ref());
        all.filter(|process| process.is_running()).map(|process| (process.name().to_owned(), process.pid())).collect()
    }

    /// The first component that has ended by itself, as an error with its last words.
    pub async fn failure(&self) -> Option<Error> {
        let apiserver_ended = self.slot().as_ref().is_some_and(|process| !process.is_running());
        if apiserver_ended {
            let apiserver = self.slot().take()?;
            return Some(apiserver.ended_error().await.into());
        }
        let ended = self.others.iter().find(|process| !process.is_running())?;
        Some(ended.ended_error().await.into())
    }

    /// Takes the API server away at once, as an outage does. Everything stored stays.
    pub async fn stop_apiserver(&self) {
        let apiserver = self.slot().take();
        if let Some(apiserver) = apiserver {
            apiserver.kill().await;
        }
    }

    /// Brings the API server back, on the same port and with the same certificate, and waits until it is ready.
    pub async fn start_apiserver(&self) -> Result<(), Error> {
        self.stop_apiserver().await;
        let apiserver = self.apiserver_launch.start()?;
        // A client of the present runtime: the one of the start may be gone.
        let client = client(&self.kubeconfig).await?;
        let outcome = ready::apiserver(&apiserver, &client).await;
        *self.slot() = Some(apiserver);
        outcome
    }

    /// Lets the API server hang: connections stay open, nothing answers.
    pub fn freeze_apiserver(&self) -> bool {
        self.slot().as_ref().is_some_and(|apiserver| apiserver.signal(Signal::STOP))
    }

    /// Lets it go on.
    pub fn thaw_apiserver(&self) -> bool {
        self.slot().as_ref().is_some_and(|apiserver| apiserver.signal(Signal::CONT))
    }

    fn slot(&self) -> MutexGuard<'_, Option<Process>> {
        self.apiserver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // All at once; each one's own drop then only waits for its end.
        if let Some(apiserver) = self.slot().as_ref() {
            apiserver.signal(Signal::KILL);
        }
        for process in &self.others {
            process.signal(Signal::KILL);
        }
    }
}

/// Whether a program ended because somebody else took its port in the meantime.
fn lost_a_port(error: &ProcessError) -> bool {
    matches!(error, ProcessError::Ended { tail, .. } if tail.contains("address already in use"))
}

/// How long anything of a control plane may take to come up: seconds on an idle machine, and some dozens on one that
/// compiles on all its cores meanwhile.
pub(crate) const UP_WITHIN: Duration = Duration::from_mins(2);
