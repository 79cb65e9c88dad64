//! What all scenarios of a run share, started when it is first needed: a cluster whose one operator watches everything, as
//! the chart installs it by default, and a cluster where each scenario brings an operator of its own.

use std::rc::Rc;

use serde_json::json;
use tokio::sync::OnceCell;
use xtask::programs::Operator;

use crate::cluster::{self, Cluster, Release};

/// The default installation.
pub struct Installed {
    // Before the cluster that it works for.
    /// The operator.
    pub operator: Operator,
    /// Its release.
    pub release: Release,
    /// Where.
    pub cluster: Rc<Cluster>,
}

/// The shared part of all scenarios.
#[derive(Default)]
pub struct World {
    installed: OnceCell<Option<Installed>>,
    apart: OnceCell<Option<Rc<Cluster>>>,
}

impl World {
    /// The cluster with the default installation.
    pub async fn installed(&self) -> &Installed {
        cluster::usable_binaries();
        let started = self.installed.get_or_init(|| once(start_default())).await;
        started.as_ref().expect("the default installation started")
    }

    /// The cluster without an operator.
    pub async fn apart(&self) -> Rc<Cluster> {
        cluster::usable_binaries();
        let started = self.apart.get_or_init(|| once(start_apart())).await;
        Rc::clone(started.as_ref().expect("the cluster started"))
    }

    /// The cluster without an operator, if a scenario of this run needed it.
    pub fn apart_if_started(&self) -> Option<Rc<Cluster>> {
        self.apart.get().and_then(Clone::clone)
    }
}

/// Nothing after a panic, so that the next scenario fails at once instead of trying the same again.
async fn once<T>(start: impl Future<Output = T>) -> Option<T> {
    // Boxed: what it awaits is large, and everybody who waits for it would carry that.
    let start = std::panic::AssertUnwindSafe(Box::pin(start));
    let caught = futures::FutureExt::catch_unwind(start).await;
    caught.ok()
}

async fn start_default() -> Installed {
    let cluster = Cluster::start().await;
    cluster.install_seals().await;
    let release = cluster.install("ferrvault-operator", json!({})).await;
    let operator = cluster.start_operator(&release, "default").await;
    operator.ready().await.unwrap();
    Installed { operator, release, cluster: Rc::new(cluster) }
}

async fn start_apart() -> Rc<Cluster> {
    let cluster = Cluster::start().await;
    cluster.install_current_definitions().await;
    Rc::new(cluster)
}
