//! Where one way of stopping is tried: a namespace with two resources that have nothing in common, an operator of its own
//! behind a proxy, and somebody who looks at it every second.
//!
//! `shop` is what the fault is about: a Secret and a Deployment `web` that is restarted for it. `aside` reads another vault
//! through another connection and restarts another Deployment; it tells whether one thing that stands still holds up others.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use xtask::programs::Operator;

use super::alerts::Rules;
use super::look::{Look, Looks};
use super::release::{self, Mode, Thresholds};
use crate::canaries::fresh;
use crate::cluster::Cluster;
use crate::dev::MadeToken;
use crate::objects::{self, restart};
use crate::own::Own;
use crate::proxy::Proxy;

/// The resource that the fault is about.
pub const SHOP: &str = "shop";
/// The resource that it is not about.
pub const ASIDE: &str = "aside";
/// A resource that is made while something is wrong, where a class needs one.
pub const LATE: &str = "late";
/// The workload of `shop`.
pub const WEB: &str = "web";

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// One try.
pub struct Lab {
    /// The operator's release and namespace.
    pub own: Own,
    /// Between the operator and the API server.
    pub proxy: Proxy,
    /// The alerts.
    pub rules: Rules,
    /// How the operator is run.
    pub mode: Mode,
    /// The token of `shop`'s connection.
    pub token: RefCell<MadeToken>,
    operator: RefCell<Rc<Operator>>,
    logs: RefCell<Vec<PathBuf>>,
    looks: RefCell<Looks>,
    hooks: PathBuf,
    value: RefCell<String>,
    restarts: Cell<usize>,
    pods: Cell<u32>,
}

impl Lab {
    /// Sets everything up on `cluster`, until both resources are synced and every watch has been heard.
    pub async fn new(cluster: &Rc<Cluster>, label: &str, mode: Mode, thresholds: Thresholds) -> Self {
        let values = thresholds.values();
        let own = Own::new(cluster, label, values.clone()).await;
        let proxy = Proxy::start(&cluster.plane.server(), cluster.plane.ca_pem()).await;
        let rules = release::rules(&own, &values, if thresholds == Thresholds::Short { mode.haste } else { 1 }).await;
        let hooks = cluster.new_folder("hooks");
        std::fs::write(hooks.join("haste"), mode.haste.to_string()).unwrap();
        let operator = release::start(&own, &proxy, &mode, &hooks, "pod-0").await;
        operator.ready().await.unwrap();
        let logs = RefCell::new(vec![operator.process().log().to_owned()]);
        let lab = Self {
            own,
            logs,
            proxy,
            rules,
            mode,
            token: RefCell::new(MadeToken { id: String::new(), token: String::new() }),
            operator: RefCell::new(Rc::new(operator)),
            looks: RefCell::default(),
            hooks,
            value: RefCell::default(),
            restarts: Cell::new(0),
            pods: Cell::new(0),
        };
        lab.furnish(thresholds).await;
        lab
    }

    async fn furnish(&self, thresholds: Thresholds) {
        let (scene, dev) = (&self.own.scene, &self.own.scene.cluster.dev);
        // As people have it by default, or every five seconds.
        let interval = if thresholds == Thresholds::Default { Value::Null } else { json!("5s") };
        scene.workload("Deployment", WEB).await;
        scene.workload("Deployment", ASIDE).await;
        *self.token.borrow_mut() = scene.connect().await;
        let value = fresh("value");
        scene.set(&[("K", &value)]).await;
        *self.value.borrow_mut() = value;
        scene
            .resource(SHOP, json!({"rolloutRestart": [restart("Deployment", WEB)], "refreshInterval": interval}))
            .await;

        let vault = format!("{}-aside", scene.name);
        let id = dev.vault(&vault).await;
        dev.set(&id, &[("K", &fresh("aside"))]).await;
        let token = dev.token(&id).await;
        let secret = json!({"metadata": {"name": "aside-token"}, "stringData": {"token": token.token}});
        scene.create::<Secret>(secret).await;
        let mut connection = objects::connection(dev.url());
        objects::merge(
            &mut connection,
            json!({"metadata": {"name": ASIDE}, "spec": {"tokenSecretRef": {"name": "aside-token"}}}),
        );
        scene.create::<FerrVaultConnection>(connection).await;
        let spec = json!({"connectionRef": {"name": ASIDE}, "rolloutRestart": [restart("Deployment", ASIDE)],
                          "refreshInterval": interval});
        scene.create::<FerrVaultSecret>(objects::resource(ASIDE, &vault, spec)).await;
        scene.synced(SHOP).await;
        scene.synced(ASIDE).await;
    }

    /// The operator that runs now.
    pub fn operator(&self) -> Rc<Operator> {
        Rc::clone(&self.operator.borrow())
    }

    /// The operator's namespace and that of its resources are told apart from others by this.
    pub fn namespace(&self) -> &str {
        &self.own.scene.name
    }

    /// Puts another value into the vault: one more restart is due.
    pub async fn change(&self) {
        let value = fresh("value");
        self.own.scene.set(&[("K", &value)]).await;
        *self.value.borrow_mut() = value;
        self.restarts.set(self.restarts.get() + 1);
    }

    /// The value in the vault.
    pub fn value(&self) -> String {
        self.value.borrow().clone()
    }

    /// Restarts of `web` that are due in all.
    pub fn restarts(&self) -> usize {
        self.restarts.get()
    }

    /// Asks for a pass over a resource, as a person does; what `status.lastHandledRefresh` says when it has ended.
    pub async fn ask_for_a_pass(&self, name: &str) -> String {
        let wish = format!("{:08x}", fastrand::u32(..));
        let edit = json!({"metadata": {"annotations": {"ferrvault.com/refresh": wish}}});
        self.own.scene.edit::<FerrVaultSecret>(name, edit).await;
        wish
    }

    /// Opens a door of the operator's from within.
    pub fn wish(&self, what: &str, value: &str) {
        assert!(self.mode.hooked.is_some(), "{what} needs the operator with hooks");
        // Under another name first: it is looked at ten times a second.
        let file = self.hooks.join(what);
        std::fs::write(file.with_extension("new"), value).unwrap();
        std::fs::rename(file.with_extension("new"), file).unwrap();
    }

    /// Closes that door.
    pub fn unwish(&self, what: &str) {
        std::fs::remove_file(self.hooks.join(what)).unwrap();
    }

    /// Does what the kubelet does about red liveness: kills the operator and starts another.
    pub async fn restart_operator(&self) {
        self.operator().process().kill().await;
        self.pods.set(self.pods.get() + 1);
        let pod = format!("pod-{}", self.pods.get());
        let operator = release::start(&self.own, &self.proxy, &self.mode, &self.hooks, &pod).await;
        self.logs.borrow_mut().push(operator.process().log().to_owned());
        *self.operator.borrow_mut() = Rc::new(operator);
    }

    /// Everything that its operators logged.
    pub fn said(&self) -> String {
        self.logs.borrow().iter().map(|log| std::fs::read_to_string(log).unwrap()).collect()
    }

    /// Looks once, and hands what was seen to `judge`.
    #[allow(clippy::await_holding_refcell_ref, reason = "nobody else looks meanwhile")]
    pub async fn look<T>(&self, judge: impl FnOnce(&Look) -> T) -> T {
        let operator = self.operator();
        let mut looks = self.looks.borrow_mut();
        judge(looks.take(&operator, &self.own.scene).await)
    }

    /// Looks once a second for so many seconds.
    pub async fn look_on(&self, seconds: u32) {
        for _ in 0..seconds {
            tokio::time::sleep(EVERY).await;
            self.look(|_| ()).await;
        }
    }

    /// Everything that was seen so far.
    pub fn seen<T>(&self, judge: impl FnOnce(&Looks) -> T) -> T {
        judge(&self.looks.borrow())
    }

    /// Whether the other resource has a pass after `since`, within twice its interval from now.
    pub async fn aside_is_looked_at_since(&self, since: jiff::Timestamp) -> bool {
        for _ in 0..10 {
            let aside = self.own.scene.get::<FerrVaultSecret>(ASIDE).await;
            if aside.status.and_then(|status| status.last_attempted_at).is_some_and(|at| at.0 > since) {
                return true;
            }
            self.look_on(1).await;
        }
        false
    }

    /// What kubectl prints at this moment.
    pub async fn kubectl(&self, args: &[&str]) -> String {
        let args = [args, &["-n", self.namespace()]].concat();
        let tools = self.own.scene.cluster.plane.tools();
        tools.kubectl(args).await.unwrap_or_else(|error| error.to_string())
    }
}

/// Seconds, for tables.
pub fn seconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
}
