//! kubectl and helm, pointed at one cluster and kept away from the user's own settings and caches.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::{Binaries, Component, Error};

/// A `helm install` that waits for hooks is the slowest of these calls and takes seconds.
const LIMIT: Duration = Duration::from_mins(2);

/// Names the folder in which kubectl remembers what a cluster serves; without it that is below the user's home.
pub(crate) const KUBECACHEDIR: &str = "KUBECACHEDIR";

/// The command line tools for one cluster.
#[derive(Clone, Debug)]
pub struct Tools {
    binaries: Binaries,
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    home: PathBuf,
}

impl Tools {
    /// Tools for the cluster of `kubeconfig`, or of the user's own one, in `context` or in its current one; caches go
    /// below `home`.
    pub fn new(binaries: Binaries, kubeconfig: Option<PathBuf>, context: Option<String>, home: PathBuf) -> Self {
        Self { binaries, kubeconfig, context, home }
    }

    /// What a person types so that a kubectl of their own keeps its cache where these do.
    pub fn export_of_cache(&self) -> String {
        format!("export {KUBECACHEDIR}={}", self.kubectl_cache().display())
    }

    fn kubectl_cache(&self) -> PathBuf {
        self.home.join("kubectl")
    }

    /// Runs kubectl and returns what it wrote. Values never go into arguments, which errors show: see `kubectl_with`.
    pub async fn kubectl<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String, Error> {
        self.run(Component::Kubectl, "--context", args, None).await
    }

    /// Runs kubectl with `input` on its standard input.
    pub async fn kubectl_with<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: &str,
    ) -> Result<String, Error> {
        self.run(Component::Kubectl, "--context", args, Some(input)).await
    }

    /// Runs helm and returns what it wrote.
    pub async fn helm<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String, Error> {
        self.run(Component::Helm, "--kube-context", args, None).await
    }

    async fn run<A: AsRef<OsStr>>(
        &self,
        component: Component,
        context_flag: &str,
        args: impl IntoIterator<Item = A>,
        input: Option<&str>,
    ) -> Result<String, Error> {
        let program = self.binaries.path(component)?;
        let mut command = Command::new(&program);
        if let Some(context) = &self.context {
            command.arg(context_flag).arg(context);
        }
        command
            .args(args)
            .env(KUBECACHEDIR, self.kubectl_cache())
            .env("HELM_CACHE_HOME", self.home.join("helm/cache"))
            .env("HELM_CONFIG_HOME", self.home.join("helm/config"))
            .env("HELM_DATA_HOME", self.home.join("helm/data"))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let shown = shown(component, &command);
        let output = match tokio::time::timeout(LIMIT, output(command, input)).await {
            Ok(result) => result.map_err(|source| Error::File { path: program, source })?,
            Err(_) => {
                return Err(Error::NotInTime { what: format!("the end of `{shown}`"), seconds: LIMIT.as_secs() });
            }
        };
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let says = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Error::Tool { command: shown, says })
        }
    }
}

async fn output(mut command: Command, input: Option<&str>) -> std::io::Result<Output> {
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    let feed = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A child that ends without reading says itself why; its broken pipe would only hide that.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let ((), output) = tokio::join!(feed, child.wait_with_output());
    output
}

/// The command as a person would type it.
fn shown(component: Component, command: &Command) -> String {
    let mut text = component.name().to_owned();
    for arg in command.as_std().get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}
