//! Waits for the parts of a control plane, each by the sign that it can do its work, never by a pause that hopes.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::commands::NODE;
use super::{Error, UP_WITHIN};
use crate::process::Process;

/// Between two looks: a start takes two or three seconds, of which this adds one hundredth.
const POLL: Duration = Duration::from_millis(25);

/// How long one look may take; a server that is coming up sometimes accepts and then says nothing.
const LOOK: Duration = Duration::from_secs(2);

/// Asks `look` until it says yes, the process ends, or the time is over.
async fn until<F>(process: &Process, wanted: &str, mut look: impl FnMut() -> F) -> Result<(), Error>
where
    F: Future<Output = bool>,
{
    let deadline = Instant::now() + UP_WITHIN;
    while !tokio::time::timeout(LOOK, look()).await.unwrap_or(false) {
        if !process.is_running() {
            return Err(process.ended_error().await.into());
        }
        if Instant::now() >= deadline {
            return Err(process.not_in_time(wanted, UP_WITHIN).into());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// The process accepts connections on its port.
pub(super) async fn port_open(process: &Process, port: u16) -> Result<(), Error> {
    until(process, "an open port", || async move {
        tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
    })
    .await
}

/// The API server says that it is ready, and the namespace that people start in exists.
pub(super) async fn apiserver(process: &Process, client: &kube::Client) -> Result<(), Error> {
    until(process, "readiness", || async {
        let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
            return false;
        };
        client.request_text(request).await.is_ok_and(|answer| answer == "ok")
    })
    .await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    until(process, "the namespace default", || async {
        namespaces.get_opt("default").await.is_ok_and(|found| found.is_some())
    })
    .await
}

/// The controller manager works: it has made the service account that each namespace gets.
pub(super) async fn controller_manager(process: &Process, client: &kube::Client) -> Result<(), Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until(process, "its first service account", || async {
        accounts.get_opt("default").await.is_ok_and(|found| found.is_some())
    })
    .await
}

/// Creates the node that kwok plays: bigger than anything a demo or test puts on it.
pub(super) async fn create_node(client: &kube::Client) -> Result<(), Error> {
    let size = json!({"cpu": "64", "memory": "256Gi", "pods": "10000"});
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "status": {"capacity": size, "allocatable": size},
    });
    let failed = |source| Error::Api { doing: "creating the node".to_owned(), source: Box::new(source) };
    let node: Node = serde_json::from_value(node).map_err(|error| failed(kube::Error::SerdeError(error)))?;
    Api::all(client.clone()).create(&PostParams::default(), &node).await.map_err(failed)?;
    Ok(())
}

/// The node is ready and, where somebody takes the taints off, free of them.
pub(super) async fn node(process: &Process, client: &kube::Client, untainted: bool) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    until(process, "a ready node", || async {
        let Ok(Some(node)) = nodes.get_opt(NODE).await else {
            return false;
        };
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        ready && (taints.is_empty() || !untainted)
    })
    .await
}
