//! The story, act by act. Each act does one thing a person would do, and then waits until its effect is seen.

use std::path::PathBuf;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use zeroize::Zeroizing;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret};

use super::cluster::Cluster;
use super::objects::{
    CONNECTION, NAMESPACE, PODS, RELEASE, RESOURCE, ROTATED, STEADY, SYSTEM, TARGET, TOKEN_SECRET, VAULT,
};
use super::observe::{Look, observe};
use super::{Error, narrate, objects};
use crate::control_plane::client;
use crate::process::Process;
use crate::programs::{DevServer, Operator, account_of};

mod ending;
mod seen;
mod trace;

use seen::{Pods, Target};
use trace::{LOGGED, traces};

/// Passes to sit through after the restart before it is believed that it was the only one.
const QUIET_PASSES: usize = 2;

/// The story and everything that plays in it. The programs come last, so that they outlive nothing that they need.
pub(super) struct Story {
    operator: Option<Operator>,
    dev: Option<DevServer>,
    token: Zeroizing<String>,
    cluster: Cluster,
}

impl Story {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { operator: None, dev: None, token: Zeroizing::default(), cluster }
    }

    /// Plays it from the first act to the last.
    pub(super) async fn play(&mut self) -> Result<(), Error> {
        self.fill_a_vault().await?;
        self.install_the_operator().await?;
        self.connect().await?;
        let first = self.fetch_a_secret().await?;
        let pods = self.run_pods().await?;
        self.rotate(&first, &pods).await
    }

    async fn fill_a_vault(&mut self) -> Result<(), Error> {
        narrate::heading("FerrVault: a dev server with one vault of two secrets");
        let dev = DevServer::start(self.cluster.folder(), &[]).await?;
        narrate::line(&format!("ferrvault-dev serves at {}", dev.url()));
        self.dev_verb(&dev, &["vault", "create", VAULT], "").await?;
        let (user, password) = (format!("{STEADY}=shop"), format!("{ROTATED}=-"));
        // The value comes through standard input: arguments of a process are there for all to see.
        self.dev_verb(&dev, &["set", VAULT, &user, &password], "correct-horse-battery").await?;
        self.token = dev.verb(&["token", "create", "--vault", VAULT, "--role", "viewer"], "").await?;
        narrate::command(&format!("ferrvault-dev token create --vault {VAULT} --role viewer"), "(a token, not shown)");
        self.dev = Some(dev);
        Ok(())
    }

    async fn dev_verb(&self, dev: &DevServer, args: &[&str], input: &str) -> Result<(), Error> {
        let printed = dev.verb(args, input).await?;
        narrate::command(&format!("ferrvault-dev {}", args.join(" ")), &printed);
        Ok(())
    }

    async fn install_the_operator(&mut self) -> Result<(), Error> {
        narrate::heading("The operator: the chart, and a process under the service account that the chart made");
        for name in [SYSTEM, NAMESPACE] {
            self.create::<Namespace>(Api::all(self.cluster.client.clone()), objects::namespace(name)).await?;
        }
        self.cluster.install_chart().await?;
        let deployments: Api<Deployment> = Api::namespaced(self.cluster.client.clone(), SYSTEM);
        let deployment = deployments.get(RELEASE).await.map_err(failed("reading the operator's Deployment"))?;
        let account = account_of(&deployment);
        let kubeconfig = self.cluster.kubeconfig_of(SYSTEM, account).await?;
        let operator = Operator::start(&deployment, &kubeconfig, "demo", &self.log()).await?;
        operator.ready().await?;
        narrate::line(&format!("ferrvault-operator runs as {SYSTEM}/{account} and says that it is ready"));
        narrate::line(&format!(
            "its probes: {} and /readyz; its metrics: {}",
            operator.probe_url("healthz"),
            operator.metrics_url()
        ));
        let as_operator = client(&kubeconfig).await?;
        for (verb, group, resource, allowed) in [
            ("patch", "apps", "deployments", true),
            ("list", "apps", "deployments", false),
            ("delete", "", "secrets", false),
        ] {
            if may(&as_operator, verb, group, resource).await? != allowed {
                let but = if allowed { "may not" } else { "may" };
                return Err(Error::Refused(format!(
                    "the operator {but} {verb} {resource}: the chart's rights are wrong"
                )));
            }
            narrate::line(&format!("it {} {verb} {resource}", if allowed { "may" } else { "may not" }));
        }
        self.operator = Some(operator);
        Ok(())
    }

    async fn connect(&mut self) -> Result<(), Error> {
        narrate::heading("A FerrVaultConnection: where FerrVault is, and the token to ask with");
        // Through the API and not through kubectl's arguments: nobody sees the token.
        let token = serde_json::json!({
            "metadata": {"name": TOKEN_SECRET, "namespace": NAMESPACE},
            "stringData": {"token": self.token.trim()},
        });
        self.create::<Secret>(self.here(), token).await?;
        let url = self.dev()?.url().to_owned();
        self.create::<FerrVaultConnection>(self.here(), objects::connection(&url)).await?;
        let connections: Api<FerrVaultConnection> = self.here();
        observe("the connection is Ready: FerrVault answered", self.operator_process(), || async {
            let connection = connections.get(CONNECTION).await?;
            Ok(seen::connection_ready(&connection))
        })
        .await?;
        self.show("fvc").await
    }

    async fn fetch_a_secret(&mut self) -> Result<Target, Error> {
        narrate::heading(&format!("A FerrVaultSecret: the vault {VAULT} belongs into the Secret {TARGET}"));
        self.create::<FerrVaultSecret>(self.here(), objects::resource()).await?;
        let target = self.see_target("the Secret appears and holds exactly what the vault holds", None).await?;
        let resources: Api<FerrVaultSecret> = self.here();
        observe("the resource says so: Ready, Synced", self.operator_process(), || async {
            Ok(seen::synced(&resources.get(RESOURCE).await?))
        })
        .await?;
        self.show("fvs").await?;
        Ok(target)
    }

    async fn run_pods(&mut self) -> Result<Pods, Error> {
        narrate::heading(&format!("A Deployment of {PODS} pods that take their environment from that Secret"));
        self.create::<Deployment>(self.here(), objects::workload()).await?;
        let pods = self
            .see_pods(&format!("{PODS} pods run, none of them restarted by the operator"), |pods| {
                pods.complete() && pods.mark.is_none()
            })
            .await?;
        self.show("fvs,deployments,pods").await?;
        Ok(pods)
    }

    async fn rotate(&mut self, first: &Target, before: &Pods) -> Result<(), Error> {
        narrate::heading("Rotation: FerrVault gets a new value, and the pods get it too");
        self.dev_verb(self.dev()?, &["rotate", VAULT, ROTATED], "").await?;
        let second = self.see_target("the Secret holds the new value", Some(first)).await?;
        let after = self
            .see_pods(&format!("{PODS} new pods run, stamped with that version of the Secret"), |pods| {
                pods.complete() && pods.mark.as_deref() == Some(&second.version) && pods.share_none_with(before)
            })
            .await?;
        self.see_nothing_more(&second, before, &after).await?;
        self.show("fvs,deployments,pods").await?;
        self.show_where_it_shows().await
    }

    /// Where somebody who was not there finds out what happened.
    async fn show_where_it_shows(&self) -> Result<(), Error> {
        narrate::heading("Where that rotation shows afterwards");
        for trace in traces() {
            let printed = self.cluster.tools.kubectl(trace.arguments()).await?;
            if !trace.is_in(&printed) {
                return Err(Error::Refused(format!("`{trace}` does not tell of the rotation:\n{printed}")));
            }
            narrate::command(&trace.to_string(), &printed);
        }
        let log = self.log();
        let lines = std::fs::read_to_string(&log).map_err(|source| Error::File { path: log.clone(), source })?;
        for message in LOGGED {
            let Some(line) = lines.lines().rfind(|line| line.contains(message)) else {
                return Err(Error::Refused(format!("the operator's log says nothing of \"{message}\"")));
            };
            narrate::command(&format!("grep '{message}' {} | tail -n 1", log.display()), line);
        }
        Ok(())
    }

    /// The operator's log.
    fn log(&self) -> PathBuf {
        self.cluster.folder().join("operator.log")
    }

    /// The restart was the only one: later passes came and went, and the Deployment is as it was.
    async fn see_nothing_more(&self, target: &Target, before: &Pods, after: &Pods) -> Result<(), Error> {
        let resources: Api<FerrVaultSecret> = self.here();
        let what = format!("{QUIET_PASSES} more passes end with nothing owed");
        let passes = std::cell::RefCell::new(Vec::new());
        observe(&what, self.operator_process(), || async {
            let resource = resources.get(RESOURCE).await?;
            let settled = seen::settled(&resource, &target.version);
            let Look::Seen(attempted) = settled else { return Ok(Look::NotYet(seen::text(&settled))) };
            let mut passes = passes.borrow_mut();
            if passes.last() != Some(&attempted) {
                passes.push(attempted);
            }
            // The first one seen is where counting begins.
            let counted = passes.len().saturating_sub(1);
            Ok(if counted >= QUIET_PASSES { Look::Seen(()) } else { Look::NotYet(format!("{counted} passes")) })
        })
        .await?;
        let now =
            self.see_pods("the Deployment was changed once, and its pods are still the same", Pods::complete).await?;
        if now.generation == before.generation + 1 && now.uids == after.uids {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "restarted more than once: the Deployment went from generation {} to {}",
            before.generation, now.generation
        )))
    }

    /// Waits until the target equals the vault, and differs from an earlier version if there was one.
    async fn see_target(&self, what: &str, earlier: Option<&Target>) -> Result<Target, Error> {
        let secrets: Api<Secret> = self.here();
        let wanted = self.dev()?.reveal(VAULT, self.token.trim()).await?;
        observe(what, self.operator_process(), || async {
            let secret = secrets.get_opt(TARGET).await?;
            Ok(seen::target(secret.as_ref(), &wanted, earlier))
        })
        .await
    }

    async fn see_pods(&self, what: &str, right: impl Fn(&Pods) -> bool) -> Result<Pods, Error> {
        let resources: Api<FerrVaultSecret> = self.here();
        let uid = resources.get(RESOURCE).await.map_err(failed("reading the resource"))?.metadata.uid;
        let mark = ferrvault_api::marks::workload_mark(&uid.unwrap_or_default());
        observe(what, self.operator_process(), || async {
            let pods = Pods::look(&self.cluster.client, &mark).await?;
            Ok(if right(&pods) { Look::Seen(pods) } else { Look::NotYet(pods.to_string()) })
        })
        .await
    }

    /// What a person would look at now.
    async fn show(&self, kinds: &str) -> Result<(), Error> {
        let printed = self.cluster.tools.kubectl(["get", kinds, "-n", NAMESPACE]).await?;
        narrate::command(&format!("kubectl get {kinds} -n {NAMESPACE}"), &printed);
        Ok(())
    }

    async fn create<K>(&self, api: Api<K>, object: Value) -> Result<(), Error>
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
    {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let doing = format!("creating the {} {name}", K::kind(&()));
        let wrong = failed(&doing);
        let object: K = serde_json::from_value(object).map_err(|error| wrong(kube::Error::SerdeError(error)))?;
        api.create(&PostParams::default(), &object).await.map_err(failed(&doing))?;
        narrate::line(&format!("created: {} {name}", K::kind(&())));
        Ok(())
    }

    /// The API of a kind in the story's namespace.
    fn here<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.cluster.client.clone(), NAMESPACE)
    }

    fn dev(&self) -> Result<&DevServer, Error> {
        self.dev.as_ref().ok_or_else(|| Error::Refused("the dev server does not run".to_owned()))
    }

    fn operator_process(&self) -> Option<&Process> {
        self.operator.as_ref().map(Operator::process)
    }
}

/// Whether this client's user may do something in the story's namespace.
async fn may(client: &kube::Client, verb: &str, group: &str, resource: &str) -> Result<bool, Error> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(NAMESPACE.to_owned()),
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await;
    let answer = answer.map_err(failed("asking what the operator may do"))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn failed(doing: &str) -> impl Fn(kube::Error) -> Error + use<> {
    let doing = doing.to_owned();
    move |source| Error::Api { doing: doing.clone(), source: Box::new(source) }
}
