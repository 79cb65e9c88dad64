//! The operators of a storm: one, or several that stand by for each other; each slot has a service account token of its
//! own, so that the API server's audit log tells them apart.
//!
//! An operator that ends without having been told to is started again, and remembered: that is a fault.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::Value;
use xtask::programs::Operator;

use crate::own::Own;

/// The chart's default name of the lease.
const LEASE: &str = "ferrvault-operator.ferrvault.com";

/// Between two looks at the lease.
const LOOK: Duration = Duration::from_millis(100);

/// How long there may be no leader. After a kill the lease runs out within 20 s; the rest is for an API server that was
/// away, and for a machine that is busy.
const LEADER_WITHIN: Duration = Duration::from_mins(2);

/// How often one is started that ends by itself before the storm gives up.
const STARTS: usize = 20;

struct Slot {
    kubeconfig: PathBuf,
    pod: String,
    operator: Option<Operator>,
}

/// The operators.
pub struct Fleet<'o> {
    own: &'o Own,
    folder: PathBuf,
    slots: Vec<Slot>,
    starts: usize,
    logs: Vec<PathBuf>,
    ended: Vec<String>,
}

impl<'o> Fleet<'o> {
    /// A fleet with a slot per entry of `servers`, which is where its operator reaches the API server. None runs yet.
    pub async fn new(own: &'o Own, servers: &[&str]) -> Self {
        let cluster = &own.scene.cluster;
        let mut slots = Vec::new();
        for server in servers {
            let (namespace, account) = (&own.release.namespace, &own.release.account);
            let made = cluster.plane.kubeconfig_for_service_account_at(namespace, account, server).await;
            slots.push(Slot { kubeconfig: made.unwrap(), pod: String::new(), operator: None });
        }
        let folder = cluster.new_folder("fleet");
        Self { own, folder, slots, starts: 0, logs: Vec::new(), ended: Vec::new() }
    }

    /// Starts them all, and waits until one works.
    pub async fn start_all(&mut self) {
        for slot in 0..self.slots.len() {
            self.start(slot).await;
        }
        self.leader().await;
    }

    /// Starts the operator of a slot, as another pod than before. It listens when this returns, and need not be ready.
    pub async fn start(&mut self, slot: usize) {
        for _ in 0..STARTS {
            self.starts += 1;
            let pod = format!("storm-{}", self.starts);
            let log = self.folder.join(format!("{pod}.log"));
            let started = Operator::start(&self.own.release.deployment, &self.slots[slot].kubeconfig, &pod, &log).await;
            self.logs.push(log.clone());
            self.own.scene.log(&log);
            match started {
                Ok(operator) => {
                    let slot = &mut self.slots[slot];
                    (slot.pod, slot.operator) = (pod, Some(operator));
                    return;
                }
                Err(error) => self.ended.push(format!("{pod} while it started: {error}")),
            }
        }
        panic!("no operator starts: {}", self.ended.last().map_or("", String::as_str));
    }

    /// The slot of the operator that works. Waits for one; starts again who ended by itself.
    pub async fn leader(&mut self) -> usize {
        let started = Instant::now();
        loop {
            self.tend().await;
            if self.slots.len() == 1 {
                return 0;
            }
            let holder = self.holder().await;
            let leads = |slot: &Slot| slot.operator.is_some() && Some(&slot.pod) == holder.as_ref();
            if let Some(slot) = self.slots.iter().position(leads) {
                return slot;
            }
            assert!(
                started.elapsed() < LEADER_WITHIN,
                "no leader within {LEADER_WITHIN:?}; {holder:?} holds the lease"
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until another slot than `former` leads.
    pub async fn leader_after(&mut self, former: usize) -> usize {
        let started = Instant::now();
        loop {
            let leader = self.leader().await;
            if leader != former {
                return leader;
            }
            assert!(started.elapsed() < LEADER_WITHIN, "no other leader within {LEADER_WITHIN:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The pod that the lease names, if it can be read.
    pub async fn holder(&self) -> Option<String> {
        let leases: Api<Lease> = Api::namespaced(self.own.scene.cluster.client.clone(), &self.own.release.namespace);
        let lease = leases.get_opt(LEASE).await.ok().flatten()?;
        let holder = lease.spec?.holder_identity?;
        holder.split('_').next().map(str::to_owned)
    }

    /// The operator of a slot that runs.
    pub fn operator(&self, slot: usize) -> &Operator {
        self.slots[slot].operator.as_ref().expect("an operator that runs")
    }

    /// The pod of a slot.
    pub fn pod(&self, slot: usize) -> &str {
        &self.slots[slot].pod
    }

    /// What the API server's audit log calls the token of a slot.
    pub fn credential(&self, slot: usize) -> String {
        let kubeconfig: Value = serde_json::from_slice(&std::fs::read(&self.slots[slot].kubeconfig).unwrap()).unwrap();
        let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap();
        let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        format!("JTI={}", claims["jti"].as_str().unwrap())
    }

    /// The value of a metric without labels of the operator of a slot; nothing while it is not told yet.
    pub async fn metric(&self, slot: usize, name: &str) -> Option<f64> {
        let page = self.operator(slot).metrics().await.unwrap();
        page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// Kills the operator of a slot outright.
    pub async fn kill(&mut self, slot: usize) {
        if let Some(operator) = self.slots[slot].operator.take() {
            operator.process().kill().await;
        }
    }

    /// Ends the operator of a slot as Kubernetes does; anything but status 0 in time is remembered.
    pub async fn stop(&mut self, slot: usize) {
        if let Some(operator) = self.slots[slot].operator.take()
            && let Err(error) = operator.stop().await
        {
            self.ended.push(format!("{}: {error}", self.slots[slot].pod));
        }
    }

    /// Puts a new operator into a slot as a rolling update does: the new one is ready before the old one is told to end.
    /// `before_the_end` is called between the two.
    pub async fn replace(&mut self, slot: usize, before_the_end: impl AsyncFnOnce(&mut Self)) {
        let old = self.slots[slot].operator.take().expect("an operator that runs");
        let pod = self.slots[slot].pod.clone();
        self.start(slot).await;
        self.operator(slot).ready().await.unwrap();
        before_the_end(self).await;
        if let Err(error) = old.stop().await {
            self.ended.push(format!("{pod}: {error}"));
        }
    }

    /// Ends them all in order.
    pub async fn stop_all(&mut self) {
        for slot in 0..self.slots.len() {
            self.stop(slot).await;
        }
    }

    /// How many were started so far.
    pub fn starts(&self) -> usize {
        self.starts
    }

    /// The logs of all that were started so far.
    pub fn logs(&self) -> &[PathBuf] {
        &self.logs
    }

    /// What ended otherwise than it was told to, since this was asked last.
    pub async fn take_ended(&mut self) -> Vec<String> {
        self.tend().await;
        std::mem::take(&mut self.ended)
    }

    async fn tend(&mut self) {
        for slot in 0..self.slots.len() {
            let gone = |operator: &Operator| !operator.process().is_running();
            if self.slots[slot].operator.as_ref().is_some_and(gone) {
                let operator = self.slots[slot].operator.take().expect("it was looked at just now");
                self.ended.push(operator.process().ended_error().await.to_string());
                self.start(slot).await;
            }
        }
    }
}
